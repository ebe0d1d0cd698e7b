import { EXPLORED } from "../build-flags"
import { pause } from "../host"
import { EPOCH, base } from "../memory-map"
import { load } from "./atomics"

/** Attempts that only spin; later ones ask the host for a pause. */
const SPINS: i32 = 6
/**
 * Loads of the first spin, a few microseconds; the number doubles with each attempt. While one thread backs off, the other keeps
 * the cache line for a run of swaps. That makes two threads on one key cheaper than a fight for the line.
 */
const SPIN_LOADS: i32 = 4096

/** Backs off after the `attempt`th lost swap. */
export function backOff(attempt: i32): void {
  if (attempt > SPINS) {
    pause(attempt)
    return
  }
  if (EXPLORED) return
  for (let spin = SPIN_LOADS << attempt; spin > 0; spin--) load(base + EPOCH)
}

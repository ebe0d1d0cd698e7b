import { EXPLORED } from "../build-flags"
import { pause } from "../host"
import { EPOCH, base } from "../memory-map"
import { load } from "./atomics"

/** Attempts that only spin; later ones ask the host for a pause. */
const SPINS: i32 = 6
/**
 * Loads for which the first spin lasts, a few microseconds; it doubles with each attempt. While one thread stands back the other
 * keeps the cache line for a run of swaps, which is what makes two threads on one key cheaper than their quarrel.
 */
const SPIN_LOADS: i32 = 4096

/** Stands back after the `attempt`th swap that was lost. */
export function backOff(attempt: i32): void {
  if (attempt > SPINS) {
    pause(attempt)
    return
  }
  if (EXPLORED) return
  for (let spin = SPIN_LOADS << attempt; spin > 0; spin--) load(base + EPOCH)
}

import { AGAIN, RETRY } from "./answers"
import { load, swap } from "./atomics"
import { STATE } from "./memory-map"
import { baseUs, slots, tickUs, windowTicks } from "./policy"
import {
  costSoFar, fill, header, headerOf, headerWith, held, onePerToken, place, placeAfter, slotAddress, slotOf, whole,
} from "./ring"
import { firstYounger, newestTick, newestTotal, wrapped } from "./sliding-log"

/** Copies the newest request into the ring: 0 when that is done. RETRY: something has changed; AGAIN: only room was made. */
export function copied(entry: usize, state: u64): f64 {
  // The header was read after the state: if that still stands they belong together, and the header's swap will fail once it does not.
  if (load(entry + STATE) != state) return RETRY
  const tick = newestTick + baseUs / tickUs
  const live = firstYounger(windowTicks, tick)
  // Of 8 bytes, the last one that is over is kept for its cost so far.
  const gone = onePerToken() ? live : max<i64>(live - 1, 0)
  const stillWhole = whole && live == 0
  const count = onePerToken() ? wrapped(newestTotal - costSoFar) : 1
  if (held + count > slots) {
    return swap(headerOf(entry), header, headerWith(place, held - gone, costSoFar, stillWhole, false)) ? AGAIN : RETRY
  }
  let at = place
  for (let i: i64 = 0; i < count; i++) {
    at = placeAfter(at)
    if (!fill(entry, state, slotAddress(at), slotOf(tick, newestTotal))) return RETRY
  }
  return swap(headerOf(entry), header, headerWith(at, held - gone + count, newestTotal, stillWhole, false)) ? 0 : RETRY
}

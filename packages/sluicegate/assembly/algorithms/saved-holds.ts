import { load } from "../atomics/atomics"
import { STATE } from "../memory-map"
import { held, isRingUnchanged, nextEnd, readHoldRing, tokensThere } from "./hold-ring"
import { MOST_NUMBER, next, put, sound, unsound } from "./saved-numbers"

// Saved holds, behind the numbers of a key that has any: how many ends, then of each: the end in microseconds since the Unix epoch | tokens. They
// count on where the key is loaded, until they end.

const MOST_ENDS: i64 = 32
/** Longer than any hold lives. */
const LONGEST_US: i64 = 2 * 86_400_000_000

/** Reads the ring of a key that has one. False: nothing is held. */
export function hasHolds(entry: usize, nowUs: i64): bool {
  readHoldRing(entry, nowUs)
  return held > 0
}

/** Puts the ring last read. */
export function saveHolds(): void {
  let count: i64 = 0
  for (let end = nextEnd(0); end != 0; end = nextEnd(end)) count++
  put(count)
  for (let end = nextEnd(0); end != 0 && count > 0; end = nextEnd(end)) {
    count--
    put(end)
    put(tokensThere)
  }
  // The ring has changed meanwhile, which is found out after it.
  for (; count > 0; count--) {
    put(0)
    put(0)
  }
}

/** Whether state and ring are as they were read. */
export function areUnchanged(entry: usize, state: u64): bool {
  return load(entry + STATE) == state && isRingUnchanged(entry)
}

/** The hold last read. */
export let endUs: i64 = 0
export let tokens: i64 = 0

/** Reads how many follow. */
export function readCount(): i64 {
  return next(MOST_ENDS)
}

export function readHold(): void {
  endUs = next(MOST_NUMBER)
  tokens = next(MOST_NUMBER)
}

/** Whether the hold last read ends later than any could. */
export function isTooFar(nowUs: i64): bool {
  return endUs - nowUs > LONGEST_US
}

/** Reads all. */
export function readHolds(nowUs: i64): void {
  const count = readCount()
  for (let i: i64 = 0; i < count && sound; i++) {
    readHold()
    if (isTooFar(nowUs)) unsound()
  }
}

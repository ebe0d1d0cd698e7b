import { NEXT_RING, STATE, base } from "../memory-map"
import { AGAIN, RETRY } from "../results"
import { add, load, store, swap } from "../atomics/atomics"
import { addWord, closeDescriptor, commit, openDescriptor, resolved, swapBoth } from "../atomics/kcas"
import { NO_KEY, claimMark, isHeld, isMark, withRing, withoutRing } from "../atomics/words"
import {
  claimFor, clear, entryIn, hasLapsed, held, isClaimed, isOver, nameAt, nameIn, nextVersion, openRings, placeFirst, placeOf, readHoldRing, readingSeen, renamed, ringAt,
  ringCount, ringWord, ringWordOf, settled, sinceOfRing, sinceSeen,
} from "../algorithms/hold-ring"
import { release } from "./claim"

// How a key gets a ring, and loses it. A ring is claimed, emptied, and then comes to the entry in one step with the mark of its state word. It
// goes from an entry when its ends have passed, with the next take of the key, or when it holds nothing and another key needs ring or entry. A
// thread that dies while it empties a ring leaves that one unused.

/** Rings that are looked at for a key that has none. */
const MOST_LOOKS: i32 = 32

/** Results of {@link attach}. */
export const ATTACHED: i32 = 0
export const LOST: i32 = 1
export const NONE_LEFT: i32 = 2

/** Gives the key with this state a ring, with a place for the end of holds. */
export function attach(entry: usize, state: u64, endUs: i64, nowUs: i64): i32 {
  if (!openRings()) return NONE_LEFT
  const number = claim(entry, nowUs)
  if (number == 0) return NONE_LEFT
  placeFirst(ringAt(number), endUs)
  const place = placeOf(ringAt(number))
  const claimed = load(place)
  const word = resolved(ringWordOf(entry))
  const descriptor = openDescriptor()
  if (descriptor != 0) {
    addWord(descriptor, entry + STATE, state, withRing(state))
    addWord(descriptor, ringWordOf(entry), word, renamed(word, nameAt(number, settled(claimed))))
    addWord(descriptor, place, claimed, settled(claimed))
    if (commit(descriptor)) return ATTACHED
  }
  // Nobody else changes the place of a claimed ring.
  store(place, settled(claimed))
  return LOST
}

/** The number of a ring that is claimed for an entry, and empty; 0 when none was found. */
function claim(entry: usize, nowUs: i64): u64 {
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const number = add(base + NEXT_RING, 1) % ringCount + 1
    const ring = ringAt(number)
    const place = resolved(placeOf(ring))
    if (isClaimed(place) || isInUse(number, place, nowUs)) continue
    if (!swap(placeOf(ring), place, claimFor(place, entry))) continue
    clear(ring)
    return number
  }
  return 0
}

/** Whether an entry has the ring, and holds something in it. */
function isInUse(number: u64, place: u64, nowUs: i64): bool {
  const entry = entryIn(place)
  if (entry == 0) return false
  const state = resolved(entry + STATE)
  if (nameIn(resolved(ringWordOf(entry))) != nameAt(number, place)) return false
  return isMark(state) || !isHeld(state) || !letGo(entry, state, nowUs)
}

/** Takes the ring from an entry that holds nothing. False: it does, or something has changed. */
export function letGo(entry: usize, state: u64, nowUs: i64): bool {
  readHoldRing(entry, nowUs)
  return held == 0 && detach(entry, state, withoutRing(state))
}

/** Swaps the state for `next`, and takes the ring last read from the entry. */
function detach(entry: usize, state: u64, next: u64): bool {
  return swapBoth(entry + STATE, state, next, ringWordOf(entry), ringWord, renamed(ringWord, 0))
}

/** Evicts a key with the ring last read. False: state or ring have changed. */
export function evictWithRing(entry: usize, state: u64): bool {
  const mine = claimMark(NO_KEY, load(entry), state)
  if (!detach(entry, state, mine)) return false
  release(entry, mine)
  return true
}

/**
 * Reads the ring of a key that has one, and writes down what has ended by now. Returns 0, or what to do first as for `change`: the key has no ring
 * any more, or something has changed.
 */
export function tidied(entry: usize, state: u64, nowUs: i64): f64 {
  readHoldRing(entry, nowUs)
  if (isOver) return detach(entry, state, withoutRing(state)) ? AGAIN : RETRY
  if (!hasLapsed) return 0
  return swapBoth(ringWordOf(entry), ringWord, nextVersion(ringWord), sinceOfRing(), sinceSeen(), readingSeen()) ? AGAIN : RETRY
}

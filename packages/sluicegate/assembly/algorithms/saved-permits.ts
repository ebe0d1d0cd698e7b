import { STATE } from "../memory-map"
import { load } from "../atomics/atomics"
import { resolved, swapBoth } from "../atomics/kcas"
import { ownerOf, valueOf, withValue } from "../atomics/words"
import { baseUs, epoch, mostAheadUs, sinceBase, slots } from "../policy/policy"
import {
  changedAt, costOf, debtOf, freeSlot, freeWord, leftUs, permitOf, readAt, readingUs, serialOf, slotOf, turnOf, turned, valueAt,
} from "./concurrency"
import { MOST_US, next, nextSigned, put, putSigned, sound } from "./saved-numbers"

// Saved permits: owner | time of the last change | turn | number, then of each permit: slot | expiry | serial | cost. A permit whose slot is free in
// the table where it is loaded, under the same owner, can be renewed and released there by its handle; any other expires. Turns go on, so that no
// permit that follows at the same microsecond has the handle of one that was released.

const MOST_SLOTS: i64 = 1 << 17
const MOST_TURN: i64 = (1 << 9) - 1
const MOST_COST: i64 = (1 << 14) - 1
/** Longer than any permit lasts. */
const LONGEST_US: i64 = 1 << 45

export function savePermits(entry: usize, state: u64, us: i64): void {
  const value = valueOf(state)
  put(<i64>ownerOf(state))
  putSigned(changedAt(value) + baseUs)
  put(turnOf(value))
  debtOf(entry, value, us)
  let count: i64 = 0
  for (let i: i64 = 0; i < slots; i++) if (leftUs(resolved(slotOf(entry, i))) > 0) count++
  put(count)
  for (let i: i64 = 0; i < slots && count > 0; i++) {
    const permit = resolved(slotOf(entry, i))
    const left = leftUs(permit)
    if (left <= 0) continue
    count--
    put(i)
    putSigned(readingUs() + left)
    put(<i64>serialOf(permit))
    put(costOf(permit))
  }
}

/** Owner of the permits, and how many there are. */
export let owner: u64 = 0
export let count: i64 = 0
let changedUs: i64 = 0
let turn: i64 = 0
let slot: i64 = 0
let untilUs: i64 = 0
let serial: u64 = 0
let cost: i64 = 0

function readHead(): void {
  owner = <u64>next(7)
  changedUs = nextSigned(MOST_US)
  turn = next(MOST_TURN)
  count = next(MOST_SLOTS)
}

function readPermit(): void {
  slot = next(MOST_SLOTS)
  untilUs = nextSigned(MOST_US)
  serial = <u64>next(3)
  cost = next(MOST_COST)
}

export function readPermits(): void {
  readHead()
  for (let i: i64 = 0; i < count && sound; i++) readPermit()
}

/** Reads the permits again up to number `from`. */
export function skipPermits(from: i64): void {
  readHead()
  for (let i: i64 = 0; i < from; i++) readPermit()
}

/** The value with which a key goes on that holds no permit and has this one: it never goes back. */
export function continued(value: u64, nowUs: i64): u64 {
  return max<u64>(value, valueAt(sinceBase(min<i64>(changedUs, nowUs + mostAheadUs())), turn))
}

/** The state after {@link loadPermit}. */
export let after: u64 = 0

/** Reads the next permit, and adds it to a key with this state. False: the state has changed. */
export function loadPermit(entry: usize, state: u64, us: i64, nowUs: i64): bool {
  const value = valueOf(state)
  readPermit()
  readAt(value, us)
  after = state
  if (untilUs <= nowUs || untilUs - nowUs > LONGEST_US || cost == 0) return true
  let address = slot < slots ? slotOf(entry, slot) : 0
  let word = address == 0 ? 0 : resolved(address)
  if (address == 0 || leftUs(word) > 0) {
    debtOf(entry, value, us)
    address = freeSlot
    word = freeWord
  }
  // No slot is free: those that are taken are as many as the policy has.
  if (address == 0) return load(entry + STATE) == state
  after = withValue(state, epoch, turned(value))
  return swapBoth(entry + STATE, state, after, address, word, permitOf(untilUs, serial, cost))
}

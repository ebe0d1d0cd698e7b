import { RECORD_SLOTS, STATE } from "../memory-map"
import { RETRY, setPermit, setPermitExpiry, setWait } from "../results"
import { load } from "../atomics/atomics"
import { addWord, commit, openDescriptor, resolved, swapOrStageBoth } from "../atomics/kcas"
import { isMark, lagOf, ownerOf, valueOf, withValue } from "../atomics/words"
import { extensionIn, extensionOf } from "../policy/extension"
import { capacity, epoch, slots } from "../policy/policy"
import { field } from "../policy/policy-record"
import {
  costOf, countGiven, debtOf, expiryUs, freeSlot, freeWord, hasPassed, lastSlot, permitOf, readAt, serialAfter, slotNumber, slotOf,
  turned,
} from "./concurrency"
import { PENALIZE, REFUND, RESERVE, TAKE } from "./verbs"

// Gives, renews and releases permits. Each change swaps the slot and the turn of the state word together.

/** Swaps that a refund of several permits may lose. */
const MOST_LOST: i32 = 100

/** Applies a verb to a key that lives in `entry`. Returns as `change` in cas-loop.ts does. */
export function changePermits(verb: i32, entry: usize, state: u64, value: u64, us: i64, tokens: i64): f64 {
  const used = debtOf(entry, value, us)
  if (verb == REFUND && used > 0) return refunded(entry, state, value, us, tokens)
  let cost: i64 = 0
  if (verb == TAKE || verb == RESERVE) cost = used + tokens <= capacity ? tokens : 0
  if (verb == PENALIZE) cost = max<i64>(min<i64>(tokens, capacity - used), 0)
  if (cost > 0 && freeSlot != 0) {
    const until = expiryUs()
    const slot = slotNumber(entry, freeSlot)
    const serial = serialAfter(value)
    if (!swapOrStageBoth(entry + STATE, state, withValue(state, epoch, turned(value)), freeSlot, freeWord, permitOf(until, serial, cost))) return RETRY
    setWait(0)
    setPermit((slot << 5) | <i64>((ownerOf(state) << 2) | serial), until)
    countGiven()
    return <f64>(used + cost)
  }
  if (load(entry + STATE) != state) return RETRY
  return verb == TAKE || verb == RESERVE ? -1.0 - <f64>used : <f64>used
}

/** Takes tokens from the permits that expire last, one permit after another. */
function refunded(entry: usize, state: u64, value: u64, us: i64, tokens: i64): f64 {
  let left = tokens
  let word = state
  let lost = 0
  while (true) {
    const used = debtOf(entry, valueOf(word), us)
    const slot = left > 0 ? lastSlot : 0
    if (slot == 0) return left < tokens || load(entry + STATE) == word ? <f64>used : RETRY
    const permit = resolved(slot)
    const cost = min<i64>(costOf(permit), left)
    const smaller = cost < costOf(permit) ? permit - <u64>cost : 0
    const next = withValue(word, epoch, turned(valueOf(word)))
    if (swapOrStageBoth(entry + STATE, word, next, slot, permit, smaller)) {
      left -= cost
      word = next
      continue
    }
    if (left == tokens) return RETRY
    // Part of the refund is done, so the rest must follow, unless the key was evicted or has another policy by now.
    word = resolved(entry + STATE)
    if (isMark(word) || lagOf(word, epoch) != 0 || ownerOf(word) != ownerOf(state) || ++lost > MOST_LOST) return <f64>used
  }
}

/**
 * Renews a permit, or takes `tokens` from it, if it still expires at `untilUs`; sets `givenUntilUs` to its expiry. Returns 1, or 0
 * when the permit has ended, or RETRY.
 */
export function changePermit(renew: bool, entry: usize, state: u64, value: u64, us: i64, given: i64, untilUs: i64, tokens: i64): f64 {
  readAt(value, us)
  const slot = given >> 5
  const serial = <u64>given & 3
  const address = slotOf(entry, slot)
  const isOfOwner = slot < slots && ownerOf(state) == (<u64>(given >> 2) & 7)
  const permit = isOfOwner ? resolved(address) : 0
  const cost = costOf(permit)
  if (permit == 0 || permit != permitOf(untilUs, serial, cost) || hasPassed(untilUs)) return load(entry + STATE) == state ? 0 : RETRY
  const until = renew ? expiryUs() : untilUs
  const next = cost > tokens ? permitOf(until, serial, cost - tokens) : 0
  if (!swapOrStageBoth(entry + STATE, state, withValue(state, epoch, turned(value)), address, permit, next)) return RETRY
  setPermitExpiry(until)
  return 1
}

/** Permits that are copied in one swap. */
const PERMITS_AT_ONCE: i64 = 16

/**
 * Copies the permits of a key, a few at a time, each time together with a swap of the state word for itself: once the state is of
 * the new policy, a slot that was empty before may be empty again, and a late copy must not fill it. False: the state has changed.
 */
export function migratePermits(entry: usize, state: u64, from: usize): bool {
  const source = extensionIn(from, entry)
  const target = extensionOf(entry)
  const there = field(from, RECORD_SLOTS)
  for (let first: i64 = 0; first < slots; first += PERMITS_AT_ONCE) {
    const descriptor = openDescriptor()
    if (descriptor == 0) return false
    addWord(descriptor, entry + STATE, state, state)
    for (let i = first; i < min<i64>(first + PERMITS_AT_ONCE, slots); i++) {
      const permit = i < there ? resolved(source + <usize>i * 8) : 0
      const before = resolved(target + <usize>i * 8)
      if (before != permit) addWord(descriptor, target + <usize>i * 8, before, permit)
    }
    if (!commit(descriptor)) return false
  }
  return true
}

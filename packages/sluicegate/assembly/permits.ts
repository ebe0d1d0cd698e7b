import { RETRY } from "./answers"
import { add, load } from "./atomics"
import {
  costOf, debtOf, expiryUs, freeSlot, freeWord, lastToExpire, leftUs, permitOf, slotNumber, slotOf, standAt, turned,
} from "./concurrency"
import { RELEASES, STATE } from "./memory-map"
import { capacity, epoch, slots } from "./policy"
import { bothReplaced } from "./replace"
import { base } from "./section"
import { settled } from "./several"
import { PENALIZE, REFUND, RESERVE, TAKE } from "./verbs"
import { waitFor } from "./waits"
import { valueOf, withValue } from "./words"

// How permits are given, renewed and taken back: each time the slot and the state's turn are swapped together.

/** Slot of the permit last given, and when it expires, in microseconds since the Unix epoch. */
export let givenSlot: i64 = 0
export let givenUntilUs: i64 = 0

/** A verb on a key that lives in `entry`. Answers as `change` does in cas.ts. */
export function changePermits(verb: i32, entry: usize, state: u64, value: u64, us: i64, tokens: i64): f64 {
  const used = debtOf(entry, value, us)
  if (verb == REFUND && used > 0) return refunded(entry, state, value, used, tokens)
  let cost: i64 = 0
  if (verb == TAKE || verb == RESERVE) cost = used + tokens <= capacity ? tokens : 0
  if (verb == PENALIZE) cost = max<i64>(min<i64>(tokens, capacity - used), 0)
  if (cost > 0 && freeSlot != 0) {
    const until = expiryUs()
    const slot = slotNumber(entry, freeSlot)
    if (!bothReplaced(entry + STATE, state, withValue(state, epoch, turned(value)), freeSlot, freeWord, permitOf(until, cost))) return RETRY
    waitFor(0)
    givenSlot = slot
    givenUntilUs = until
    return <f64>(used + cost)
  }
  if (load(entry + STATE) != state) return RETRY
  return verb == TAKE || verb == RESERVE ? -1.0 - <f64>used : <f64>used
}

/** Takes tokens from the permit that expires last; if there are more, the caller's next round goes on with the next permit. */
function refunded(entry: usize, state: u64, value: u64, used: i64, tokens: i64): f64 {
  let left = tokens
  let word = state
  let seen = value
  let debt = used
  while (left > 0 && debt > 0) {
    const slot = lastToExpire()
    if (slot == 0) break
    const permit = settled(slot)
    const cost = costOf(permit)
    const next = withValue(word, epoch, turned(seen))
    const smaller = cost > left ? permit - <u64>left : 0
    if (!bothReplaced(entry + STATE, word, next, slot, permit, smaller)) return left == tokens ? RETRY : <f64>debt
    debt -= min<i64>(cost, left)
    left -= min<i64>(cost, left)
    word = next
    seen = valueOf(next)
  }
  return <f64>debt
}

/**
 * Takes a permit back, or renews it, if it is still what was given. 0 when it is not, RETRY to be called again; otherwise when it
 * expires now, in microseconds since the Unix epoch, or 1 when it is taken back.
 */
export function changePermit(isRelease: bool, entry: usize, state: u64, value: u64, us: i64, slot: i64, untilUs: i64, cost: i64): f64 {
  standAt(value, us)
  const address = slotOf(entry, slot)
  const permit = permitOf(untilUs, cost)
  if (slot >= slots || settled(address) != permit || leftUs(permit) <= 0) return load(entry + STATE) == state ? 0 : RETRY
  const until = expiryUs()
  const next = isRelease ? 0 : permitOf(until, cost)
  if (!bothReplaced(entry + STATE, state, withValue(state, epoch, turned(value)), address, permit, next)) return RETRY
  if (!isRelease) return <f64>until
  add(base + RELEASES, 1)
  atomic.notify(base + RELEASES)
  return 1
}

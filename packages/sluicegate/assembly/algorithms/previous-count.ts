import { STATE } from "../memory-map"
import { load, swap } from "../atomics/atomics"
import { resolved, swapBoth } from "../atomics/kcas"
import { valueOf, withValue } from "../atomics/words"
import { extensionOf } from "../policy/extension"
import { baseUs, countBits, epoch, era, windowUs } from "../policy/policy"

// The second word of the wide encoding: the count of the previous window.
//
//   0 0 | window number, as much of it as fits | era 12 | count
//
// It is written only while the state word is *sealed*. The first take in a new window swaps the seal onto the old count, so that
// no thread can add to it. Then it copies the count here, then it swaps the new window in. A thread that finds a sealed word
// continues from there. Without the seal, a take that pauses before its copy would bring back an earlier count. All that decides
// is in the state word. This word is read only together with it, and is constant while the state names the same window.

const ERA_BITS: u64 = 12
const ERA_MASK: u64 = (1 << 12) - 1
const SEAL_SHIFT: u64 = 55
/** The two highest bits stay 0: a word that has them is a descriptor reference of kcas.ts. */
const WORD_MASK: u64 = (1 << 62) - 1

export const sealedBit: u64 = 1 << 55

@inline export function isSealed(value: u64): bool {
  return (value >> SEAL_SHIFT) != 0
}

@inline export function numberAndCount(value: u64): u64 {
  return value & (sealedBit - 1)
}

/** A word that holds no count, different for each owner. */
export function noCount(identity: u64): u64 {
  return (identity & 0x3fff) << <u64>countBits
}

/** The count of the window before `number`. */
export function previousCount(entry: usize, number: i64): i64 {
  return countBefore(resolved(extensionOf(entry)), number + baseUs / windowUs, <u64>countBits, era)
}

/** The count in `word`, if it is of the window before `absolute`, which counts from the Unix epoch. */
export function countBefore(word: u64, absolute: i64, bits: u64, era: i64): i64 {
  return word >> bits == tagOf(absolute - 1, bits, era) ? <i64>(word & ((<u64>1 << bits) - 1)) : 0
}

/**
 * Swaps a state for `next`, of the policy in force, and limits the previous count to `most` in the same step. False: one of the
 * two has changed.
 */
export function swapWithPrevious(entry: usize, state: u64, next: u64, most: i64): bool {
  const value = valueOf(next)
  const address = extensionOf(entry)
  const word = resolved(address)
  const number = <i64>(numberAndCount(value) >> <u64>countBits)
  if (isSealed(value) || countBefore(word, number + baseUs / windowUs, <u64>countBits, era) <= most) return swap(entry + STATE, state, next)
  const smaller = (word >> <u64>countBits << <u64>countBits) | <u64>most
  return swapBoth(entry + STATE, state, next, address, word, smaller)
}

/**
 * Swaps a state for one that has spent nothing, and the previous count for a word without a count that differs from before. So a
 * copy under way fails and cannot bring an earlier count back. False: one of the two has changed.
 */
export function resetWithPrevious(entry: usize, state: u64): bool {
  const address = extensionOf(entry)
  const word = resolved(address)
  return swapBoth(entry + STATE, state, withValue(state, epoch, 0), address, word, noCount((word >> <u64>countBits) + 1))
}

/** The word that holds `count` for the window `absolute`. */
export function wordOf(absolute: i64, count: i64): u64 {
  return (tagOf(absolute, <u64>countBits, era) << <u64>countBits) | <u64>count
}

/** The bits above the count: a number since the Unix epoch, so that a move of the time base changes nothing. */
@inline function tagOf(absolute: i64, bits: u64, era: i64): u64 {
  return ((<u64>absolute << ERA_BITS) | (<u64>era & ERA_MASK)) & (WORD_MASK >> bits)
}

/** The extension word as `needsCopy` read it, and as it has to be. */
export let kept: u64 = 0
export let wanted: u64 = 0

/** Whether the extension has to hold another word before `state` may be swapped for one of the window `to`. */
export function needsCopy(entry: usize, state: u64, to: i64): bool {
  const mask = (<u64>1 << <u64>countBits) - 1
  const word = numberAndCount(valueOf(state))
  const from = <i64>(word >> <u64>countBits)
  if (from >= to) return false
  const tag = tagOf(to - 1 + baseUs / windowUs, <u64>countBits, era)
  const count = from == to - 1 ? word & mask : 0
  kept = resolved(extensionOf(entry))
  wanted = (tag << <u64>countBits) | count
  return count != 0 ? kept != wanted : kept >> <u64>countBits == tag && (kept & mask) != 0
}

/** Makes one step: the seal, or the copy. */
export function copyPrevious(entry: usize, state: u64): void {
  if (!isSealed(valueOf(state))) swap(entry + STATE, state, state | sealedBit)
  // Not after the state has changed: then another thread has copied already, and this word is no longer what was read.
  else if (load(entry + STATE) == state) swap(extensionOf(entry), kept, wanted)
}

import { burst, capacity, isRate, unitsPerToken, unitsPerUs } from "./policy"
import { BLOCK, CANCEL, DEEPEST_DEBT_BURSTS, RESERVE } from "./verbs"

/**
 * Tokens in units. Of a bucket or GCRA, more than the deepest debt weighs no more than that, and what a cancelled reservation still
 * holds is counted in units by the caller. A block's "tokens" are microseconds.
 */
@inline export function weight(verb: i32, tokens: i64): i64 {
  if (!isRate() || verb == BLOCK || verb == CANCEL) return tokens
  return min<i64>(tokens, DEEPEST_DEBT_BURSTS * burst + 1) * unitsPerToken
}

/** A reservation's bound as its form wants it: of buckets and GCRA the deepest debt, otherwise the longest wait. */
@inline export function boundOf(verb: i32, ofBlock: bool, tokens: i64, bound: i64): i64 {
  if (verb != RESERVE || ofBlock || !isRate()) return bound
  return tokens > burst ? 0 : capacity + bound * unitsPerUs
}

import { calendarWindowEnd, calendarWindowStart } from "../host"
import {
  OVERFLOWS, OVERFLOW_BUDGET, OVERFLOW_COUNTERS, OVERFLOW_COUNTER_COUNT, OVERFLOW_LIMIT, OVERFLOW_WINDOW_US, REFUSALS, base,
} from "../memory-map"
import { OVERFLOWED, REFUSED, RETRY, noAnswer } from "../results"
import { add, load } from "../atomics/atomics"
import { resolved, staging, swapOrStageBoth } from "../atomics/kcas"
import { isBan } from "../atomics/words"
import { CONCURRENCY } from "../policy/encodings"
import { burst, capacity, encoding, isRate, policyRecord, unitsPerToken, unitsPerUs, windowUs } from "../policy/policy"

// New keys in whose range every key is being denied. None of those keys may be evicted, so there is no place for the new key's
// own state. It is charged twice instead:
//
// - to a counter that it shares with the new keys of the same hash. A counter never lets more pass than the policy allows one
//   key,
// so no key gets more by having no room;
// - to the budget of all new keys without room, which limits what they get together. It keeps a flood of them from using up the
//   counters: later ones find most counters fresh.
//
// Both are arrival times of GCRA, in ticks since the Unix epoch, and they change together or not at all. Below 2^62 they look like
// neither a mark nor a descriptor reference. They belong to no policy's epoch: after a change of policy they stand as they are,
// and a thread that has read the previous policy may still charge by it.

/** Ticks per microsecond, so that fast policies lose little by rounding. */
const TICKS: i64 = 256
/** Later times, beyond the year 2255, would leave no room for debts in a word. */
const LATEST_US: i64 = 1 << 53
/** The deepest debt, 142 years. */
const MOST_TICKS: i64 = 1 << 60
const NEVER_US: i64 = i64.MAX_VALUE / TICKS

/** The rate of the counter, then of the budget: ticks per token, and tokens at once. */
let tokenTicks: i64 = 0
let most: i64 = 0

/** Decides for a new key that finds no room now, and would find some after `roomAfterUs`. */
export function overflow(fingerprint: u64, tokens: i64, nowUs: i64, roomAfterUs: i64): f64 {
  const count = load(base + OVERFLOW_COUNTER_COUNT)
  if (count == 0 || encoding == CONCURRENCY || isBan(fingerprint) || nowUs < 0 || nowUs > LATEST_US) return refused(roomAfterUs)
  const now = nowUs * TICKS
  const counter = <usize>load(base + OVERFLOW_COUNTERS) + <usize>((fingerprint >> 1) % count) * 8
  const budget = base + OVERFLOW_BUDGET

  keyTerms(nowUs)
  const counterSeen = resolved(counter)
  const counterNext = charged(counterSeen, now, tokens)
  const counterUs = lateBy(counterNext, now)
  budgetTerms(nowUs)
  const budgetSeen = resolved(budget)
  const budgetNext = charged(budgetSeen, now, tokens)
  const budgetUs = lateBy(budgetNext, now)

  const waitUs = max<i64>(counterUs, budgetUs)
  if (waitUs > 0) return refused(min<i64>(waitUs, roomAfterUs))
  if (!swapOrStageBoth(counter, counterSeen, <u64>counterNext, budget, budgetSeen, <u64>budgetNext)) return RETRY
  // Among several words it is not done yet: the caller counts it after the commit.
  if (staging == 0) countOverflow()
  return noAnswer(OVERFLOWED, <f64>((counterNext - now + TICKS - 1) / TICKS))
}

export function countOverflow(): void {
  add(base + OVERFLOWS, 1)
}

/** Denies for `waitUs` and counts the denial. */
export function refused(waitUs: i64): f64 {
  add(base + REFUSALS, 1)
  return noAnswer(REFUSED, <f64>waitUs)
}

/** The arrival time after a charge; beyond any time if `tokens` never pass at once. */
function charged(seen: u64, now: i64, tokens: i64): i64 {
  if (tokens > most) return i64.MAX_VALUE
  return max<i64>(<i64>seen, now) + tokens * tokenTicks
}

/** Microseconds by which a charge comes too early, at the rate last set. */
function lateBy(next: i64, now: i64): i64 {
  if (next == i64.MAX_VALUE) return NEVER_US
  const over = next - now - most * tokenTicks
  return over <= 0 ? 0 : (over + TICKS - 1) / TICKS
}

/**
 * The rate of a counter, from the policy. Buckets and GCRA: the same. Windows and logs: half of the limit at once and the rest
 * over the window, which is never more than the limit in any window.
 */
function keyTerms(nowUs: i64): void {
  if (isRate()) {
    most = burst
    const rest = unitsPerToken % unitsPerUs
    tokenTicks = (unitsPerToken / unitsPerUs) * TICKS + (rest * TICKS + unitsPerUs - 1) / unitsPerUs
  } else {
    most = (capacity + 1) / 2
    tokenTicks = roundedUp(windowTicks(nowUs), capacity - most + 1)
  }
}

/** The rate of the budget; call after `keyTerms`. Without its own window, the budget is what `limit` keys may spend. */
function budgetTerms(nowUs: i64): void {
  const limit = <i64>load(base + OVERFLOW_LIMIT)
  const us = <i64>load(base + OVERFLOW_WINDOW_US)
  if (us != 0) {
    most = limit
    tokenTicks = roundedUp(us * TICKS, limit)
  } else {
    const each = isRate() ? burst : capacity
    most = each > MOST_TICKS / limit ? MOST_TICKS : each * limit
    tokenTicks = isRate() ? roundedUp(tokenTicks, limit) : roundedUp(windowTicks(nowUs), most)
  }
  most = min<i64>(most, MOST_TICKS / tokenTicks)
}

@inline function roundedUp(ticks: i64, by: i64): i64 {
  return max<i64>((ticks + by - 1) / by, 1)
}

/** The policy's window. A calendar window counts an eighth longer than the current one, as the next may be longer. */
function windowTicks(nowUs: i64): i64 {
  if (windowUs != 0) return min<i64>(windowUs, MOST_TICKS / TICKS) * TICKS
  const us = <i64>(calendarWindowEnd(policyRecord(), <f64>nowUs) - calendarWindowStart(policyRecord(), <f64>nowUs))
  return (us + us / 8) * TICKS
}

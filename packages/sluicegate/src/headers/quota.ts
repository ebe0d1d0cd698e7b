import type { Decision } from '../decision/decision.js'
import type { Policy } from '../policy/policy.js'

/** What a quota counts: the units that the draft registers. */
export type QuotaUnit = 'requests' | 'content-bytes' | 'concurrent-requests'

/** The largest integer of a structured field: more is said as this. Source: RFC 9651, section 3.3.1. */
const MOST_TOKENS = 999_999_999_999_999

/** Tokens as fields say them: never more than there are. */
export function sayable(tokens: number): number {
  return Math.min(tokens, MOST_TOKENS)
}

/** A single policy in the terms of header fields: the part that is the same for all its decisions. */
export interface Quota {
  readonly name: string
  /** `q`: tokens that may be spent in {@link windowS}. */
  readonly tokens: number
  /** `w`: whole seconds, >= 1. For concurrency the time to live of a permit, which is not a window. */
  readonly windowS: number
  /** `qu`; undefined for the default unit. */
  readonly unit: QuotaUnit | undefined
  /** Permits have no window: a place is free when its holder releases it. */
  readonly isConcurrency: boolean
  /** The whole quota returns at one moment, not gradually. */
  readonly endsAtOnce: boolean
  readonly windowMs: number
  readonly limit: number
}

/**
 * `q` is the burst and `w` the seconds in which the burst refills, rounded up, so that what remains is never above `q`, and `q / w` never
 * above the policy's rate. A burst that refills in less than a second is scaled to `w=1`. For windows and logs the burst is the limit and
 * refills in a window; for a calendar window in its longest one.
 */
export function quotaOf({ algorithm, name, limit, windowMs, burst }: Policy, unit?: QuotaUnit): Quota {
  const isConcurrency = algorithm === 'concurrency'
  // Multiplied first: 7 tokens at 7 a minute are 60 s, and not the ceiling of 60.000000000000004.
  const refillMs = isConcurrency || burst === limit ? windowMs : (burst * windowMs) / limit
  return {
    name,
    tokens: sayable(refillMs < 1000 && !isConcurrency ? perSecond(limit, windowMs) : burst),
    windowS: Math.max(1, Math.ceil(refillMs / 1000)),
    unit: isConcurrency ? 'concurrent-requests' : unit === 'requests' ? undefined : unit,
    isConcurrency,
    endsAtOnce: algorithm === 'fixed-window',
    windowMs,
    limit,
  }
}

/** Tokens a second, rounded down; a product may be above 2^53. */
function perSecond(limit: number, windowMs: number): number {
  return Number((BigInt(limit) * 1_000_000n) / BigInt(Math.round(windowMs * 1000)))
}

/**
 * The milliseconds in which what remains would refill at the policy's rate, for at least one token: a client that spreads the remaining
 * requests over this time is not denied, and does not exceed the rate. Special cases:
 *
 * - sliding windows and logs may admit the next request later than that, which its denial then says;
 * - a fixed window: its end, or its whole length if it has not begun, and of credits, which have no end, that of their window;
 * - permits: the expiry of the last one, if it is not renewed;
 * - a denial: at most its retry-after.
 */
export function effectiveWindowMs(quota: Quota, decision: Decision): number {
  const { remaining, resetAfterMs, retryAfterMs } = decision
  let ms: number
  if (quota.isConcurrency) ms = resetAfterMs
  else if (quota.endsAtOnce) ms = resetAfterMs === 0 ? quota.windowS * 1000 : Math.min(resetAfterMs, quota.windowS * 1000)
  else ms = (Math.max(1, remaining) * quota.windowMs) / quota.limit
  return isDenial(decision) ? Math.min(ms, retryAfterMs) : ms
}

/** {@link effectiveWindowMs} in whole seconds, rounded up. */
export function effectiveWindowS(quota: Quota, decision: Decision): number {
  return Math.ceil(effectiveWindowMs(quota, decision) / 1000)
}

/** A denial that ends with time. */
function isDenial({ allowed, retryAfterMs }: Decision): boolean {
  return !allowed && retryAfterMs !== Number.POSITIVE_INFINITY
}

/** The value of `Retry-After`: whole seconds, rounded up, >= 1. Source: RFC 9110, section 10.2.3. */
export function retryAfterS(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1000)))
}

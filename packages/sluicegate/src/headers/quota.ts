import type { Decision } from '../decision.js'
import type { Policy } from '../policy/policy.js'

/** What a quota counts: the units that the draft registers. */
export type QuotaUnit = 'requests' | 'content-bytes' | 'concurrent-requests'

/** A single policy in the terms of header fields: what stays the same for all its decisions. */
export interface Quota {
  readonly name: string
  /** `q`: tokens that may be spent in {@link windowS}. */
  readonly tokens: number
  /** `w`: whole seconds, at least 1. Of concurrency the time to live of a permit, which is no window. */
  readonly windowS: number
  /** `qu`, where it is not the default one. */
  readonly unit: QuotaUnit | undefined
  /** Permits have no window: a place comes back when its holder is done. */
  readonly isConcurrency: boolean
  /** All comes back at one moment, not little by little. */
  readonly endsAtOnce: boolean
  readonly windowMs: number
  readonly limit: number
}

/**
 * `q` is the burst and `w` the seconds that the burst takes to refill, rounded up, so that what remains is never above `q` and
 * `q / w` never above the policy's rate. Where the burst refills in less than a second, both are scaled to `w=1`. Of windows and logs
 * the burst is the limit, and refills in a window; of a window of the calendar in the longest one.
 */
export function quotaOf({ algorithm, name, limit, windowMs, burst }: Policy, unit?: QuotaUnit): Quota {
  const isConcurrency = algorithm === 'concurrency'
  // Multiplied first: 7 tokens at 7 a minute are 60 s, and not the ceiling of 60.000000000000004.
  const refillMs = isConcurrency || burst === limit ? windowMs : (burst * windowMs) / limit
  return {
    name,
    tokens: refillMs < 1000 && !isConcurrency ? Math.floor((limit * 1000) / windowMs) : burst,
    windowS: Math.max(1, Math.ceil(refillMs / 1000)),
    unit: isConcurrency ? 'concurrent-requests' : unit === 'requests' ? undefined : unit,
    isConcurrency,
    endsAtOnce: algorithm === 'fixed-window',
    windowMs,
    limit,
  }
}

/**
 * The milliseconds in which what remains comes back at the policy's rate, for at least one token: a client that spreads what remains over
 * them is never denied, and is never told of more than the rate. Sliding windows and logs may give the next token after the last one
 * later than that, which the denial then says. Of a fixed window when it ends; of one not begun its whole length; of permits when the
 * last one ends if nobody renews it. What denies is not above its retry-after.
 */
export function effectiveWindowMs(quota: Quota, decision: Decision): number {
  const { remaining, resetAfterMs, retryAfterMs } = decision
  let ms: number
  if (quota.isConcurrency) ms = resetAfterMs
  else if (quota.endsAtOnce) ms = resetAfterMs === 0 ? quota.windowS * 1000 : resetAfterMs
  else ms = (Math.max(1, remaining) * quota.windowMs) / quota.limit
  return isDenial(decision) ? Math.min(ms, retryAfterMs) : ms
}

/** {@link effectiveWindowMs} in whole seconds, rounded up. */
export function effectiveWindowS(quota: Quota, decision: Decision): number {
  return Math.ceil(effectiveWindowMs(quota, decision) / 1000)
}

/** Whether it is one that time can mend. */
function isDenial({ allowed, retryAfterMs }: Decision): boolean {
  return !allowed && retryAfterMs !== Number.POSITIVE_INFINITY
}

/** `Retry-After`: whole seconds, rounded up, never 0. Source: RFC 9110, section 10.2.3. */
export function retryAfterS(retryAfterMs: number): string {
  return String(Math.max(1, Math.ceil(retryAfterMs / 1000)))
}

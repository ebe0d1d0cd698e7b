import type { Decision } from 'sluicegate'
import type { Arrival } from './arrivals.js'
import { hasBurst, type Outcome, policyOf, type RatePolicy } from './decide.js'

/** Requests of a stretch of time. */
export interface Bin {
  allowed: number
  denied: number
}

/** Admitted and denied requests in stretches of equal length. */
export function binsOf(arrivals: readonly Arrival[], decisions: readonly Decision[], seconds: number, count: number): Bin[] {
  const bins = Array.from({ length: count }, (): Bin => ({ allowed: 0, denied: 0 }))
  for (const [i, { atMs }] of arrivals.entries()) {
    const bin = bins[Math.min(count - 1, Math.floor((atMs / (seconds * 1000)) * count))] as Bin
    if (decisions[i]?.allowed) bin.allowed++
    else bin.denied++
  }
  return bins
}

/** What is known at a moment. */
export interface Reading {
  readonly allowed: number
  readonly denied: number
  readonly left: number
  /** Of the last request until then: how long it has to wait, if it was denied. */
  readonly retryAfterMs: number | undefined
}

export function readingAt(ms: number, arrivals: readonly Arrival[], { decisions, left }: Outcome, seconds: number): Reading {
  let allowed = 0
  let last: Decision | undefined
  let seen = 0
  for (; seen < arrivals.length && (arrivals[seen] as Arrival).atMs <= ms; seen++) {
    last = decisions[seen]
    if (last?.allowed) allowed++
  }
  const sample = Math.round((ms / (seconds * 1000)) * (left.length - 1))
  return {
    allowed,
    denied: seen - allowed,
    left: left[Math.min(left.length - 1, sample)] ?? 0,
    retryAfterMs: last === undefined || last.allowed ? undefined : last.retryAfterMs,
  }
}

/** The most that a key may have been admitted until `ms`: what there is at once, and what comes back. */
export function budgetAt(rate: RatePolicy, ms: number): number {
  const { windowMs, limit, burst } = policyOf(rate)
  if (hasBurst(rate)) return burst + (limit * ms) / windowMs
  // Windows: each has its limit at once. A sliding one comes back piece by piece, and at least once a window.
  return limit * (Math.floor(ms / windowMs) + 1)
}

/** What the numbers of a policy mean, in a sentence. */
export function meaningOf(rate: RatePolicy): string {
  const { windowMs, limit, burst } = policyOf(rate)
  const each = durationText(windowMs / limit)
  const window = durationText(windowMs)
  switch (rate.algorithm) {
    case 'token-bucket':
    case 'gcra':
      return burst === 1
        ? `One request, then one every ${each}: evenly spaced.`
        : `Burst ${count(burst)}: that many at once, if nothing was spent before. Then one token comes back every ${each}, ${count(limit)} per ${window}.`
    case 'fixed-window':
      return `${count(limit)} in each window of ${window}; all of them may come at once. Around the end of a window up to ${count(2 * limit)} pass in a moment.`
    case 'sliding-window':
      return `About ${count(limit)} in any ${window}: the last window counts in part.`
    case 'sliding-log':
      return `Exactly ${count(limit)} in any ${window}: each request comes back ${window} after it was made.`
  }
}

export function count(value: number): string {
  return value.toLocaleString('en')
}

/** `600 ms`, `1.5 s`, `2 min`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${rounded(ms)} ms`
  if (ms < 60_000) return `${rounded(ms / 1000)} s`
  if (ms < 3_600_000) return `${rounded(ms / 60_000)} min`
  return `${rounded(ms / 3_600_000)} h`
}

function rounded(value: number): string {
  return String(Number(value.toPrecision(3)))
}

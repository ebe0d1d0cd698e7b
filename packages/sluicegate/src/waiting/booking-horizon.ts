import type { Policy } from '../policy/policy.js'

/** Days, months and years of a calendar are never shorter than this share of the longest. */
const SHORTEST_CALENDAR = 0.9

/** Whether waiters book ahead under a policy: permits are released any time, and takes under several policies are made together. */
export function isBookedAhead({ algorithm }: Policy): boolean {
  return algorithm !== 'concurrency' && algorithm !== 'all-of'
}

/**
 * How far ahead waiters book: as far as one request alone may have to wait, and no further. All others stand in line without a booking. So
 * whatever is booked and given up, a key is open again after that time at the latest.
 *
 * | policy | furthest |
 * | --- | --- |
 * | token bucket, GCRA | the time in which a whole burst flows back, at least a window |
 * | fixed window, sliding log | a window |
 * | sliding window | the end of the next window |
 */
export class BookingHorizon {
  private readonly policy: Policy
  private readonly windowUs: number
  private readonly limit: number

  constructor(policy: Policy) {
    this.policy = policy
    this.windowUs = policy.windowMs * 1000
    this.limit = policy.limit
  }

  /** Microseconds from `nowUs` on within which a waiter books. */
  aheadUs(nowUs: number): number {
    const { algorithm, burst } = this.policy
    const { windowUs, limit } = this
    if (algorithm === 'sliding-window') return Math.ceil(2 * windowUs - (nowUs % windowUs))
    // A log counts in ticks, a rate in units: both round up.
    const slackUs = algorithm === 'fixed-window' ? 0 : windowUs / 64
    const bursts = algorithm === 'token-bucket' || algorithm === 'gcra' ? Math.max(1, burst / limit) : 1
    return Math.ceil(windowUs * bursts + slackUs)
  }

  /** The first reading at which `atUs` is no further ahead than that. */
  bookableUs(atUs: number): number {
    const { windowUs } = this
    if (this.policy.algorithm === 'sliding-window') return (Math.ceil(atUs / windowUs) - 2) * windowUs
    return atUs - this.aheadUs(atUs)
  }

  /** The earliest reading at which `tokens` can all have passed, when the first of them can at `firstUs`. */
  allPassedUs(firstUs: number, first: number, tokens: number): number {
    const { algorithm, calendar } = this.policy
    const { windowUs, limit } = this
    if (algorithm === 'token-bucket' || algorithm === 'gcra') return firstUs + Math.floor(((tokens - first) * windowUs) / limit)
    const windows = Math.ceil(tokens / limit) - 1
    if (windows <= 0) return firstUs
    if (calendar !== undefined) return firstUs + Math.floor((windows - 1) * windowUs * SHORTEST_CALENDAR)
    const fromUs = algorithm === 'sliding-log' ? firstUs : firstUs - (firstUs % windowUs)
    return Math.max(firstUs, fromUs + windows * windowUs)
  }
}

import type { Clock, Ticker } from '../clock.js'
import { tickerOf } from '../clock.js'
import type { Decision } from '../decision.js'
import type { Asking } from '../lease/asked.js'
import { goodForUs, surelyUs } from '../lease/leasing.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'

/** How often a caller looks again before it asks the store for itself: those of a larger cost find what others left. */
const MOST_LOOKS = 8
const MOST_LOOKS_OF_LARGER = 2
/** How often what came too late is asked for; and when it came in time, but for a window that ended. */
const MOST_TRIES = 2
const MOST_WINDOW_TRIES = 64

/** What is asked when a lease cannot answer. */
export interface Beyond {
  /** One atomic call. */
  take(key: Key, cost: number): Promise<Decision>
  peek(key: Key, cost: number): Promise<Decision>
  /** Whether one call can charge them together. */
  isTogether(keys: readonly string[]): boolean
  /** Whether the store is not asked at all for now. */
  isOut(key: string): boolean
  /** The store answered: too late for what it gave to be spent, or not. */
  answered(isLate: boolean): void
  /** The store cannot be reached. */
  without(key: Key, cost: number): Decision
}

/** A take that waits for leases. */
export interface PendingTake {
  readonly key: Key
  readonly cost: number
  /** Spends and decides, if that can be done here now. */
  decide(): Decision | undefined
  /** Waits for more of what it lacks. */
  next(): Promise<Asking>
  /** Decides without what is held for all. */
  atOnce(): Promise<Decision>
}

/** What takes of leased policies do when what is held does not decide. */
export class BeyondLeases {
  readonly calls: Beyond
  private readonly policy: Policy
  private readonly ticker: Ticker
  private readonly leaseUs: number
  private readonly goodUs: number

  constructor(calls: Beyond, policy: Policy, clock: Clock, leaseUs: number) {
    this.calls = calls
    this.policy = policy
    this.ticker = tickerOf(clock)
    this.leaseUs = leaseUs
    this.goodUs = surelyUs(leaseUs)
  }

  /** Waits for leases, and looks again whenever one has come. */
  async fetched(take: PendingTake): Promise<Decision> {
    const mostLooks = take.cost > 1 ? MOST_LOOKS_OF_LARGER : MOST_LOOKS
    let late = 0
    for (let looks = 0; looks < mostLooks; looks++) {
      const answer = await take.next()
      const decision = take.decide()
      if (decision !== undefined) return decision
      // A process that was stopped finds its answer late: that is no outage yet.
      if (answer === 'out' || (answer === 'late' && ++late === MOST_TRIES)) return this.calls.without(take.key, take.cost)
    }
    return take.atOnce()
  }

  /** By the store alone. What comes too late to be spent within the budget is lost, and is asked for once more. */
  async exactly(key: Key, cost: number): Promise<Decision> {
    let late = 0
    for (let tries = 0; late < MOST_TRIES && tries < MOST_WINDOW_TRIES; tries++) {
      const sentUs = this.ticker.read()
      const decision = await this.calls.take(key, cost)
      if (decision.source !== 'store') return decision
      const tookUs = this.ticker.read() - sentUs
      const isLate = tookUs > this.goodUs
      this.calls.answered(isLate)
      if (!decision.allowed || tookUs <= goodForUs(this.policy, decision, this.leaseUs)) return decision
      if (isLate) late++
    }
    return this.calls.without(key, cost)
  }
}

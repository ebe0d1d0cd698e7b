import type { Decision } from '../../decision/decision.js'
import { isOutage } from '../../errors.js'
import { learnedBy, type OpenRequest } from '../../holds/hold.js'
import { LearnedCost } from '../../holds/learned-cost.js'
import type { Key } from '../../limiter.js'
import { type Clock, type Ticker, tickerOf } from '../../time/clock.js'
import { Alarm, type Alert } from '../../waiting/alarm.js'
import type { Answer, HoldOperation } from '../backend.js'
import type { PolicyInForce } from '../policy-in-force.js'
import type { SharedWaiting } from '../waiting/shared-waiting.js'

/** What all steps of one work have in common. */
export type HoldStep = Pick<HoldOperation, 'verb' | 'key' | 'id' | 'ttlUs' | 'isDebt'>

/** Half of all works cost no more than a third of what 99 of 100 do. */
const FIRST_SHARE = 0.3
/** What was spent counts for so much less with each work that closes. */
const PACE_KEPT = 0.97
/** Pieces of so long are granted at once. */
export const AHEAD_US = 4_000_000

/** What all open work of one limiter over a store has in common. */
export class WorkPlace {
  readonly inForce: PolicyInForce
  readonly waiting: SharedWaiting
  readonly record: (key: Key, cost: number, decision: Decision) => Decision
  readonly learned = new LearnedCost()
  private readonly pace = { tokens: 0, us: 0 }
  readonly ticker: Ticker
  readonly alarm: Alarm
  /** With an alert. */
  readonly open = new Set<Alert>()

  /** @param record counts and publishes a decision that a caller gets. */
  constructor(inForce: PolicyInForce, waiting: SharedWaiting, clock: Clock, record: WorkPlace['record']) {
    this.inForce = inForce
    this.waiting = waiting
    this.record = record
    this.ticker = tickerOf(clock)
    this.alarm = new Alarm(clock, () => this.close())
  }

  /** Of all work that is open here nothing more is known. */
  close(): void {
    for (const work of this.open) this.alarm.clear(work)
    this.open.clear()
  }

  /** What is held for work of which this is asked. */
  expected(key: Key, request: OpenRequest): number {
    const { policies = [this.inForce.policy] } = this.inForce.policy
    return this.learned.expected(request, learnedBy(key), Math.min(...policies.map(({ burst }) => burst)))
  }

  /** Work has spent tokens in a time. */
  ran(tokens: number, us: number): void {
    this.pace.tokens = this.pace.tokens * PACE_KEPT + tokens
    this.pace.us = this.pace.us * PACE_KEPT + us
  }

  /** Of what is expected, what work is granted when it begins: as later, pieces of {@link AHEAD_US} at the pace of work of late. */
  first(expected: number): number {
    const { tokens, us } = this.pace
    const ahead = us === 0 ? Number.POSITIVE_INFINITY : (tokens * AHEAD_US) / us
    return Math.max(1, Math.ceil(Math.min(ahead, expected * FIRST_SHARE)))
  }

  /** What was held is free: cached denials are void, and who waits may have it. @param decision of the store, undefined in an outage. */
  freed(key: Key, decision: Decision | undefined): void {
    if (decision !== undefined) this.inForce.now.leases?.refunded(key, decision)
    this.waiting.released(key)
  }

  /** The answer of the store; undefined in an outage. */
  async answerTo(operation: HoldOperation): Promise<Answer | undefined> {
    try {
      return await this.inForce.now.backend.execute(operation)
    } catch (error) {
      if (isOutage(error)) return undefined
      throw error
    }
  }
}

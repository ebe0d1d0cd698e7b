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

/** What holds over a store use of their limiter. */
export interface HoldsParts {
  readonly inForce: PolicyInForce
  readonly waiting: SharedWaiting
  readonly clock: Clock
  readonly record: (key: Key, cost: number, decision: Decision) => Decision
}

/** What all steps of one work have in common. */
export type HoldStep = Pick<HoldOperation, 'verb' | 'key' | 'id' | 'ttlUs' | 'isDebt'>

/** What all open work of one limiter over a store has in common. */
export class WorkPlace {
  readonly parts: HoldsParts
  readonly learned = new LearnedCost()
  readonly ticker: Ticker
  readonly alarm: Alarm
  /** With an alert. */
  readonly open = new Set<Alert>()

  constructor(parts: HoldsParts) {
    this.parts = parts
    this.ticker = tickerOf(parts.clock)
    this.alarm = new Alarm(parts.clock, () => this.close())
  }

  /** Of all work that is open here nothing more is known. */
  close(): void {
    for (const work of this.open) this.alarm.clear(work)
    this.open.clear()
  }

  /** What is held for work of which this is asked. */
  expected(key: Key, request: OpenRequest): number {
    const { policies = [this.parts.inForce.policy] } = this.parts.inForce.policy
    return this.learned.expected(request, learnedBy(key), Math.min(...policies.map(({ burst }) => burst)))
  }

  /** What was held is free: cached denials are void, and who waits may have it. @param decision of the store, undefined in an outage. */
  freed(key: Key, decision: Decision | undefined): void {
    const { inForce, waiting } = this.parts
    if (decision !== undefined) inForce.parts.leases?.refunded(key, decision)
    waiting.released(key)
  }

  /** The answer of the store; undefined in an outage. */
  async answerTo(operation: HoldOperation): Promise<Answer | undefined> {
    const { inForce } = this.parts
    try {
      return await inForce.parts.backend.execute(operation)
    } catch (error) {
      if (isOutage(error)) return undefined
      throw error
    }
  }
}

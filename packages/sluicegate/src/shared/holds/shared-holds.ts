import type { Awaitable } from '../../awaitable.js'
import { type Decision, refusal } from '../../decision/decision.js'
import { isOutage, PolicyError } from '../../errors.js'
import { checkedOpenRequest, type Hold, type OpenOptions, type OpenRequest, uncountedHold } from '../../holds/hold.js'
import { LearnedCost } from '../../holds/learned-cost.js'
import type { Key } from '../../limiter.js'
import { type Clock, type Ticker, tickerOf } from '../../time/clock.js'
import { Alarm } from '../../waiting/alarm.js'
import { type Answer, decisionOf, type HoldOperation, newOperationId } from '../backend.js'
import type { PolicyInForce } from '../policy-in-force.js'
import type { SharedWaiting } from '../waiting/shared-waiting.js'
import { SharedHold } from './shared-hold.js'
import { SharedWork } from './shared-work.js'

/** Of the expectation, what a process is granted when work begins: half of all works cost no more than a third of what 99 of 100 do. */
const FIRST_SHARE = 0.3

/** What {@link SharedHolds} use of their limiter. */
export interface HoldsParts {
  readonly inForce: PolicyInForce
  readonly waiting: SharedWaiting
  readonly clock: Clock
  readonly record: (key: Key, cost: number, decision: Decision) => Decision
}

/**
 * Holds over a store (ADR 26). The store keeps what is held; of that it grants some to this process, which spends it by itself. So most pieces of
 * work need no call.
 */
export class SharedHolds {
  readonly parts: HoldsParts
  readonly learned = new LearnedCost()
  readonly ticker: Ticker
  readonly alarm: Alarm
  /** With an alert. */
  readonly open = new Set<SharedWork>()

  constructor(parts: HoldsParts) {
    this.parts = parts
    this.ticker = tickerOf(parts.clock)
    this.alarm = new Alarm(parts.clock, () => this.close())
  }

  async begin(key: Key, options: OpenOptions): Promise<Hold<Awaitable<boolean>, 'later'>> {
    const { inForce, waiting } = this.parts
    const request = checkedOpenRequest(options)
    const { policy } = inForce
    const concurrent = (policy.policies ?? [policy]).find(({ algorithm }) => algorithm === 'concurrency')
    if (concurrent !== undefined) {
      throw new PolicyError('POLICY_INVALID', 'policy', concurrent.name, 'is concurrency, whose permits are holds already: take() one')
    }
    const expected = this.expected(key, request)
    if (waiting.isQueued(key)) return this.refused(key, expected, await this.denied(key, expected))
    const sentUs = this.ticker.read()
    const want = Math.max(1, Math.ceil(expected * FIRST_SHARE))
    const step = stepOf(key, request)
    const answer = await this.answerTo({ ...step, spent: 0, hold: expected, want, least: 1 })
    if (answer !== undefined && !answer.done) return this.refused(key, expected, decisionOf(answer))
    const decision = answer === undefined ? this.without(key, expected) : decisionOf(answer)
    if (!decision.allowed) return this.refused(key, expected, decision)
    this.parts.record(key, expected, decision)
    const work = new SharedWork(this, step, request)
    if (answer !== undefined) work.answered(answer, sentUs)
    return new SharedHold(decision, work)
  }

  /** Of all work that is open here nothing more is known. */
  close(): void {
    for (const work of this.open) this.alarm.clear(work)
    this.open.clear()
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

  private expected(key: Key, request: OpenRequest): number {
    const { policies = [this.parts.inForce.policy] } = this.parts.inForce.policy
    return this.learned.expected(request, learnedBy(key), Math.min(...policies.map(({ burst }) => burst)))
  }

  /** In an outage nothing is held: each piece is decided by itself. */
  private without(key: Key, expected: number): Decision {
    return this.parts.inForce.fallback.foreseenWithout(key, expected)
  }

  private async denied(key: Key, expected: number): Promise<Decision> {
    return refusal(decisionOf(await this.parts.inForce.fallback.execute({ verb: 'peek', key, cost: expected })))
  }

  private refused(key: Key, expected: number, decision: Decision): Hold<Awaitable<boolean>, 'later'> {
    const recorded = this.parts.record(key, expected, decision)
    const hold = uncountedHold(recorded)
    const close = hold.close.bind(hold)
    return Object.assign(hold, { close: async (cost?: number) => close(cost) })
  }
}

/** What all steps of one work have in common. */
export type HoldStep = Pick<HoldOperation, 'verb' | 'key' | 'id' | 'ttlUs' | 'isDebt'>

function stepOf(key: Key, { ttlUs }: OpenRequest): HoldStep {
  // Half a ttl longer than here, so that an add has to reach the store only when half a ttl has gone by.
  return { verb: 'hold', key, id: newOperationId(), ttlUs: Math.ceil(ttlUs * 1.5), isDebt: false }
}

/** Of several levels the last is the narrowest, as a rule. */
export function learnedBy(key: Key): string {
  return typeof key === 'string' ? key : (key[key.length - 1] as string)
}

import type { Decision } from '../../decision/decision.js'
import type { RefillOutcome } from '../../lease/grant.js'
import { goodForUs, surelyUs } from '../../lease/leasing.js'
import type { Key } from '../../limiter.js'
import type { Policy } from '../../policy/policy.js'
import { type Clock, type Ticker, tickerOf } from '../../time/clock.js'
import { warnOfStore } from '../../warn-once.js'
import { type Answer, decisionOf, newOperationId } from '../backend.js'
import type { CallGuard } from '../calls/call-guard.js'
import type { FallbackBackend } from '../outage/fallback-backend.js'

/** How often a caller looks again before it asks the backend alone. Larger costs find what others left. */
const MOST_LOOKS = 8
const MOST_LOOKS_OF_LARGER = 2
/** How often a take is repeated whose answer came too late; and whose answer came in time for a window that had ended. */
const MOST_TRIES = 2
const MOST_WINDOW_TRIES = 64
/** Calls that a take may wait for whatever they take: the first one of a process that stood still is answered late. */
const SURE_CALLS = 2

/** What {@link LeaseMiss} uses. */
export interface LeaseMissParts {
  /** The backend of the policy now in force, which decides in an outage too. */
  readonly fallback: () => Pick<FallbackBackend, 'execute' | 'without'>
  readonly guard: Pick<CallGuard, 'pausedMs' | 'isTogether' | 'timeoutMs'>
  readonly late: Pick<LateAnswers, 'answered'>
  readonly clock: Clock
}

/** A take that waits for leases. */
export interface PendingTake {
  readonly key: Key
  readonly cost: number
  /** Spends and decides, if this process can now. */
  decide(): Decision | undefined
  /** Waits for more tokens. */
  awaitRefill(): Promise<RefillOutcome>
  /** Decides by the backend alone. */
  exact(): Promise<Decision>
}

/** What a take does when the tokens that are held do not decide it. */
export class LeaseMiss {
  private readonly parts: LeaseMissParts
  private readonly policy: Policy
  private readonly ticker: Ticker
  private readonly leaseUs: number
  private readonly goodUs: number

  constructor(parts: LeaseMissParts, policy: Policy, leaseUs: number) {
    this.parts = parts
    this.policy = policy
    this.ticker = tickerOf(parts.clock)
    this.leaseUs = leaseUs
    this.goodUs = surelyUs(leaseUs)
  }

  /** Whether the backend is not asked about a key for now. */
  isOut(key: string): boolean {
    return this.parts.guard.pausedMs(key) > 0
  }

  /** Whether one call can charge the keys together. */
  isTogether(keys: readonly string[]): boolean {
    return this.parts.guard.isTogether(keys)
  }

  /** Decides as in an outage. */
  without(key: Key, cost: number): Decision {
    return this.parts.fallback().without(key, cost)
  }

  peek(key: Key, cost: number): Promise<Decision> {
    return this.decided(this.parts.fallback().execute({ verb: 'peek', key, cost }))
  }

  /**
   * Waits for leases, and looks again after each. After {@link SURE_CALLS} it waits for no further call once the timeout is over: other takes of
   * the key may have spent what each of them brought.
   */
  async decideAfterRefill(take: PendingTake): Promise<Decision> {
    const mostLooks = take.cost > 1 ? MOST_LOOKS_OF_LARGER : MOST_LOOKS
    const sinceUs = this.ticker.read()
    let late = 0
    for (let looks = 0; looks < mostLooks; looks++) {
      const answer = await take.awaitRefill()
      if (answer === 'alone') return take.exact()
      const decision = take.decide()
      if (decision !== undefined) return decision
      // A process that was stopped finds its answer late: one late answer is no outage yet.
      const isOut = answer === 'out' || (answer === 'late' && ++late === MOST_TRIES)
      if (isOut || this.isOver(sinceUs, looks + 1)) return this.without(take.key, take.cost)
    }
    return take.exact()
  }

  /** By the backend alone. A token whose answer came too late to be spent within the budget is lost, and asked for once more. */
  async exact(key: Key, cost: number): Promise<Decision> {
    const sinceUs = this.ticker.read()
    let late = 0
    for (let tries = 0; late < MOST_TRIES && tries < MOST_WINDOW_TRIES && !this.isOver(sinceUs, tries); tries++) {
      const sentUs = this.ticker.read()
      const decision = await this.decided(this.parts.fallback().execute({ verb: 'take', key, cost, id: newOperationId() }))
      if (decision.source !== 'store') return decision
      const nowUs = this.ticker.read()
      const tookUs = nowUs - sentUs
      const isLate = tookUs > this.goodUs
      this.parts.late.answered(isLate, nowUs, this.leaseUs)
      if (!decision.allowed || tookUs <= goodForUs(this.policy, decision, this.leaseUs)) return decision
      if (isLate) late++
    }
    return this.without(key, cost)
  }

  private isOver(sinceUs: number, calls: number): boolean {
    return calls >= SURE_CALLS && this.ticker.read() - sinceUs >= this.parts.guard.timeoutMs * 1000
  }

  private decided(answer: Promise<Answer>): Promise<Decision> {
    return answer.then(decisionOf)
  }
}

/** After a stall of this process all answers are late, which says nothing about the network unless it goes on for this many leases. */
const LATE_LEASES = 10
const LATE_IN_A_ROW = 3

/**
 * Answers whose tokens had expired when they came. Several in a row mean that the network is slower than a lease is long: the process warns
 * once.
 */
export class LateAnswers {
  count = 0
  private inARow = 0
  private sinceUs = 0
  private readonly mend: string
  private readonly warn: (message: string) => void

  /** @param mend what to do about it, for the warning. */
  constructor(mend: string, warn = warnOfSlowStore) {
    this.mend = mend
    this.warn = warn
  }

  /** @param leaseUs the length of a lease. */
  answered(isLate: boolean, nowUs: number, leaseUs: number): void {
    this.inARow = isLate ? this.inARow + 1 : 0
    if (!isLate) return
    if (this.inARow === 1) this.sinceUs = nowUs
    this.count++
    if (this.inARow < LATE_IN_A_ROW || nowUs - this.sinceUs < LATE_LEASES * leaseUs) return
    this.inARow = 0
    this.warn(
      `answers take longer than a lease of ${leaseUs / 1000} ms, so that nothing they give can be spent: ${this.mend}; see node_modules/sluicegate/docs/outages.md`,
    )
  }
}

function warnOfSlowStore(message: string): void {
  warnOfStore('SLUICEGATE_SLOW_STORE', message)
}

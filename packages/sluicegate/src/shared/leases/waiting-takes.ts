import type { Decision } from '../../decision/decision.js'
import type { RefillOutcome } from '../../lease/grant.js'
import { goodForUs, surelyUs } from '../../lease/leasing.js'
import type { Key } from '../../limiter.js'
import type { Policy } from '../../policy/policy.js'
import { type Clock, type Ticker, tickerOf } from '../../time/clock.js'
import { type Answer, bookedBy, decisionOf, newOperationId, takenBy } from '../backend.js'
import type { CallGuard } from '../calls/call-guard.js'
import type { FallbackBackend } from '../outage/fallback-backend.js'
import type { LateAnswers } from './late-answers.js'
import type { Spending } from './spending.js'

/** How often a caller looks again before it asks the backend alone. Larger costs find what others left. */
const MOST_LOOKS = 8
const MOST_LOOKS_OF_LARGER = 2
/** How often a take is repeated whose answer came too late; and whose answer came in time for a window that had ended. */
const MOST_TRIES = 2
const MOST_WINDOW_TRIES = 64
/** Calls that a take may wait for whatever they take: the first one of a process that stood still is answered late. */
const SURE_CALLS = 2

/** Of the policy that is in force now: a take that waits across an update is decided under the new one. */
export interface InForce {
  fallback: Pick<FallbackBackend, 'execute' | 'without'>
}

/** What {@link WaitingTakes} use. */
export interface WaitingTakesParts {
  readonly policy: Policy
  readonly inForce: InForce
  readonly guard: Pick<CallGuard, 'pausedMs' | 'isTogether' | 'timeoutMs'>
  readonly late: Pick<LateAnswers, 'answered'>
  readonly clock: Clock
  /** The length of a lease. */
  readonly leaseUs: number
}

/** Takes that the held tokens do not decide: they wait for a refill, or go to the backend alone. */
export abstract class WaitingTakes {
  protected readonly ticker: Ticker
  protected readonly parts: WaitingTakesParts
  private readonly goodUs: number

  constructor(parts: WaitingTakesParts) {
    this.parts = parts
    this.ticker = tickerOf(parts.clock)
    this.goodUs = surelyUs(parts.leaseUs)
  }

  /** Spends and decides, if this process can now. */
  protected abstract decide(key: Key, cost: number, spending: Spending | undefined): Decision | undefined
  /** Waits for more tokens. */
  protected abstract awaitRefill(key: Key, cost: number): Promise<RefillOutcome> | RefillOutcome
  /** Decides by the backend alone, and caches what it says. */
  protected abstract alone(key: Key, cost: number, spending: Spending | undefined): Promise<Decision>

  /**
   * Waits for leases, and looks again after each. After {@link SURE_CALLS} it waits for no further call once the timeout is over: other takes of
   * the key may have spent what each of them brought.
   */
  protected async decideLater(key: Key, cost: number, spending: Spending | undefined): Promise<Decision> {
    const mostLooks = cost > 1 ? MOST_LOOKS_OF_LARGER : MOST_LOOKS
    const sinceUs = this.ticker.read()
    let late = 0
    for (let looks = 0; looks < mostLooks; looks++) {
      const outcome = await this.awaitRefill(key, cost)
      if (outcome === 'alone') break
      const decision = this.decide(key, cost, spending)
      if (decision !== undefined) return decision
      // A process that was stopped finds its answer late: one late answer is no outage yet.
      const isOut = outcome === 'out' || (outcome === 'late' && ++late === MOST_TRIES)
      if (isOut || this.isOver(sinceUs, looks + 1)) return this.without(key, cost)
    }
    return this.alone(key, cost, spending)
  }

  /** By the backend alone. A token whose answer came too late to be spent within the budget is lost, and asked for once more. */
  protected async exact(key: Key, cost: number, spending: Spending | undefined): Promise<Decision> {
    const { policy, inForce, late: answers, leaseUs } = this.parts
    const sinceUs = this.ticker.read()
    let late = 0
    for (let tries = 0; late < MOST_TRIES && tries < MOST_WINDOW_TRIES && !this.isOver(sinceUs, tries); tries++) {
      const sentUs = this.ticker.read()
      const operation = { verb: 'take', key, cost, id: newOperationId(), isHeld: spending !== undefined } as const
      const answer = await inForce.fallback.execute(operation)
      const decision = takenBy(operation, answer)
      if (decision.source !== 'store') return decision
      const nowUs = this.ticker.read()
      const tookUs = nowUs - sentUs
      const isLate = tookUs > this.goodUs
      answers.answered(isLate, nowUs, leaseUs)
      if (!decision.allowed || tookUs <= goodForUs(policy, decision, leaseUs)) {
        if (spending !== undefined) spending.booked = bookedBy(operation, answer)
        return decision
      }
      if (isLate) late++
    }
    return this.without(key, cost)
  }

  protected async peekThere(key: Key, cost: number): Promise<Decision> {
    const answer: Answer = await this.parts.inForce.fallback.execute({ verb: 'peek', key, cost })
    return decisionOf(answer)
  }

  /** Decides as in an outage. */
  protected without(key: Key, cost: number): Decision {
    return this.parts.inForce.fallback.without(key, cost)
  }

  /** Whether the backend is not asked about a key for now. */
  protected isOut(key: string): boolean {
    return this.parts.guard.pausedMs(key) > 0
  }

  private isOver(sinceUs: number, calls: number): boolean {
    return calls >= SURE_CALLS && this.ticker.read() - sinceUs >= this.parts.guard.timeoutMs * 1000
  }
}

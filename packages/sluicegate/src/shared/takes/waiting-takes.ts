import type { Decision } from '../../decision/decision.js'
import type { RefillOutcome } from '../../lease/grant.js'
import type { Key } from '../../limiter.js'
import { type Clock, type Ticker, tickerOf } from '../../time/clock.js'
import { type Answer, type Charge, canComeBack, decisionOf, newOperationId, reservedBy, takenBy } from '../backend.js'
import type { CallGuard } from '../calls/call-guard.js'
import type { FallbackBackend } from '../outage/fallback-backend.js'

/** How often a caller looks again before it asks the backend alone. Larger costs find what others left. */
const MOST_LOOKS = 8
const MOST_LOOKS_OF_LARGER = 2
/** Calls that a take may wait for whatever they take. */
const SURE_CALLS = 2

/** What {@link WaitingTakes} use. */
export interface WaitingTakesParts {
  /** Of the policy that is in force now: a take that waits across an update is decided under the new one. */
  readonly inForce: { readonly fallback: Pick<FallbackBackend, 'execute' | 'takeWithout'> }
  readonly guard: Pick<CallGuard, 'pausedMs' | 'isTogether' | 'timeoutMs'>
  readonly clock: Clock
}

/** Takes that the held tokens do not decide: they wait for a refill, or go to the backend alone. */
export abstract class WaitingTakes {
  protected readonly ticker: Ticker
  protected readonly parts: WaitingTakesParts

  constructor(parts: WaitingTakesParts) {
    this.parts = parts
    this.ticker = tickerOf(parts.clock)
  }

  /** Spends and decides, if this process can now. */
  protected abstract decide(key: Key, cost: number, charges: Charge[] | undefined): Decision | undefined
  /** Waits for more tokens. */
  protected abstract awaitRefill(key: Key, cost: number): Promise<RefillOutcome> | RefillOutcome
  /** Decides by the backend alone, and caches what it says. */
  protected abstract alone(key: Key, cost: number, charges: Charge[] | undefined): Promise<Decision>

  /**
   * Waits for leases, and looks again after each. After {@link SURE_CALLS} it waits for no further call once the timeout is over: other takes of
   * the key may have spent what each of them brought.
   */
  protected async decideLater(key: Key, cost: number, charges: Charge[] | undefined): Promise<Decision> {
    const mostLooks = cost > 1 ? MOST_LOOKS_OF_LARGER : MOST_LOOKS
    const sinceUs = this.ticker.read()
    for (let looks = 0; looks < mostLooks; looks++) {
      const outcome = await this.awaitRefill(key, cost)
      if (outcome === 'alone') break
      const decision = this.decide(key, cost, charges)
      if (decision !== undefined) return decision
      // Over a slow network, or after a stop of this process, no lease can be spent; what the backend decides by itself counts at its time.
      if (outcome === 'late') break
      if (outcome === 'out' || this.isOver(sinceUs, looks + 1)) return this.without(key, cost)
    }
    return this.alone(key, cost, charges)
  }

  /** By the backend, by whose clock it counts: it may take as long as it will. */
  protected async exact(key: Key, cost: number, charges: Charge[] | undefined, demand?: number): Promise<Decision> {
    const operation = { verb: 'take', key, cost, id: newOperationId(), canSettle: charges !== undefined, demand } as const
    const answer = await this.parts.inForce.fallback.execute(operation)
    const reserved = reservedBy(operation, answer)
    if (charges !== undefined && canComeBack(reserved)) charges.push(reserved)
    return takenBy(operation, answer)
  }

  protected async peekThere(key: Key, cost: number): Promise<Decision> {
    const answer: Answer = await this.parts.inForce.fallback.execute({ verb: 'peek', key, cost })
    return decisionOf(answer)
  }

  /** Decides as in an outage. */
  protected without(key: Key, cost: number): Decision {
    return this.parts.inForce.fallback.takeWithout(key, cost)
  }

  /** Whether the backend is not asked about a key for now. */
  protected isOut(key: string): boolean {
    return this.parts.guard.pausedMs(key) > 0
  }

  private isOver(sinceUs: number, calls: number): boolean {
    return calls >= SURE_CALLS && this.ticker.read() - sinceUs >= this.parts.guard.timeoutMs * 1000
  }
}

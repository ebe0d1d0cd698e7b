import type { Decision } from '../decision.js'
import { emissionOf } from './emission.js'
import type { Policy } from './policy.js'
import type { Terms } from './terms.js'

/** Token bucket and GCRA: the debt says it all. Debts are in units (see `emission.ts`), >= 0. */
export class RateTerms implements Terms {
  readonly policy: Policy
  readonly unitsPerToken: number
  readonly unitsPerUs: number
  readonly numbers: string
  private readonly unitsPerMs: number
  readonly capacity: number
  private readonly burst: number
  private readonly limit: number
  private readonly name: string

  /** @param capacity in units; when it is less than that of the policy's burst. */
  constructor(policy: Policy, capacity?: number) {
    const emission = emissionOf(policy)
    const { unitsPerUs, unitsPerToken } = emission
    this.capacity = capacity ?? emission.capacity
    this.policy = policy
    this.unitsPerToken = unitsPerToken
    this.unitsPerUs = unitsPerUs
    this.numbers = `${unitsPerUs} ${unitsPerToken} ${this.capacity}`
    this.unitsPerMs = unitsPerUs * 1000
    this.burst = Math.min(policy.burst, Math.floor(this.capacity / unitsPerToken))
    this.limit = policy.limit
    this.name = policy.name
  }

  // Debts and their quotients are exact in doubles: both stay below 2^53.
  allowed(debt: number): Decision {
    return this.decision(true, debt, 0)
  }

  denied(debt: number, cost: number): Decision {
    return this.decision(false, debt, this.retryAfterMs(debt, cost))
  }

  foreseen(debt: number, cost: number, blockMs: number): Decision {
    const retryAfterMs = Math.max(blockMs, this.retryAfterMs(debt, cost))
    const decision = this.decision(retryAfterMs === 0, debt, retryAfterMs)
    // A blocked key is not as good as new, however full.
    return blockMs > decision.resetAfterMs ? { ...decision, resetAfterMs: blockMs } : decision
  }

  refused(cost: number, waitMs: number): Decision {
    const retryAfterMs = cost > this.burst ? Number.POSITIVE_INFINITY : waitMs
    return { ...this.decision(false, this.capacity, retryAfterMs), resetAfterMs: waitMs }
  }

  overflowed(newMs: number): Decision {
    return { ...this.decision(true, this.capacity, 0), resetAfterMs: newMs }
  }

  waitUs(debt: number): number {
    return Math.max(0, Math.ceil((debt - this.capacity) / this.unitsPerUs))
  }

  untilFreeUs(debt: number, cost: number): number {
    return cost > this.burst ? Number.POSITIVE_INFINITY : this.waitUs(debt + cost * this.unitsPerToken)
  }

  private retryAfterMs(debt: number, cost: number): number {
    if (cost > this.burst) return Number.POSITIVE_INFINITY
    return Math.max(0, Math.ceil((debt + cost * this.unitsPerToken - this.capacity) / this.unitsPerMs))
  }

  private decision(allowed: boolean, debt: number, retryAfterMs: number): Decision {
    const room = this.capacity - debt
    if (room < 0) return this.inDebt(allowed, debt, retryAfterMs)
    return {
      allowed,
      limit: this.limit,
      remaining: (room / this.unitsPerToken) | 0,
      retryAfterMs,
      resetAfterMs: Math.ceil(debt / this.unitsPerMs),
      policy: this.name,
      source: 'memory',
    }
  }

  private inDebt(allowed: boolean, debt: number, retryAfterMs: number): Decision {
    return {
      allowed,
      limit: this.limit,
      remaining: 0,
      retryAfterMs,
      resetAfterMs: Math.ceil(debt / this.unitsPerMs),
      policy: this.name,
      source: 'memory',
      spent: this.burst + Math.ceil((debt - this.capacity) / this.unitsPerToken),
    }
  }
}

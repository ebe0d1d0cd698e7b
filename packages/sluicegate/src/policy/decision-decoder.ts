import type { Decision } from '../decision.js'
import { emissionOf } from './emission.js'
import type { Policy } from './policy.js'

/** What a core's answers mean under a policy. Debts are in the core's units, 0 or more. */
export interface DecisionDecoder {
  readonly policy: Policy
  readonly unitsPerToken: number
  /** What debts are counted in: of two policies with the same numbers they mean the same. */
  readonly numbers: string
  /** The answer that leaves a key with this debt. */
  allowed(debt: number): Decision
  denied(debt: number, cost: number): Decision
  /** What a take of `cost` would get, were the key blocked for another `blockMs` (0: not blocked). */
  foreseen(debt: number, cost: number, blockMs: number): Decision
  /** For a newcomer without room, who may try again after `waitMs`. */
  refused(cost: number, waitMs: number): Decision
  /** For a newcomer without room that passed on a shared counter, which owes nothing after `newMs`. Nothing more is promised. */
  overflowed(newMs: number): Decision
  /** Microseconds until what was reserved, and left this debt, may be spent. */
  waitUs(debt: number): number
  /** Microseconds after which a take of `cost` that was denied would pass. */
  untilFreeUs(debt: number, cost: number): number
}

/** Token bucket and GCRA: the debt says it all. Debts are in units (see `emission.ts`), >= 0. */
export class RateDecoder implements DecisionDecoder {
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

/** Times in microseconds that belong to a debt, about the key that was last asked about. */
export interface CountTimes {
  /** Until so many more would pass. */
  untilFree(amount: number): number
  /** Until the key is as good as new. */
  untilNew(): number
  /** Until what was reserved may be spent. */
  waitUs(): number
}

/** Windows, logs and permits: debts are tokens, and times are asked for. */
export class CountDecoder implements DecisionDecoder {
  readonly policy: Policy
  readonly unitsPerToken = 1
  readonly numbers = 'tokens'
  private readonly times: CountTimes

  constructor(policy: Policy, times: CountTimes) {
    this.policy = policy
    this.times = times
  }

  allowed(debt: number): Decision {
    return this.decision(true, debt, 0, toMs(this.times.untilNew()))
  }

  denied(debt: number, cost: number): Decision {
    return this.decision(false, debt, toMs(this.untilFreeUs(debt, cost)), toMs(this.times.untilNew()))
  }

  foreseen(debt: number, cost: number, blockMs: number): Decision {
    const retryAfterMs = Math.max(blockMs, toMs(this.untilFreeUs(debt, cost)))
    // A blocked key is not as good as new, however full.
    return this.decision(retryAfterMs === 0, debt, retryAfterMs, Math.max(blockMs, toMs(this.times.untilNew())))
  }

  refused(cost: number, waitMs: number): Decision {
    const retryAfterMs = cost > this.policy.limit ? Number.POSITIVE_INFINITY : waitMs
    return this.decision(false, this.policy.limit, retryAfterMs, waitMs)
  }

  overflowed(newMs: number): Decision {
    return this.decision(true, this.policy.limit, 0, newMs)
  }

  waitUs(): number {
    return this.times.waitUs()
  }

  untilFreeUs(_debt: number, cost: number): number {
    return cost > this.policy.limit ? Number.POSITIVE_INFINITY : this.times.untilFree(cost)
  }

  private decision(allowed: boolean, debt: number, retryAfterMs: number, resetAfterMs: number): Decision {
    const { limit, name } = this.policy
    if (debt > limit) return { allowed, limit, remaining: 0, retryAfterMs, resetAfterMs, policy: name, source: 'memory', spent: debt }
    return { allowed, limit, remaining: limit - debt, retryAfterMs, resetAfterMs, policy: name, source: 'memory' }
  }
}

function toMs(us: number): number {
  return Math.ceil(us / 1000)
}

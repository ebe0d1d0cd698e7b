import { untilUs } from '../policy/calendar.js'
import type { Policy } from '../policy/policy.js'
import { emissionOf } from '../policy/policy-numbers.js'
import type { Decision } from './decision.js'

/** Decodes the core's answers under a policy into decisions. Debts are in the core's units, 0 or more. */
export interface DecisionDecoder {
  readonly policy: Policy
  readonly unitsPerToken: number
  /** The decision of an allowed take that leaves this debt. */
  allowed(debt: number): Decision
  denied(debt: number, cost: number): Decision
  /** The decision that a take of `cost` would get. @param blockMs remaining ban, 0 for none. */
  foreseen(debt: number, cost: number, blockMs: number): Decision
  /** The denial of a new key without room, which may try again after `waitMs`. */
  refused(cost: number, waitMs: number): Decision
  /** The decision of a new key without room that passed on a shared counter, which is full after `newMs`. `remaining` is 0. */
  overflowed(newMs: number): Decision
  /** Microseconds until what was reserved, and left this debt, may be spent. */
  waitUs(debt: number): number
  /** Microseconds after which a take of `cost` that was denied would pass. */
  untilFreeUs(debt: number, cost: number): number
}

/** Token bucket and GCRA: all fields follow from the debt, in units (see `oracle.ts` of the testkit), >= 0. */
export class RateDecoder implements DecisionDecoder {
  readonly policy: Policy
  readonly unitsPerToken: number
  readonly unitsPerUs: number
  private readonly unitsPerMs: number
  readonly capacity: number
  private readonly burst: number
  private readonly limit: number
  private readonly name: string

  constructor(policy: Policy) {
    const { unitsPerUs, unitsPerToken, capacity } = emissionOf(policy)
    this.capacity = capacity
    this.policy = policy
    this.unitsPerToken = unitsPerToken
    this.unitsPerUs = unitsPerUs
    this.unitsPerMs = unitsPerUs * 1000
    this.burst = policy.burst
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
    // A banned key is not full, even with all tokens.
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
    const tokens = room / this.unitsPerToken
    return {
      allowed,
      limit: this.limit,
      // An integer of 32 bits takes no memory of its own.
      remaining: tokens < 2 ** 31 ? tokens | 0 : Math.floor(tokens),
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

/** Times in microseconds for the debt of the last call's key. */
export interface CountTimes {
  /** Until `amount` more would pass. */
  untilFree(amount: number): number
  /** Until the key is full. */
  untilNew(): number
  /** Until what was reserved may be spent. */
  waitUs(): number
}

/** Windows, logs and permits: debts are tokens, and times come from {@link CountTimes}. */
export class CountDecoder implements DecisionDecoder {
  readonly policy: Policy
  readonly unitsPerToken = 1
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
    // A banned key is not full, even with all tokens.
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
    return cost > this.policy.limit ? Number.POSITIVE_INFINITY : untilUs(this.times.untilFree(cost))
  }

  private decision(allowed: boolean, debt: number, retryAfterMs: number, resetAfterMs: number): Decision {
    const { limit, name } = this.policy
    if (debt > limit) return { allowed, limit, remaining: 0, retryAfterMs, resetAfterMs, policy: name, source: 'memory', spent: debt }
    return { allowed, limit, remaining: limit - debt, retryAfterMs, resetAfterMs, policy: name, source: 'memory' }
  }
}

function toMs(us: number): number {
  return Math.ceil(untilUs(us) / 1000)
}

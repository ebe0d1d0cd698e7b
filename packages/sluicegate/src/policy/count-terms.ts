import type { Decision } from '../decision.js'
import type { Policy } from './policy.js'
import type { Terms } from './terms.js'

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
export class CountTerms implements Terms {
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

import type { Core } from './core.js'
import type { Decision } from './decision.js'
import type { Policy } from './policy.js'
import type { Terms } from './terms.js'

/** Windows, logs and permits: debts are tokens, and the core is asked for times, about the key that its last call was about. */
export class CountTerms implements Terms {
  readonly policy: Policy
  readonly unitsPerToken = 1
  readonly numbers = 'tokens'
  private readonly core: Core

  constructor(policy: Policy, core: Core) {
    this.policy = policy
    this.core = core
  }

  allowed(debt: number): Decision {
    return this.decision(true, debt, 0, toMs(this.core.untilNew()))
  }

  denied(debt: number, cost: number): Decision {
    return this.decision(false, debt, toMs(this.untilFreeUs(debt, cost)), toMs(this.core.untilNew()))
  }

  foreseen(debt: number, cost: number, blockMs: number): Decision {
    const retryAfterMs = Math.max(blockMs, toMs(this.untilFreeUs(debt, cost)))
    // A blocked key is not as good as new, however full.
    return this.decision(retryAfterMs === 0, debt, retryAfterMs, Math.max(blockMs, toMs(this.core.untilNew())))
  }

  refused(cost: number, waitMs: number): Decision {
    const retryAfterMs = cost > this.policy.limit ? Number.POSITIVE_INFINITY : waitMs
    return this.decision(false, this.policy.limit, retryAfterMs, waitMs)
  }

  waitUs(): number {
    return this.core.waitUs()
  }

  untilFreeUs(_debt: number, cost: number): number {
    return cost > this.policy.limit ? Number.POSITIVE_INFINITY : this.core.untilFree(cost)
  }

  private decision(allowed: boolean, debt: number, retryAfterMs: number, resetAfterMs: number): Decision {
    const { limit, name } = this.policy
    return { allowed, limit, remaining: Math.max(0, limit - debt), retryAfterMs, resetAfterMs, policy: name, source: 'memory' }
  }
}

function toMs(us: number): number {
  return Math.ceil(us / 1000)
}

import type { Call } from './call.js'
import type { ExploredPolicy } from './explored-policy.js'
import { DEEPEST_DEBT_BURSTS, denied, type KeyModel, type Step } from './key-model.js'

/** A bucket, or GCRA: the time, in units of the policy, at which the debt is paid off. */
export class RateModel implements KeyModel {
  readonly paidAt: number
  private readonly policy: ExploredPolicy

  constructor(policy: ExploredPolicy, paidAt: number) {
    this.policy = policy
    this.paidAt = paidAt
  }

  debtAt(nowUs: number): number {
    return Math.max(this.paidAt - nowUs * this.policy.unitsPerUs, 0)
  }

  step({ verb, nowUs, amount, bound = 0 }: Call): Step {
    const { unitsPerToken, unitsPerUs, burst } = this.policy
    const capacity = burst * unitsPerToken
    const debt = this.debtAt(nowUs)
    const weight = amount * unitsPerToken
    if (verb === 'take') return debt + weight <= capacity ? this.owing(debt + weight, nowUs) : denied(this, nowUs)
    if (verb === 'refund') return this.owing(Math.max(debt - weight, 0), nowUs)
    if (verb === 'penalize') return this.owing(Math.max(debt, Math.min(debt + weight, DEEPEST_DEBT_BURSTS * capacity)), nowUs)
    if (verb === 'save') return { after: undefined, value: debt }
    if (verb === 'load') {
      // On top of what is owed, up to the burst.
      const more = Math.max(Math.min(amount, burst - Math.ceil(debt / unitsPerToken)), 0)
      return { ...this.owing(debt + more * unitsPerToken, nowUs), value: 0 }
    }
    if (verb === 'reserve') {
      const waitUs = Math.ceil(Math.max(debt + weight - capacity, 0) / unitsPerUs)
      if (amount > burst || waitUs > bound) return denied(this, nowUs)
      return this.owing(Math.max(debt, waitUs * unitsPerUs) + weight, nowUs)
    }
    if (verb === 'cancel') {
      // Counted in units, with the deepest debt of which anything comes back; ahead of now what is less than a token and a microsecond belongs to no booking.
      const rest = bound > capacity ? Math.min(unitsPerToken, unitsPerUs) - 1 : 0
      const left = debt <= bound + rest ? Math.max(Math.min(debt, bound) - amount, 0) : debt
      return left === debt ? denied(this, nowUs) : this.owing(left, nowUs)
    }
    return this.owing(verb === 'reset' ? 0 : debt, nowUs)
  }

  /** spent' = min(spent, new burst), in the new policy's units and rounded up. */
  updated(policy: ExploredPolicy, nowUs: number): KeyModel {
    const spent = Math.ceil((this.debtAt(nowUs) * policy.unitsPerToken) / this.policy.unitsPerToken)
    return new RateModel(policy, nowUs * policy.unitsPerUs + Math.min(spent, policy.burst * policy.unitsPerToken))
  }

  private owing(debt: number, nowUs: number): Step {
    const after = debt === this.debtAt(nowUs) ? this : new RateModel(this.policy, nowUs * this.policy.unitsPerUs + debt)
    return { after, value: debt }
  }
}

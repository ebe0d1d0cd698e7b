import type { Call } from './call.js'
import type { ExploredPolicy } from './explored-policy.js'
import { denied, KeptModel, type KeyModel, type Step } from './key-model.js'

/** When it expires, and how many tokens. */
type Held = readonly [untilUs: number, cost: number]

/** Concurrency: the permits in flight, and the latest reading by which anything changed. */
export class PermitModel extends KeptModel<{ readonly permits: readonly Held[]; readonly highUs: number }> implements KeyModel {
  debtAt(nowUs: number): number {
    return sum(this.live(this.clock(nowUs)))
  }

  step({ verb, nowUs, amount, bound }: Call): Step {
    const us = this.clock(nowUs)
    const live = this.live(us)
    const used = sum(live)
    const untilUs = us + this.policy.windowUs
    if (verb === 'reset') return { after: undefined, value: 0 }
    if (verb === 'take') {
      if (used + amount > this.policy.burst) return denied(this, nowUs)
      return { after: this.with([...live, [untilUs, amount]], us), value: used + amount, more: untilUs }
    }
    if (verb === 'penalize') {
      const cost = Math.min(amount, this.policy.burst - used)
      return cost <= 0 ? { after: this, value: used } : { after: this.with([...live, [untilUs, cost]], us), value: used + cost }
    }
    if (verb === 'refund') return this.refunded(live, us, amount)
    if (verb !== 'release' && verb !== 'heartbeat') return { after: this, value: used }
    const at = live.findIndex(([until]) => until === bound)
    const cost = live[at]?.[1]
    if (cost === undefined) return { after: this, value: 0 }
    if (verb === 'heartbeat') return { after: this.with(live.with(at, [untilUs, cost]), us), value: untilUs }
    const left = cost > amount ? live.with(at, [bound as number, cost - amount]) : live.toSpliced(at, 1)
    return { after: this.with(left, us), value: bound as number }
  }

  updated(policy: ExploredPolicy): KeyModel {
    return new PermitModel(policy, this.kept)
  }

  /** For a key time never runs back. */
  private clock(nowUs: number): number {
    return Math.max(nowUs, this.kept.highUs)
  }

  private live(us: number): readonly Held[] {
    return this.kept.permits.filter(([untilUs]) => untilUs > us)
  }

  private with(permits: readonly Held[], highUs: number): PermitModel {
    return new PermitModel(this.policy, { permits, highUs })
  }

  private refunded(live: readonly Held[], us: number, tokens: number): Step {
    const left = live.toSorted(([a], [b]) => a - b)
    let open = tokens
    while (open > 0 && left.length > 0) {
      const [untilUs, cost] = left.pop() as Held
      if (cost > open) left.push([untilUs, cost - open])
      open -= cost
    }
    return { after: live.length === 0 ? this : this.with(left, us), value: sum(left) }
  }
}

function sum(permits: readonly Held[]): number {
  return permits.reduce((total, [, cost]) => total + cost, 0)
}

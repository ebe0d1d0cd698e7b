import type { Call } from './call.js'
import type { ExploredPolicy } from './explored-policy.js'
import { DEEPEST_DEBT_BURSTS, denied, KeptModel, type KeyModel, type Step } from './key-model.js'

/** A fixed window: its number, and what was spent in it. One that lies ahead is closed until it begins. */
export class FixedModel extends KeptModel<{ readonly window: number; readonly count: number }> implements KeyModel {
  debtAt(nowUs: number): number {
    const here = this.at(nowUs)
    return here.isClosed(nowUs) ? this.policy.burst : here.kept.count
  }

  step(call: Call): Step {
    const { nowUs } = call
    const here = this.at(nowUs)
    const next = here.stepped(call)
    if (next === undefined) return denied(this, nowUs, here.untilFree(call.amount, nowUs))
    const more = call.verb === 'reserve' ? here.untilFree(call.amount, nowUs) : next.untilNew(nowUs)
    // What changes nothing does not open a window either.
    const unchanged = next.kept.window === here.kept.window && next.kept.count === here.kept.count
    const after = unchanged ? this : call.verb === 'reset' ? this.with(0, 0) : next
    return { after, value: next.debtAt(nowUs), more, ...(call.verb === 'cancel' && unchanged && { denied: true }) }
  }

  updated(policy: ExploredPolicy, nowUs: number): KeyModel {
    if (policy.windowUs === this.policy.windowUs)
      return new FixedModel(policy, { ...this.kept, count: Math.min(this.kept.count, policy.burst) })
    const count = Math.min(this.at(nowUs).kept.count, policy.burst)
    return new FixedModel(policy, { window: Math.floor(nowUs / policy.windowUs), count })
  }

  private stepped({ verb, nowUs, amount, bound = 0 }: Call): FixedModel | undefined {
    const { burst, windowUs } = this.policy
    const { window, count } = this.kept
    if (verb === 'take') return this.isClosed(nowUs) || count + amount > burst ? undefined : this.with(window, count + amount)
    if (verb === 'refund') return this.with(window, Math.max(count - amount, 0))
    if (verb === 'penalize') return this.with(window, Math.max(count, Math.min(count + amount, DEEPEST_DEBT_BURSTS * burst)))
    if (verb === 'reset') return this.with(Math.floor(nowUs / windowUs), 0)
    if (verb === 'cancel') return Math.floor(bound / windowUs) === window ? this.with(window, Math.max(count - amount, 0)) : this
    if (verb !== 'reserve') return this
    const waitUs = this.untilFree(amount, nowUs)
    if (amount > burst || waitUs > bound) return undefined
    const into = Math.floor((nowUs + waitUs) / windowUs)
    return this.with(into, into === window ? count + amount : amount)
  }

  private at(nowUs: number): FixedModel {
    const now = Math.floor(nowUs / this.policy.windowUs)
    return now > this.kept.window ? this.with(now, 0) : this
  }

  private with(window: number, count: number): FixedModel {
    return new FixedModel(this.policy, { window, count })
  }

  private isClosed(nowUs: number): boolean {
    return this.kept.window * this.policy.windowUs > nowUs
  }

  private untilFree(amount: number, nowUs: number): number {
    const { burst, windowUs } = this.policy
    if (this.kept.count + amount > burst) return (this.kept.window + 1) * windowUs - nowUs
    return Math.max(this.kept.window * windowUs - nowUs, 0)
  }

  private untilNew(nowUs: number): number {
    const { windowUs } = this.policy
    return this.kept.count === 0 ? Math.max(this.kept.window * windowUs - nowUs, 0) : (this.kept.window + 1) * windowUs - nowUs
  }
}

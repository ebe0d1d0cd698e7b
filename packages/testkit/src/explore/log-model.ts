import type { Call } from './call.js'
import type { ExploredPolicy } from './explored-policy.js'
import { DEEPEST_DEBT_BURSTS, denied, KeptModel, type KeyModel, type Step } from './key-model.js'

/** A request: when, and how many tokens. */
type Request = readonly [us: number, cost: number]

/** A sliding log: the requests, oldest first, and the time before which it is closed. */
export class LogModel extends KeptModel<{ readonly requests: readonly Request[]; readonly lastUs: number }> implements KeyModel {
  debtAt(nowUs: number): number {
    return nowUs < this.kept.lastUs ? this.policy.burst : this.used(nowUs)
  }

  step(call: Call): Step {
    const { nowUs, verb, amount } = call
    if (verb === 'reset') return { after: this.as([], 0), value: 0 }
    const after = this.stepped(call)
    if (after === undefined) return denied(this, nowUs)
    if (verb === 'reserve') return { after, value: after.debtAt(nowUs), more: this.earliestUs(amount, nowUs) - nowUs }
    return { after, value: after.debtAt(nowUs), ...(verb === 'cancel' && after === this && { denied: true }) }
  }

  /** What is over by the old window never comes back. */
  updated(policy: ExploredPolicy, nowUs: number): KeyModel {
    const requests = this.kept.requests.filter(([us]) => us + this.policy.windowUs > nowUs)
    return new LogModel(policy, { ...this.kept, requests })
  }

  private stepped({ verb, nowUs, amount, bound = 0 }: Call): LogModel | undefined {
    const { burst } = this.policy
    if (verb === 'take') return nowUs < this.kept.lastUs || this.used(nowUs) + amount > burst ? undefined : this.with(nowUs, amount)
    if (verb === 'penalize') return this.penalized(Math.max(nowUs, this.kept.lastUs), amount)
    if (verb === 'refund') return this.without(nowUs, amount)
    if (verb === 'cancel') {
      const newest = this.live(Math.max(nowUs, this.kept.lastUs)).filter(([us]) => us === bound)
      return this.kept.lastUs === bound ? this.without(nowUs, Math.min(amount, sum(newest))) : this
    }
    if (verb !== 'reserve') return this
    if (amount > burst) return undefined
    const earliestUs = this.earliestUs(amount, nowUs)
    return earliestUs - nowUs > bound ? undefined : this.with(earliestUs, amount)
  }

  private penalized(us: number, amount: number): LogModel {
    const { burst } = this.policy
    const live = this.live(us)
    const cost = Math.min(amount, DEEPEST_DEBT_BURSTS * burst - sum(live))
    const newest = live.at(-1)
    if (cost <= 0) return this
    // After a refund the newest may be nothing but a time.
    const isRoom = newest === undefined || newest[0] !== this.kept.lastUs || (us > this.kept.lastUs && live.length < burst)
    if (isRoom) return this.as([...live, [us, cost]], us)
    return this.as([...live.slice(0, -1), [us, newest[1] + cost]], us)
  }

  /** Without the newest tokens of those that count. The newest time stays, and a request in part counts from there. */
  private without(nowUs: number, tokens: number): LogModel {
    const live = [...this.live(Math.max(nowUs, this.kept.lastUs))]
    if (tokens <= 0 || live.length === 0) return this
    const over = this.kept.requests.slice(0, this.kept.requests.length - live.length)
    let open = tokens
    while (open > 0 && live.length > 0) {
      const [, cost] = live.pop() as Request
      if (cost > open) live.push([this.kept.lastUs, cost - open])
      open -= cost
    }
    return this.as([...over, ...live], this.kept.lastUs)
  }

  private as(requests: readonly Request[], lastUs: number): LogModel {
    return new LogModel(this.policy, { requests, lastUs })
  }

  private with(us: number, cost: number): LogModel {
    return this.as([...this.kept.requests, [us, cost]], us)
  }

  private live(us: number): readonly Request[] {
    return this.kept.requests.filter(([then]) => then + this.policy.windowUs > us)
  }

  private used(us: number): number {
    return sum(this.live(Math.max(us, this.kept.lastUs)))
  }

  private earliestUs(amount: number, nowUs: number): number {
    const fromUs = Math.max(nowUs, this.kept.lastUs)
    const times = [fromUs, ...this.kept.requests.map(([us]) => us + this.policy.windowUs).filter((us) => us > fromUs)].sort((a, b) => a - b)
    return times.find((us) => sum(this.live(us)) + amount <= this.policy.burst) ?? Number.POSITIVE_INFINITY
  }
}

function sum(requests: readonly Request[]): number {
  return requests.reduce((total, [, cost]) => total + cost, 0)
}

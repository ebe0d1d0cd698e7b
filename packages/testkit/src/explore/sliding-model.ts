import type { Call } from './call.js'
import type { ExploredPolicy } from './explored-policy.js'
import { DEEPEST_DEBT_BURSTS, denied, KeptModel, type KeyModel, type Step } from './key-model.js'

const MOST_PACKED = 65_535

/** A sliding window, approximated: counts of the window at hand and of the one before. One that lies ahead is closed. */
export class SlidingModel
  extends KeptModel<{ readonly window: number; readonly previous: number; readonly count: number }>
  implements KeyModel
{
  debtAt(nowUs: number): number {
    const here = this.at(nowUs)
    return here.isClosed(nowUs) ? this.policy.burst : here.used(nowUs)
  }

  step(call: Call): Step {
    const { nowUs, verb } = call
    const here = this.at(nowUs)
    const next = here.stepped(call)
    if (next === undefined) return denied(this, nowUs, here.untilFree(call.amount, nowUs))
    const more = verb === 'reserve' ? here.untilFree(call.amount, nowUs) : next.untilNew(nowUs)
    // What changes nothing does not open a window either.
    const unchanged =
      next.kept.window === here.kept.window && next.kept.previous === here.kept.previous && next.kept.count === here.kept.count
    const after = unchanged ? this : verb === 'reset' ? this.from(0) : next
    return { after, value: next.debtAt(nowUs), more, ...(verb === 'cancel' && unchanged && { denied: true }) }
  }

  /** The wide encoding closes a window before it opens another: a thread that comes late may find that, and its clock too early. */
  opened({ verb, nowUs }: Call): KeyModel {
    const { windowUs, encoding } = this.policy
    const closes =
      encoding === 'WIDE' &&
      verb !== 'peek' &&
      this.kept.count > 0 &&
      (verb === 'reserve' || this.kept.window < Math.floor(nowUs / windowUs))
    return closes ? this.from(this.kept.window + 1, this.kept.count) : this
  }

  updated(policy: ExploredPolicy, nowUs: number): KeyModel {
    const { burst, windowUs } = policy
    if (windowUs === this.policy.windowUs) {
      const { window, previous, count } = this.kept
      return new SlidingModel(policy, { window, previous: Math.min(previous, burst), count: Math.min(count, burst) })
    }
    const here = this.at(nowUs)
    const used = here.isClosed(nowUs) ? here.kept.previous + here.kept.count : here.used(nowUs)
    return new SlidingModel(policy, { window: Math.floor(nowUs / windowUs), previous: 0, count: Math.min(used, burst) })
  }

  private stepped({ verb, nowUs, amount, bound = 0 }: Call): SlidingModel | undefined {
    const { burst, windowUs, encoding } = this.policy
    const { count } = this.kept
    if (verb === 'take') return this.isClosed(nowUs) || this.used(nowUs) + amount > burst ? undefined : this.counting(count + amount)
    if (verb === 'refund') return this.counting(Math.max(count - amount, 0))
    if (verb === 'penalize') {
      const deepest = encoding === 'SLIDING' ? Math.min(DEEPEST_DEBT_BURSTS * burst, MOST_PACKED) : DEEPEST_DEBT_BURSTS * burst
      return this.counting(Math.max(count, Math.min(count + amount, deepest)))
    }
    if (verb === 'reset') return this.from(Math.floor(nowUs / windowUs))
    if (verb === 'cancel') return Math.floor(bound / windowUs) === this.kept.window ? this.counting(Math.max(count - amount, 0)) : this
    if (verb !== 'reserve') return this
    const waitUs = this.untilFree(amount, nowUs)
    if (amount > burst || waitUs > bound) return undefined
    const then = this.at(nowUs + waitUs)
    return then.counting(then.kept.count + amount)
  }

  private at(nowUs: number): SlidingModel {
    const now = Math.floor(nowUs / this.policy.windowUs)
    if (now <= this.kept.window) return this
    return this.from(now, now === this.kept.window + 1 ? this.kept.count : 0)
  }

  private from(window: number, previous = 0): SlidingModel {
    return new SlidingModel(this.policy, { window, previous, count: 0 })
  }

  private counting(count: number): SlidingModel {
    return new SlidingModel(this.policy, { ...this.kept, count })
  }

  private isClosed(nowUs: number): boolean {
    return this.kept.window * this.policy.windowUs > nowUs
  }

  /** What counts at `us`, in this window. */
  private used(us: number): number {
    const { windowUs } = this.policy
    return this.kept.count + Math.ceil((this.kept.previous * ((this.kept.window + 1) * windowUs - us)) / windowUs)
  }

  /** The first microsecond at which so much passes, by halving: what counts never grows between calls. */
  private untilFree(amount: number, nowUs: number): number {
    const { windowUs, burst } = this.policy
    let low = Math.max(nowUs, this.kept.window * windowUs)
    let high = (this.kept.window + 3) * windowUs
    const passes = (us: number): boolean => this.at(us).used(us) + amount <= burst
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (passes(middle)) high = middle
      else low = middle + 1
    }
    return low - nowUs
  }

  private untilNew(nowUs: number): number {
    const { windowUs } = this.policy
    if (this.kept.count > 0) return (this.kept.window + 2) * windowUs - nowUs
    if (this.kept.previous > 0) return (this.kept.window + 1) * windowUs - nowUs
    return Math.max(this.kept.window * windowUs - nowUs, 0)
  }
}

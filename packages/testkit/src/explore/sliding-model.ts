import type { Call } from './call.js'
import type { ExploredPolicy } from './explored-policy.js'
import { DEEPEST_DEBT_BURSTS, denied, type KeyModel, type Step } from './key-model.js'

const MOST_PACKED = 65_535

/** A sliding window, approximated: counts of the window at hand and of the one before. One that lies ahead is closed. */
export class SlidingModel implements KeyModel {
  private readonly policy: ExploredPolicy
  private readonly window: number
  private readonly previous: number
  private readonly count: number

  constructor(policy: ExploredPolicy, window: number, previous: number, count: number) {
    this.policy = policy
    this.window = window
    this.previous = previous
    this.count = count
  }

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
    const unchanged = next.window === here.window && next.previous === here.previous && next.count === here.count
    const after = unchanged ? this : verb === 'reset' ? new SlidingModel(this.policy, 0, 0, 0) : next
    return { after, value: next.debtAt(nowUs), more }
  }

  /** The wide encoding closes a window before it opens another: a thread that comes late may find that, and its clock too early. */
  opened({ verb, nowUs }: Call): KeyModel {
    const { windowUs, encoding } = this.policy
    const closes =
      encoding === 'WIDE' && verb !== 'peek' && this.count > 0 && (verb === 'reserve' || this.window < Math.floor(nowUs / windowUs))
    return closes ? new SlidingModel(this.policy, this.window + 1, this.count, 0) : this
  }

  updated(policy: ExploredPolicy, nowUs: number): KeyModel {
    const { burst, windowUs } = policy
    if (windowUs === this.policy.windowUs) {
      return new SlidingModel(policy, this.window, Math.min(this.previous, burst), Math.min(this.count, burst))
    }
    const here = this.at(nowUs)
    const used = here.isClosed(nowUs) ? here.previous + here.count : here.used(nowUs)
    return new SlidingModel(policy, Math.floor(nowUs / windowUs), 0, Math.min(used, burst))
  }

  private stepped({ verb, nowUs, amount, bound = 0 }: Call): SlidingModel | undefined {
    const { burst, windowUs, encoding } = this.policy
    const { count } = this
    if (verb === 'take') return this.isClosed(nowUs) || this.used(nowUs) + amount > burst ? undefined : this.counting(count + amount)
    if (verb === 'refund') return this.counting(Math.max(count - amount, 0))
    if (verb === 'penalize') {
      const deepest = encoding === 'SLIDING' ? Math.min(DEEPEST_DEBT_BURSTS * burst, MOST_PACKED) : DEEPEST_DEBT_BURSTS * burst
      return this.counting(Math.max(count, Math.min(count + amount, deepest)))
    }
    if (verb === 'reset') return new SlidingModel(this.policy, Math.floor(nowUs / windowUs), 0, 0)
    if (verb === 'cancel') return Math.floor(bound / windowUs) === this.window ? this.counting(Math.max(count - amount, 0)) : this
    if (verb !== 'reserve') return this
    const waitUs = this.untilFree(amount, nowUs)
    if (amount > burst || waitUs > bound) return undefined
    const then = this.at(nowUs + waitUs)
    return then.counting(then.count + amount)
  }

  private at(nowUs: number): SlidingModel {
    const now = Math.floor(nowUs / this.policy.windowUs)
    if (now <= this.window) return this
    return new SlidingModel(this.policy, now, now === this.window + 1 ? this.count : 0, 0)
  }

  private counting(count: number): SlidingModel {
    return new SlidingModel(this.policy, this.window, this.previous, count)
  }

  private isClosed(nowUs: number): boolean {
    return this.window * this.policy.windowUs > nowUs
  }

  /** What counts at `us`, in this window. */
  private used(us: number): number {
    const { windowUs } = this.policy
    return this.count + Math.ceil((this.previous * ((this.window + 1) * windowUs - us)) / windowUs)
  }

  /** The first microsecond at which so much passes, by halving: what counts never grows between calls. */
  private untilFree(amount: number, nowUs: number): number {
    const { windowUs, burst } = this.policy
    let low = Math.max(nowUs, this.window * windowUs)
    let high = (this.window + 3) * windowUs
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
    if (this.count > 0) return (this.window + 2) * windowUs - nowUs
    if (this.previous > 0) return (this.window + 1) * windowUs - nowUs
    return Math.max(this.window * windowUs - nowUs, 0)
  }
}

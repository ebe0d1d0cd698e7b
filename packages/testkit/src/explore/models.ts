import type { Call } from './call.js'
import type { ExploredPolicy } from './explored-policy.js'

// How a key stands by the small model. There is one class a encoding, each written from the words of the contract, not from the core:
// no words, entries, tickets or epochs. None is ever changed in place.

/** What a call makes of a key. */
export interface Step {
  /** Undefined: the key is not known any more. */
  readonly after: KeyModel | undefined
  /** Debt after it; of a change of a permit when it expires, or 0. */
  readonly value: number
  /** Of a take or a reservation that was denied, and of a cancel that gave nothing back. */
  readonly denied?: boolean
  /** The time it tells, where it tells one: until a permit expires, until a reservation may be spent, until it would pass or is new. */
  readonly more?: number
}

export interface KeyModel {
  /** What the key owes, in units of its policy. */
  debtAt(nowUs: number): number
  step(call: Call): Step
  /** Whether open work holds anything; undefined of a key without. */
  isHolding?(nowUs: number): boolean
  /** With the next window begun, or with what has ended dropped, where a call does that in its own step before it counts. */
  opened?(call: Call): KeyModel
  /** Under another policy from `nowUs` on. */
  updated(policy: ExploredPolicy, nowUs: number): KeyModel
}

/** Under its policy, with what it keeps. */
export abstract class KeptModel<Kept> {
  protected readonly policy: ExploredPolicy
  protected readonly kept: Kept

  constructor(policy: ExploredPolicy, kept: Kept) {
    this.policy = policy
    this.kept = kept
  }
}

export const DEEPEST_DEBT_BURSTS = 11

/** A denial: nothing changes. */
export function denied(model: KeyModel, nowUs: number, more?: number, after = model): Step {
  return { after, value: model.debtAt(nowUs), denied: true, ...(more === undefined ? {} : { more }) }
}

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
    if (verb === 'cancel') return this.cancelled(amount, bound, nowUs)
    if (verb !== 'reserve') return this
    const waitUs = this.untilFree(amount, nowUs)
    if (amount > burst || waitUs > bound) return undefined
    const then = this.at(nowUs + waitUs)
    return then.counting(then.kept.count + amount)
  }

  /** Of what is not due yet, the wide encoding gives back no more once another window is booked behind it. */
  private cancelled(amount: number, dueUs: number, nowUs: number): SlidingModel {
    const { windowUs, encoding } = this.policy
    const { window, previous, count } = this.kept
    const due = Math.floor(dueUs / windowUs)
    if (due === window) return this.counting(Math.max(count - amount, 0))
    const isBehind = due + 1 === window && dueUs > nowUs && encoding !== 'WIDE'
    return isBehind ? new SlidingModel(this.policy, { window, previous: Math.max(previous - amount, 0), count }) : this
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

import type { Call, Outcome } from './call.js'
import { type ExploredPolicy, isRate } from './explored-policy.js'
import { DEEPEST_DEBT_BURSTS, denied, KeptModel, type KeyModel, LogModel, RateModel, SlidingModel, type Step } from './models.js'

/** When it expires, and how many tokens. */
type Held = readonly [untilUs: number, cost: number]

/** Concurrency: the permits in flight, and the latest reading by which anything changed. */
class PermitModel extends KeptModel<{ readonly permits: readonly Held[]; readonly highUs: number }> implements KeyModel {
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

/** A fixed window: its number, and what was spent in it. One that lies ahead is closed until it begins. */
class FixedModel extends KeptModel<{ readonly window: number; readonly count: number }> implements KeyModel {
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

// The small model: what the calls mean when they come one after another.

/** The time before any key was forgotten or banned. */
export const NEVER = Number.NEGATIVE_INFINITY

/** Everything that is known at one moment. Never changed in place. */
export interface Ledger {
  readonly policy: ExploredPolicy
  /** By key: how it stands; undefined when it is unknown. */
  readonly keys: readonly (KeyModel | undefined)[]
  /** By key: the end of its block, in microseconds. */
  readonly blockedUntil: readonly number[]
  /** Of new keys without room; undefined when they are denied. */
  readonly overflow?: OverflowLedger | undefined
}

/** A ledger without keys. */
export function emptyLedger(policy: ExploredPolicy, keys: number, overflow?: OverflowTerms): Ledger {
  return {
    overflow: emptyOverflow(overflow),
    policy,
    keys: Array<undefined>(keys).fill(undefined),
    blockedUntil: Array<number>(keys).fill(NEVER),
  }
}

/** How a key stands that counts from `sinceUs`. */
export function newModel(policy: ExploredPolicy, sinceUs: number): KeyModel {
  if (isRate(policy)) return new RateModel(policy, sinceUs * policy.unitsPerUs)
  const window = Math.floor(sinceUs / policy.windowUs)
  if (policy.encoding === 'FIXED') return new FixedModel(policy, { window, count: 0 })
  if (policy.encoding === 'LOG') return new LogModel(policy, { requests: [], lastUs: sinceUs })
  if (policy.encoding === 'CONCURRENCY') return new PermitModel(policy, { permits: [], highUs: sinceUs })
  return new SlidingModel(policy, { window, previous: 0, count: 0 })
}

export function withKey(ledger: Ledger, key: number, model: KeyModel | undefined): Ledger {
  return ledger.keys[key] === model ? ledger : { ...ledger, keys: ledger.keys.with(key, model) }
}

/** Microseconds for which the key is still blocked. */
export function banLeft({ blockedUntil }: Ledger, key: number, nowUs: number): number {
  return Math.max((blockedUntil[key] as number) - nowUs, 0)
}

/** The longest block wins, 0 lifts. */
export function blocked(ledger: Ledger, { key, nowUs, amount }: Call): Ledger {
  const left = amount === 0 ? 0 : Math.max(banLeft(ledger, key, nowUs), amount)
  return { ...ledger, blockedUntil: ledger.blockedUntil.with(key, nowUs + left) }
}

export function updated(ledger: Ledger, { nowUs, policy }: Call): Ledger {
  if (policy === undefined) throw new Error('an update needs a policy')
  // With the same numbers nothing changes.
  if (JSON.stringify(policy) === JSON.stringify(ledger.policy)) return ledger
  return { ...ledger, policy, keys: ledger.keys.map((model) => model?.updated(policy, nowUs)) }
}

/** A take that passed: by the caller's clock, and how many tokens. */
interface Admitted {
  readonly nowUs: number
  readonly tokens: number
}

/** The takes of one key that passed. */
export function admittedOf(outcomes: readonly Outcome[], key: number): Admitted[] {
  return outcomes
    .filter(({ call, ended, why, value }) => {
      if (call.verb !== 'take' || call.key !== key || ended === Number.POSITIVE_INFINITY) return false
      return (why === 'answered' || why === 'EVICTED') && value >= 0
    })
    .map(({ call }) => ({ nowUs: call.nowUs, tokens: call.amount }))
}

/**
 * I1 to the letter: in no interval of clock readings is more admitted than the burst, what flows in during it, and `excused` units
 * that were forgotten.
 */
export function isWithinBudget(admitted: readonly Admitted[], policy: ExploredPolicy, excused: number): boolean {
  return admitted.every(({ nowUs: from }) =>
    admitted.every(({ nowUs: to }) => {
      if (to < from) return true
      const inside = admitted.filter(({ nowUs }) => nowUs >= from && nowUs <= to)
      const units = inside.reduce((sum, { tokens }) => sum + tokens, 0) * policy.unitsPerToken
      return units <= policy.burst * policy.unitsPerToken + (to - from) * policy.unitsPerUs + excused
    }),
  )
}

// The small model of new keys without room: the counter of a key, and the budget of all, each an arrival time in microseconds.

/** How many counters there are, and what all new keys without room may take together. */
export interface OverflowTerms {
  readonly counters: number
  readonly limit: number
  readonly windowUs: number
}

/** Never changed in place. */
interface OverflowLedger {
  readonly terms: OverflowTerms
  readonly budgetUs: number
  readonly countersUs: readonly number[]
}

function emptyOverflow(terms: OverflowTerms | undefined): OverflowLedger | undefined {
  return terms === undefined ? undefined : { terms, budgetUs: 0, countersUs: Array<number>(terms.counters).fill(0) }
}

/** The ledger after a take that passes, and for how long its counter owes something; undefined when it does not pass. */
export function overflowed(
  { terms, budgetUs, countersUs }: OverflowLedger,
  policy: ExploredPolicy,
  { key, nowUs, amount }: Call,
): { readonly after: OverflowLedger; readonly newUs: number } | undefined {
  const at = counterOf(key, terms)
  const counter = charged(countersUs[at] as number, nowUs, amount, keyTerms(policy))
  const budget = charged(budgetUs, nowUs, amount, { most: terms.limit, tokenUs: terms.windowUs / terms.limit })
  if (counter === undefined || budget === undefined) return undefined
  return { after: { terms, budgetUs: budget, countersUs: countersUs.with(at, counter) }, newUs: counter - nowUs }
}

interface Terms {
  readonly most: number
  readonly tokenUs: number
}

function charged(arrivalUs: number, nowUs: number, amount: number, { most, tokenUs }: Terms): number | undefined {
  const owedUs = Math.max(arrivalUs - nowUs, 0) + amount * tokenUs
  return owedUs > most * tokenUs ? undefined : nowUs + owedUs
}

function keyTerms(policy: ExploredPolicy): Terms {
  const { burst, unitsPerToken, unitsPerUs, windowUs } = policy
  if (isRate(policy)) return { most: burst, tokenUs: unitsPerToken / unitsPerUs }
  const most = Math.ceil(burst / 2)
  return { most, tokenUs: windowUs / (burst - most + 1) }
}

/** By the key's fingerprint, see `keyAt` in world.ts. */
function counterOf(key: number, { counters }: OverflowTerms): number {
  return ((key + 1) * 32_768 + 1) % counters
}

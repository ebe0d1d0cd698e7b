import type { Call, Verb } from './call.js'
import type { ExploredPolicy } from './explored-policy.js'
import { denied, type KeyModel, type Step } from './models.js'

/** Tokens that are held until a time. */
type Held = readonly [endUs: number, tokens: number]

const VERBS: ReadonlySet<Verb> = new Set(['open', 'add', 'renew', 'finish'])

/** Whether a call is about open work. */
export function isOfHolds({ verb }: Call): boolean {
  return VERBS.has(verb)
}

/** The key with room for holds. */
export function withHolds(model: KeyModel, policy: ExploredPolicy): KeyModel {
  return model instanceof HoldsModel ? model : new HoldsModel(policy, model, [])
}

/** What a key has spent, by the model of its policy, and a list of what is held beside. */
class HoldsModel implements KeyModel {
  private readonly policy: ExploredPolicy
  private readonly spent: KeyModel
  private readonly holds: readonly Held[]

  constructor(policy: ExploredPolicy, spent: KeyModel, holds: readonly Held[]) {
    this.policy = policy
    this.spent = spent
    this.holds = holds
  }

  debtAt(nowUs: number): number {
    return this.spent.debtAt(nowUs) + this.held(nowUs) * this.policy.unitsPerToken
  }

  isHolding(nowUs: number): boolean {
    return this.held(nowUs) > 0
  }

  /** What has ended by the clock of a call stays so. */
  opened({ nowUs }: Call): KeyModel {
    const holds = this.holds.filter(([endUs]) => endUs > nowUs)
    return holds.length === this.holds.length ? this : this.with(this.spent, holds)
  }

  step(call: Call): Step {
    const { verb, nowUs, amount, bound = 0, rest = 0, toUs = 0 } = call
    const held = this.held(nowUs)
    const own = Math.min(rest, this.holds.find(([endUs]) => endUs === bound && endUs > nowUs)?.[1] ?? 0)
    switch (verb) {
      case 'take':
        return this.taken(call, held, 0)
      case 'open':
        if (!this.passes(nowUs, amount + held)) return denied(this.spent, nowUs, undefined, this)
        return { after: this.moved(amount, bound), value: this.spent.debtAt(nowUs) }
      case 'add':
        return amount <= own ? this.charged(call, amount) : this.taken(call, held - own, own)
      case 'finish':
        return this.charged(call, own)
      case 'renew':
        return own === 0 && rest > 0 ? { after: this, value: 0 } : { after: this.moved(-own, bound).moved(own, toUs), value: toUs }
      case 'reserve':
        return held > 0 ? this.taken(call, held, 0) : this.beside(this.spent.step(call), held)
      default:
        return this.beside(this.spent.step(call), held)
    }
  }

  updated(policy: ExploredPolicy, nowUs: number): KeyModel {
    return new HoldsModel(policy, this.spent.updated(policy, nowUs), this.holds)
  }

  private held(nowUs: number): number {
    return this.holds.reduce((sum, [endUs, tokens]) => sum + (endUs > nowUs ? tokens : 0), 0)
  }

  private passes(nowUs: number, amount: number): boolean {
    return this.spent.step({ verb: 'take', key: 0, nowUs, amount }).denied !== true
  }

  /** Spends what fits beside what others hold; `freed` leaves the own hold. */
  private taken(call: Call, others: number, freed: number): Step {
    const { nowUs, amount, bound = 0 } = call
    if (!this.passes(nowUs, amount + others)) return denied(this.spent, nowUs, undefined, this)
    const { after, value } = this.spent.step({ verb: 'take', key: 0, nowUs, amount })
    return { after: this.with(after as KeyModel, this.holds).moved(-freed, bound), value }
  }

  /** Spends all the same. */
  private charged({ nowUs, amount, bound = 0 }: Call, freed: number): Step {
    const { after, value } = this.spent.step({ verb: 'penalize', key: 0, nowUs, amount })
    return { after: this.with(after as KeyModel, this.holds).moved(-freed, bound), value }
  }

  private beside({ after, value, denied: isDenied }: Step, held: number): Step {
    const kept = after === undefined ? undefined : after === this.spent ? this : this.with(after, this.holds)
    return { after: kept, value, more: held, ...(isDenied === true && { denied: true }) }
  }

  /** With so many more tokens that are held until a time. */
  private moved(tokens: number, endUs: number): HoldsModel {
    if (tokens === 0) return this
    const there = this.holds.find(([end]) => end === endUs)?.[1] ?? 0
    const others = this.holds.filter(([end]) => end !== endUs)
    return this.with(this.spent, there + tokens > 0 ? [...others, [endUs, there + tokens] as const] : others)
  }

  private with(spent: KeyModel, holds: readonly Held[]): HoldsModel {
    return new HoldsModel(this.policy, spent, holds)
  }
}

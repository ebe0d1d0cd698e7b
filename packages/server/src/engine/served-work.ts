import { type Decision, type Hold, type Key, type OpenOptions, PolicyError, StoreError } from 'sluicegate'
import { type Awaitable, whenDone } from './awaitable.js'
import type { ServedPolicy } from './served-policy.js'
import type { StoredLimiter } from './stored-limiter.js'

/** What a caller asks for work that it opens; see `OpenOptions` of the library. */
export interface WorkAsked {
  readonly expect: number | 'learned'
  /** `Infinity`: no bound. */
  readonly most: number
  readonly ttlMs: number
  readonly over: NonNullable<OpenOptions['over']>
}

/** What open work has and did, in tokens. */
export interface WorkState {
  readonly used: number
  readonly held: number
  /** Of what was used, the debt. */
  readonly over: number
  /** What it may spend at once, without debt. */
  readonly affordable: number
}

type AnyHold = Hold<Awaitable<boolean>>

/** Open work of a key, which goes on when another limiter has the key: by a tier, or by a reload. */
export class ServedWork {
  readonly served: ServedPolicy
  readonly key: Key
  readonly asked: WorkAsked
  /** Whether it began, as a take would be answered. */
  readonly decision: Decision
  #at: StoredLimiter
  #hold: AnyHold
  /** Under limiters before this one. */
  #usedBefore = 0
  #overBefore = 0

  constructor(served: ServedPolicy, key: Key, asked: WorkAsked) {
    this.served = served
    this.key = key
    this.asked = asked
    this.#at = served.limiterOf(key)
    this.#hold = this.#opened(asked.expect)
    const { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source, parts } = this.#hold
    this.decision = { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source, ...(parts && { parts }) }
  }

  get state(): WorkState {
    const { used, held, over, allowed } = this.#hold
    return {
      used: this.#usedBefore + used,
      held,
      over: this.#overBefore + over,
      affordable: allowed ? Math.min(this.#mostLeft, this.#hold.affordable(1)) : 0,
    }
  }

  /** Spends `cost`. False: nothing was spent. */
  add(cost: number): Awaitable<boolean> {
    this.#follow()
    if (cost > this.#mostLeft) return this.#usedBefore === 0 && this.#hold.add(cost)
    if (this.#begins(cost)) return this.#hold.add(cost)
    if (cost === 0 || this.asked.over !== 'finish') return cost === 0
    return whenDone(this.#inDebt(cost), () => true) as Awaitable<boolean>
  }

  /** Ends it with its true cost; undefined: what was added. */
  close(cost: number | undefined): Awaitable<Decision> {
    this.#follow()
    const here = cost === undefined ? undefined : Math.max(0, cost - this.#usedBefore)
    if (this.#begins(here ?? 0)) return this.#hold.close(here)
    return here === undefined || here === 0 ? this.#at.peek(this.key, 1) : this.#inDebt(here)
  }

  get #mostLeft(): number {
    return this.asked.most - this.#usedBefore - this.#hold.used
  }

  /** Goes to the limiter that has the key now, with what is held if there is room for it. */
  #follow(): void {
    const at = this.served.limiterOf(this.key)
    if (at === this.#at) return
    const { held, used, over } = this.#hold
    this.#usedBefore += used
    this.#overBefore += over
    try {
      if (this.#hold.allowed) this.#hold.close()
    } catch (error) {
      // That limiter is closed, with all that it knew.
      if (!(error instanceof StoreError)) throw error
    }
    this.#at = at
    this.#hold = this.#opened(Math.max(1, held))
  }

  /** Whether it has a hold. Where it went there may have been no room for what it held: then it begins anew with this piece. */
  #begins(cost: number): boolean {
    if (!this.#hold.allowed) this.#hold = this.#opened(Math.max(1, cost))
    return this.#hold.allowed
  }

  #inDebt(cost: number): Awaitable<Decision> {
    this.#usedBefore += cost
    this.#overBefore += cost
    return this.#at.penalize(this.key, cost)
  }

  #opened(expect: number | 'learned'): AnyHold {
    const { ttlMs: ttl, over, most } = this.asked
    const left = this.#usedBefore === 0 ? most : Math.max(1, most - this.#usedBefore)
    if (this.#at.open === undefined) {
      const mend = 'has its keys in a store, where there are no holds: reserve and settle'
      throw new PolicyError('POLICY_INVALID', 'policy', this.served.name, mend)
    }
    return this.#at.open(this.key, { expect, ttl, over, ...(left !== Number.POSITIVE_INFINITY && { most: left }) })
  }
}

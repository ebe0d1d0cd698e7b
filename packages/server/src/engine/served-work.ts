import { type Decision, followKey, type Hold, type Key, type OpenOptions, PolicyError } from 'sluicegate'
import type { Awaitable } from './awaitable.js'
import type { EngineLimiter } from './engine-limiter.js'
import type { ServedPolicy } from './served-policy.js'

/** What a caller asks for work that it opens; see `OpenOptions` of the library. */
export interface WorkAsked {
  readonly expect: number | 'learned'
  /** `Infinity`: no bound. */
  readonly most: number
  readonly ttlMs: number
  readonly over: NonNullable<OpenOptions['over']>
  /** The caller's, by which an open that is said again receives the same hold: see `numberOf`. */
  readonly id?: string | undefined
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

/** Open work of a key, which goes on with what it holds when another limiter has the key: by a tier, or by a reload. */
export class ServedWork {
  readonly served: ServedPolicy
  readonly key: Key
  readonly asked: WorkAsked
  /** Whether it began, as a take would be answered. */
  readonly decision: Decision
  readonly #hold: Hold<Awaitable<boolean>>

  constructor(served: ServedPolicy, key: Key, asked: WorkAsked) {
    this.served = served
    this.key = key
    this.asked = asked
    const limiterNow = (): EngineLimiter => served.limiterOf(key)
    const limiter = limiterNow()
    if (limiter.open === undefined) throw new PolicyError('POLICY_INVALID', 'policy', served.name, 'opens no work: reserve and settle')
    const { expect, most, ttlMs: ttl, over } = asked
    const hold = limiter.open(key, { expect, ttl, over, ...(most !== Number.POSITIVE_INFINITY && { most }) })
    this.#hold = followKey(hold as Hold, limiterNow)
    const { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source, parts, spent } = hold
    this.decision = {
      allowed,
      limit,
      remaining,
      retryAfterMs,
      resetAfterMs,
      policy,
      source,
      ...(parts && { parts }),
      ...(spent !== undefined && { spent }),
    }
  }

  get state(): WorkState {
    const { used, held, over } = this.#hold
    return { used, held, over, affordable: this.#hold.affordable(1) }
  }

  /** Spends `cost`. False: nothing was spent. */
  add(cost: number): Awaitable<boolean> {
    return this.#hold.add(cost)
  }

  /** Ends it with its true cost; undefined: what was added. */
  close(cost: number | undefined): Awaitable<Decision> {
    return this.#hold.close(cost)
  }
}

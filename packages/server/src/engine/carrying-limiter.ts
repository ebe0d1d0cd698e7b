import { carryKey, type Decision, type HotKeys, type Key, type Limiter, type Policy, type SharedStats } from 'sluicegate'
import type { Awaitable } from './awaitable.js'
import type { LimiterFigures, StoredLimiter, StoredReservation } from './stored-limiter.js'
import { fullAfterMs, TieredLimiter } from './tiered-limiter.js'

/** Earlier limiters that are kept for one policy. */
const MAX_FORMER = 4

interface Former {
  readonly limiter: StoredLimiter
  /** No key has state there any more. */
  readonly untilMs: number
}

/** A limiter in memory in the place of another, with other policies or another table: a key brings along what it has spent when it is next used. */
export class CarryingLimiter implements StoredLimiter {
  readonly isShared = false
  readonly #current: StoredLimiter
  readonly #nowMs: () => number
  #former: readonly Former[]

  /** Both limiters belong to this one from now on. */
  constructor(current: StoredLimiter, before: StoredLimiter, nowMs: () => number) {
    this.#current = current
    this.#nowMs = nowMs
    const earlier = before instanceof CarryingLimiter ? before.#former : []
    const last = before instanceof CarryingLimiter ? before.#current : before
    const all = [{ limiter: last, untilMs: nowMs() + fullAfterMs(last.policy) }, ...earlier]
    for (const { limiter } of all.slice(MAX_FORMER)) limiter.close()
    this.#former = all.slice(0, MAX_FORMER)
  }

  /** Whether keys can go from one limiter to another: only in memory, and not where tiers decide which table has a key. */
  static canCarry(before: StoredLimiter, after: StoredLimiter): boolean {
    return [before, after].every((limiter) => !limiter.isShared && !(limiter instanceof TieredLimiter))
  }

  get policy(): Policy {
    return this.#current.policy
  }

  take(key: Key, cost: number): Awaitable<Decision> {
    return this.#of(key).take(key, cost)
  }

  peek(key: Key, cost: number): Awaitable<Decision> {
    return this.#of(key).peek(key, cost)
  }

  reserve(key: Key, cost: number): Awaitable<StoredReservation> {
    return this.#of(key).reserve(key, cost)
  }

  limiterOf(key: Key): StoredLimiter {
    return this.#of(key)
  }

  refund(key: Key, tokens: number): Awaitable<Decision> {
    return this.#of(key).refund(key, tokens)
  }

  penalize(key: Key, tokens: number): Awaitable<Decision> {
    return this.#of(key).penalize(key, tokens)
  }

  block(key: Key, forMs: number): Awaitable<Decision> {
    return this.#of(key).block(key, forMs)
  }

  reset(key: Key): Awaitable<Decision> {
    return this.#of(key).reset(key)
  }

  update(policy: Policy): void {
    this.#current.update(policy)
  }

  stats(): LimiterFigures {
    return this.#current.stats()
  }

  storeStats(): SharedStats | undefined {
    return undefined
  }

  hotKeys(n: number): HotKeys {
    return this.#current.hotKeys(n)
  }

  /** Without the keys that were not used since. */
  snapshot(): Uint8Array | undefined {
    return this.#current.snapshot()
  }

  close(): void {
    this.#current.close()
    for (const { limiter } of this.#former) limiter.close()
    this.#former = []
  }

  #of(key: Key): StoredLimiter {
    if (this.#former.length > 0) {
      const nowMs = this.#nowMs()
      const isOver = ({ untilMs }: Former): boolean => untilMs <= nowMs
      if (this.#former.some(isOver)) {
        for (const { limiter } of this.#former.filter(isOver)) limiter.close()
        this.#former = this.#former.filter((former) => !isOver(former))
      }
      carryKey(
        this.#former.map(({ limiter }) => limiter as unknown as Limiter),
        this.#current as unknown as Limiter,
        key,
      )
    }
    return this.#current
  }
}

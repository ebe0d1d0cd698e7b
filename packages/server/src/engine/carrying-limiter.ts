import { carryKey, type HotKeys, type Key, type Limiter, type SharedStats } from 'sluicegate'
import type { EngineLimiter, LimiterFigures } from './engine-limiter.js'
import { RoutedLimiter } from './routed-limiter.js'
import { fullAfterMs, TieredLimiter } from './tiered-limiter.js'

/** Earlier limiters that are kept for one policy. */
export const MAX_FORMER = 4

interface Former {
  readonly limiter: EngineLimiter
  /** No key has state there any more. */
  readonly untilMs: number
}

/** Keys that are carried over when they are next used. */
export interface FormerSnapshot {
  readonly bytes: Uint8Array
  readonly untilMs: number
}

/** A limiter in memory in the place of another, with other policies or another table: a key brings along what it has spent when it is next used. */
export class CarryingLimiter extends RoutedLimiter {
  readonly isShared = false
  protected readonly own: EngineLimiter
  readonly #nowMs: () => number
  #former: readonly Former[]

  /**
   * Both limiters belong to this one from now on.
   *
   * @param untilMs from when on no key has state in the one before.
   */
  constructor(current: EngineLimiter, before: EngineLimiter, nowMs: () => number, untilMs = nowMs() + fullAfterMs(before.policy)) {
    super()
    this.own = current
    this.#nowMs = nowMs
    const earlier = before instanceof CarryingLimiter ? before.#former : []
    const last = before instanceof CarryingLimiter ? before.own : before
    const all = [{ limiter: last, untilMs }, ...earlier]
    for (const { limiter } of all.slice(MAX_FORMER)) limiter.close()
    this.#former = all.slice(0, MAX_FORMER)
  }

  /** Whether keys can go from one limiter to another: only in memory, and not where tiers decide which table has a key. */
  static canCarry(before: EngineLimiter, after: EngineLimiter): boolean {
    return [before, after].every((limiter) => !limiter.isShared && !(limiter instanceof TieredLimiter))
  }

  /** Of the tables before this one, the latest first: keys that have not been used since are there. */
  *formerSnapshots(): Generator<FormerSnapshot> {
    for (const { limiter, untilMs } of this.#former) {
      const bytes = limiter.snapshot()
      if (bytes !== undefined && untilMs > this.#nowMs()) yield { bytes, untilMs }
    }
  }

  stats(): LimiterFigures {
    return this.own.stats()
  }

  storeStats(): SharedStats | undefined {
    return undefined
  }

  hotKeys(n: number): HotKeys {
    return this.own.hotKeys(n)
  }

  close(): void {
    this.own.close()
    for (const { limiter } of this.#former) limiter.close()
    this.#former = []
  }

  protected of(key: Key): EngineLimiter {
    if (this.#former.length > 0) {
      const nowMs = this.#nowMs()
      const isOver = ({ untilMs }: Former): boolean => untilMs <= nowMs
      if (this.#former.some(isOver)) {
        for (const { limiter } of this.#former.filter(isOver)) limiter.close()
        this.#former = this.#former.filter((former) => !isOver(former))
      }
      carryKey(
        this.#former.map(({ limiter }) => limiter as unknown as Limiter),
        this.own as unknown as Limiter,
        key,
      )
    }
    return this.own
  }
}

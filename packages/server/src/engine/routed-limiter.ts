import type { Decision, HotKeys, Key, Policy, SharedStats } from 'sluicegate'
import type { Awaitable } from './awaitable.js'
import type { EngineLimiter, EngineReservation, LimiterFigures } from './engine-limiter.js'
import { takeAbove } from './take-above.js'

/** A limiter of others: each call goes to the one that has the key. */
export abstract class RoutedLimiter implements EngineLimiter {
  abstract readonly isShared: boolean
  /** What has the policy's own limit. */
  protected abstract readonly own: EngineLimiter

  /** The one that has the key now. */
  protected abstract of(key: Key): EngineLimiter

  abstract stats(): LimiterFigures
  abstract storeStats(): SharedStats | undefined
  abstract hotKeys(n: number): HotKeys
  abstract close(): void

  get policy(): Policy {
    return this.own.policy
  }

  limiterOf(key: Key): EngineLimiter {
    const limiter = this.of(key)
    return limiter.limiterOf?.(key) ?? limiter
  }

  take(key: Key, cost: number): Awaitable<Decision> {
    return this.of(key).take(key, cost)
  }

  takeAbove(key: Key, cost: number, floor: number): Awaitable<Decision> {
    return takeAbove(this.of(key), key, cost, floor)
  }

  peek(key: Key, cost: number): Awaitable<Decision> {
    return this.of(key).peek(key, cost)
  }

  reserve(key: Key, cost: number): Awaitable<EngineReservation> {
    return this.of(key).reserve(key, cost)
  }

  refund(key: Key, tokens: number): Awaitable<Decision> {
    return this.of(key).refund(key, tokens)
  }

  penalize(key: Key, tokens: number): Awaitable<Decision> {
    return this.of(key).penalize(key, tokens)
  }

  block(key: Key, forMs: number): Awaitable<Decision> {
    return this.of(key).block(key, forMs)
  }

  reset(key: Key): Awaitable<Decision> {
    return this.of(key).reset(key)
  }

  /** Changes the own limit. */
  update(policy: Policy): void {
    this.own.update(policy)
  }

  /** Keys under the own limit. */
  snapshot(): Uint8Array | undefined {
    return this.own.snapshot()
  }
}

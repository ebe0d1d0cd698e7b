// So that the declarations of users without it know Symbol.dispose.
/// <reference lib="esnext.disposable" preserve="true" />
import type { Clock } from './clock.js'
import type { Decision } from './decision.js'
import type { Duration } from './duration.js'
import type { HotKeys } from './hot-keys.js'
import type { Policy } from './policy.js'

/** What {@link createLimiter} takes beside the policy. */
export interface LimiterOptions {
  /** How many keys are tracked at once, at least: 1 to 100,000,000, default 100,000. Memory is fixed at about 23 bytes a key and touched only as keys come. */
  readonly maxKeys?: number
  /** Default `preciseClock()`. */
  readonly clock?: Clock
  /**
   * When a newcomer finds no room: `evict` (default) forgets the key with the least debt among those that would pass now, and
   * counts it; `deny` denies the newcomer. A key that is being denied is never forgotten, whichever is chosen.
   */
  readonly onFull?: 'evict' | 'deny'
  /** Keep a top list of this many keys by demand and by denial, for {@link Limiter.hotKeys}; default 0, none. */
  readonly hotKeys?: number
}

/** Counters since the limiter was made, over all threads that share it. */
export interface LimiterStats {
  /** Keys in the table, those that are as good as new and not yet replaced included. */
  readonly keys: number
  /** Keys forgotten while they still had debt. Each is worth at most that debt in over-admission. */
  readonly evictions: number
  /** Newcomers denied because nothing near them could be forgotten. */
  readonly refusals: number
  /** Swaps that lost against another thread and were tried again. */
  readonly casRetries: number
  /** Calls given up with `CONTENTION`. */
  readonly contentions: number
  /** Fixed size of the shared memory, in bytes. */
  readonly memoryBytes: number
}

/** A key whose hash was computed once: the fastest way to ask about it again and again. */
export interface BoundKey {
  readonly key: string
  take(cost?: number): Decision
  peek(cost?: number): Decision
}

/** What to post to a worker thread; there, `attachLimiter(handle)`. Structured-clonable. */
export interface LimiterHandle {
  readonly sluicegate: 1
}

/**
 * A policy applied to keys. A key is a string of 1 to 1,024 UTF-16 units, a cost an integer >= 1.
 *
 * Every method throws {@link PolicyError} `KEY_INVALID` or `COST_INVALID` on misuse, {@link StoreError} `CLOSED` after
 * `close()`, and `CONTENTION` if other threads kept it from deciding within a bounded wait.
 */
export interface Limiter {
  /** The policy in force now, on any thread that shares this limiter. */
  readonly policy: Policy
  /** Takes `cost` tokens if they are there. A denial changes nothing; a cost above the burst is denied with `retryAfterMs: Infinity`. */
  take(key: string, cost?: number): Decision
  /** What `take` would answer now; changes nothing, and `remaining` is what is there before it. */
  peek(key: string, cost?: number): Decision
  /** Gives back `tokens`, at most to full. */
  refund(key: string, tokens: number): Decision
  /** Takes `tokens` whether they are there or not, down to a debt of ten bursts. */
  penalize(key: string, tokens: number): Decision
  /** Denies the key everything for `duration`, apart from its tokens. The longest block wins; 0 lifts it. */
  block(key: string, duration: Duration): Decision
  /** Makes the key as good as new and lifts its block. */
  reset(key: string): Decision
  /** The key hashed once. */
  key(key: string): BoundKey
  /**
   * Changes the policy for all threads that share this limiter, at once. What a key has spent stays spent, at most the new
   * burst: nobody gets a fresh burst, nobody is locked out for years.
   *
   * @throws {PolicyError} `ALGORITHM_CHANGE`; nothing has changed then.
   */
  update(policy: Policy): void
  /** For a worker thread: `attachLimiter(handle)` there shares this exact budget. */
  handle(): LimiterHandle
  stats(): LimiterStats
  /** The `n` keys with the highest demand and the `n` with the most denials; empty unless the option `hotKeys` is set. */
  hotKeys(n?: number): HotKeys
  /** Lets go of the memory here; other threads keep theirs. Every later call throws `CLOSED`. */
  close(): void
  [Symbol.dispose](): void
}

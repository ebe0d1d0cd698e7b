// So that the declarations of users without it know Symbol.dispose.
/// <reference lib="esnext.disposable" preserve="true" />

import type { WaitOptions } from './arguments.js'
import type { BanOptions } from './ban-options.js'
import type { Decision } from './decision/decision.js'
import type { HotKeys } from './decision/hot-keys.js'
import type { Reservation } from './decision/reservation.js'
import type { Key } from './key.js'
import type { Policy } from './policy/policy.js'
import type { QueueOptions } from './queue/queue-options.js'
import type { QueueVerbs } from './queue/work-queue.js'
import type { Clock } from './time/clock.js'
import type { Duration } from './time/duration.js'

export type { WaitOptions } from './arguments.js'
export type { Key } from './key.js'

/** What {@link createLimiter} takes beside the policy. */
export interface LimiterOptions {
  /**
   * How many keys always find room: 1 to 100,000,000; default 100,000, or as many as fit 1 GiB where each is large. About 23 bytes a key,
   * and per key 8 more for a sliding window above a limit of 65,535 or of under 220 ms, 8 for each of `limit` permits, and `slotBytes` for
   * each of `limit` requests of a log. An `update` to more may add to it.
   */
  readonly maxKeys?: number
  /**
   * How many keys the table grows to when it is full of keys that may not be forgotten: `maxKeys` to 100,000,000. Default: `maxKeys` when
   * that is given, so that the table stays as it is; otherwise 1,600,000, or as many as fit 256 MiB where each is large. What it may grow
   * to is laid out at once and takes memory only when the table has grown.
   */
  readonly growTo?: number
  /** Default `preciseClock()`; under windows of the calendar `wallClock()`. */
  readonly clock?: Clock
  /**
   * When a newcomer finds no room: `evict` (default) forgets the key with the least debt among those that would pass now, and
   * counts it; `deny` denies the newcomer. A key that is being denied is never forgotten, whichever is chosen.
   */
  readonly onFull?: 'evict' | 'deny'
  /**
   * Joint budget of new keys while the table is full of keys that are being denied: `limit` requests per window for all new keys
   * together, and at most what the policy allows for each. Default: 1 % of what `growTo` keys may spend; with `onFull: 'deny'`, and
   * for `concurrency`, nothing. `false`: nothing, every new key is denied then.
   */
  readonly newcomers?: { readonly limit: number; readonly window: Duration } | false
  /** Keep a top list of this many keys by demand and by denial, for {@link Limiter.hotKeys}: at most 10,000; default 0, none. */
  readonly hotKeys?: number
  /** How many callers may be in {@link Limiter.wait} at once, on this thread: 0 to 1,000,000, default 10,000. */
  readonly maxWaiters?: number
  /** Bounds of the queue behind {@link Limiter.run} and {@link Limiter.wrap}; it belongs to this thread. */
  readonly queue?: QueueOptions
  /**
   * Another policy for some keys: overrides and tiers. Asked at each call; undefined, or what the limiter was made with, is the limiter's
   * own policy, the only one that `update` changes. Return policies made beforehand: one made anew finds what counts for its equal, but
   * more slowly. Each policy has its own table of `maxKeys`, its own waiters and hot keys; a key whose policy changes starts afresh there.
   * Keys are then single strings, also under `allOf`.
   */
  readonly policyFor?: (key: string) => Policy | undefined
  /**
   * All that `policyFor` may return, at most 1,000, each made at once: needed for {@link Limiter.handle}, so that all threads share them.
   * Without it each is made when it is first returned, also at most 1,000, and the limiter stays in its thread.
   */
  readonly policies?: readonly Policy[]
  /** Keep policies of single keys, which can be set, read and taken away at any time: see `limiter.overrides`. */
  readonly overrides?: boolean
  /**
   * Block a key whose takes are denied again and again: `{ denials: 10, within: '1m', for: '15m', factor: 2 }`. Denials are counted in this thread;
   * the block is for all. `reset` lifts it. Keys are then single strings.
   */
  readonly banAfter?: BanOptions
  /** Keys that always pass and are not counted. Of several keys in one call all have to be on it. */
  readonly allow?: KeyList
  /** Keys that never pass; they are denied with `retryAfterMs: Infinity`. A key on both lists is denied, and so is a call with any key on it. */
  readonly deny?: KeyList
  /** Decide and count as ever, but let everything pass: what would have been denied, or made to wait, says `wouldDeny: true`. */
  readonly shadow?: boolean
}

/** Keys by name, read once, or a function that is asked each time. */
export type KeyList = Iterable<string> | ((key: string) => boolean)

/** Counters since the limiter was made, over all threads that share it. */
export interface LimiterStats {
  /** Keys in the table, including full keys that are not yet replaced. */
  readonly keys: number
  /** Keys forgotten while they still had debt. Each is worth at most that debt in over-admission. */
  readonly evictions: number
  /** Requests of new keys that were denied because nothing near them could be forgotten. */
  readonly refusals: number
  /** Requests of new keys that found no room either, and passed on what the option `newcomers` allows. */
  readonly overflows: number
  /** Swaps that lost against another thread and were tried again. */
  readonly casRetries: number
  /** Calls given up with `CONTENTION`. */
  readonly contentions: number
  /**
   * Size of the shared memory that is in use, in bytes. It grows with the table, up to `growTo` keys; with an `update` to more slots than there is room for, and by a page when 64 threads have
   * died in the middle of a change of several words, and again after each 127 more.
   */
  readonly memoryBytes: number
}

/** A key whose hash was computed once: the fastest way to ask about it again and again. */
export interface BoundKey<Answer extends Decision = Decision> {
  readonly key: Key
  take(cost?: number): Answer
  peek(cost?: number): Decision
}

/** Exists only for the compiler: the result type of the takes of a handle's limiter. */
declare const answer: unique symbol

/** What to post to a worker thread; there, `attachLimiter(handle)`. Structured-clonable. */
export interface LimiterHandle<Answer extends Decision = Decision> {
  readonly sluicegate: 1
  readonly [answer]?: Answer
}

/**
 * A policy applied to keys. A key is a string of 1 to 1,024 UTF-16 units, a cost an integer >= 1.
 *
 * Every method throws {@link PolicyError} `KEY_INVALID` or `COST_INVALID` on misuse, {@link StoreError} `CLOSED` after
 * `close()`, and `CONTENTION` if other threads kept it from deciding within a bounded wait.
 */
export interface Limiter<Answer extends Decision = Decision> extends QueueVerbs {
  /** The policy in force now, on any thread that shares this limiter. Of `allOf` it is made anew at each reading. */
  readonly policy: Policy
  /** Takes `cost` tokens if they are there. A denial changes nothing; a cost above the burst is denied with `retryAfterMs: Infinity`. */
  take(key: Key, cost?: number): Answer
  /** What `take` would answer now; changes nothing, and `remaining` is what is there before it. */
  peek(key: Key, cost?: number): Decision
  /**
   * Resolves with an allowed decision when `cost` tokens are there, in the order of arrival for each key of this thread; neither `take`
   * nor `reserve` overtakes. Denied at once when the cost can never pass, when it would take longer than `maxWaitMs`, or when
   * `maxWaiters` are waiting.
   *
   * Rejects only when the signal aborts, with its reason, and with {@link StoreError} `CLOSED` when the limiter is closed.
   */
  wait(key: Key, options?: WaitOptions): Promise<Answer>
  /**
   * Books `cost` tokens now, to be spent in `waitMs`: for work whose cost is known only afterwards, such as bytes or the tokens
   * of a language model. Say what it was with `settle`, or `cancel`.
   */
  reserve(key: Key, cost: number): Reservation
  /** Gives back `tokens`, at most to full. */
  refund(key: Key, tokens: number): Decision
  /** Takes `tokens` whether they are there or not, down to ten bursts below empty. */
  penalize(key: Key, tokens: number): Decision
  /** Denies the key everything for `duration`, apart from its tokens. The longest block wins; 0 lifts it. */
  block(key: Key, duration: Duration): Decision
  /** Refills the key and lifts its block. */
  reset(key: Key): Decision
  /** The key hashed once. */
  key(key: Key): BoundKey<Answer>
  /**
   * Changes the policy for all threads that share this limiter, at once. With the same numbers, as when only the name is another,
   * nothing changes about any key. With other numbers, spent tokens stay spent, at most the new burst: no key gets a new burst or is
   * denied for years. Debt of a bucket beyond the new burst, from penalties or bookings ahead, is forgiven, also if the limit is raised
   * again; waiters keep their times.
   *
   * @throws {PolicyError} `ALGORITHM_CHANGE`, also for another `slotBytes` of a log, and `RANGE_UNSUPPORTED`; nothing has changed then.
   * @throws {StoreError} `CONTENTION` when keys could not be carried over.
   */
  update(policy: Policy): void
  /** For a worker thread: `attachLimiter(handle)` there shares this exact budget. */
  handle(): LimiterHandle<Answer>
  stats(): LimiterStats
  /**
   * The whole state as bytes for {@link restoreLimiter}, so that a restart grants no new bursts. Other threads may continue: each key is copied
   * in its state at one moment; under `allOf`, separately for each policy.
   */
  snapshot(): Uint8Array
  /** The `n` keys with the highest demand and the `n` with the most denials; empty unless the option `hotKeys` is set. Default 10. */
  hotKeys(n?: number): HotKeys
  /** Releases the memory of this thread; other threads keep theirs. Later calls throw `CLOSED`. */
  close(): void
  [Symbol.dispose](): void
}

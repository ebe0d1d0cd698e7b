// So that the declarations of users without it know Symbol.dispose.
/// <reference lib="esnext.disposable" preserve="true" />

import type { ReserveOptions, TurnOptions, WaitOptions } from './arguments.js'
import type { Answered, Awaitable, Decided, When } from './awaitable.js'
import type { BanOptions } from './ban-options.js'
import type { Decision } from './decision/decision.js'
import type { DecisionCounts } from './decision/decision-counts.js'
import type { HotKeys } from './decision/hot-keys.js'
import type { Reservation } from './decision/reservation.js'
import type { Hold, OpenOptions } from './holds/hold.js'
import type { Key, KeysByName } from './key.js'
import type { Plans, PolicyOfKey } from './plan-options.js'
import type { Policy } from './policy/policy.js'
import type { QueueVerbs } from './queue/work-queue.js'
import type { Duration } from './time/duration.js'
import type { WatchOptions } from './watch-options.js'

export type { ReserveOptions, WaitOptions } from './arguments.js'
export type { Key, KeysByName } from './key.js'

/** With a store the options are {@link SharedOptions}. */
interface InMemory {
  readonly store?: undefined
}

/** What {@link createLimiter} takes beside the policy. */
export interface LimiterOptions extends InMemory, WatchOptions, TurnOptions {
  /**
   * Keys that always find room, 1 to 100,000,000, in a table of that size. A key takes about 23 bytes; more for wide windows, for each of
   * `limit` permits (8 bytes) and for each slot of a log. Over a store: keys with a lease or cached denial in this process, 1 to 10,000,000, `100_000` by
   * default; the store decides each take of other keys. Of `limitedFetch` 1 to 1,000,000, by default 10,000: the key that is idle for longest is forgotten, if
   * all are busy a request fails with `KEYS_FULL`. Of one object of `limiterObject` 1 to 100,000, by default 100: each holds one key unless the limiters'
   * `objectFor` groups them, and denies a new key when all have spent what they may.
   *
   * @defaultValue `100_000`, or as many as fit 1 GiB; this table grows to `1_600_000` keys, or as many as fit 256 MiB
   * @example createLimiter(policy, { maxKeys: 1_000_000 })
   */
  readonly maxKeys?: number
  /**
   * A new key without room: `evict` evicts, among the keys that would pass now, the one with the least debt; `deny` denies the new key. A
   * key that is being denied stays.
   *
   * @defaultValue `'evict'`
   * @example createLimiter(policy, { onFull: 'deny' })
   */
  readonly onFull?: 'evict' | 'deny'
  /**
   * Length of the lists of the busiest and the most denied keys, for {@link Limiter.hotKeys}: at most 10,000.
   *
   * @defaultValue `0`
   * @example createLimiter(policy, { hotKeys: 100 })
   */
  readonly hotKeys?: number
  /**
   * Another policy for some keys, evaluated at each call; undefined: the limiter's own. Return policies made beforehand. What a key has
   * spent is spent under its next policy. Keys are then single strings. For `levels`: such functions by the name of a level, with policies of its
   * algorithm, at most 1,000, over a store in as many combinations. Of `limitedFetch`: asked when a key is first used;
   * undefined for `policy`, or for none.
   *
   * @defaultValue none
   * @example createLimiter(free, { policyFor: (key) => plans.get(key) })
   * @example createLimiter(levels({ org, team }), { policyFor: { team: (id) => plans.get(id) } })
   */
  readonly policyFor?: PolicyOfKey | Plans
  /**
   * All that `policyFor` may return, at most 1,000, made at once. {@link Limiter.handle} needs it, so that all threads share them.
   *
   * @defaultValue each policy is made when it is first returned
   * @example createLimiter(free, { policyFor, policies: [pro] })
   */
  readonly policies?: readonly Policy[]
  /**
   * Policies of single keys, which can be set, read and deleted at any time by `limiter.overrides`. Over a store they are kept there, for all processes
   * with this option; with a primary, `serveLimiter` needs it, too. Another process's change takes effect here within `maxAge`, 10 ms to 1 hour, by
   * default 1 s: `{ maxAge: '200ms' }`.
   *
   * @defaultValue `false`
   * @example createLimiter(policy, { overrides: true })
   */
  readonly overrides?: boolean
  /**
   * Bans a key after repeated denials, which each thread counts; the ban is for all. Keys are then single strings.
   *
   * @defaultValue none
   * @example createLimiter(policy, { banAfter: { denials: 10, within: '1m', for: '15m' } })
   */
  readonly banAfter?: BanOptions
  /**
   * Keys that pass uncounted: a list, or a function. Of several keys in one call all have to be on it.
   *
   * @defaultValue none
   * @example createLimiter(policy, { allow: ['health-check'] })
   */
  readonly allow?: KeyList
  /**
   * Keys that never pass: they are denied with `retryAfterMs: Infinity`, also when they are on both lists.
   *
   * @defaultValue none
   * @example createLimiter(policy, { deny: (key) => banned.has(key) })
   */
  readonly deny?: KeyList
  /**
   * Decide and count, but let everything pass: what would have been denied, or made to wait, has `wouldDeny: true`. Of middleware: headers do not mention
   * the limit, requests without a key pass, and `onDenied` is called.
   *
   * @defaultValue `false`
   * @example createLimiter(policy, { shadow: true })
   */
  readonly shadow?: boolean
}

/** Keys by name, read once, or a function that is asked each time. */
export type KeyList = Iterable<string> | ((key: string) => boolean)

/** Counters since the limiter was made, over all threads that share it. */
export interface LimiterStats {
  /** What this thread decided, by the name of the policy; empty for a rate table, which has none. */
  readonly decisions: Readonly<Record<string, DecisionCounts>>
  /** Keys in the table, including full keys that are not yet replaced. */
  readonly keys: number
  /** Keys forgotten while they still had debt. Each is worth at most that debt in over-admission. */
  readonly evictions: number
  /** Requests of new keys that were denied because nothing near them could be forgotten. */
  readonly refusals: number
  /** Requests of new keys that found no room either, and passed on the budget that such keys share. */
  readonly overflows: number
  /** Swaps that lost against another thread and were tried again. */
  readonly casRetries: number
  /** Calls given up with `CONTENTION`. */
  readonly contentions: number
  /**
   * Size of the shared memory that is in use, in bytes. It grows with the table, unless `maxKeys` is given; with an `update` to more slots than there is room for, and by a page when 64 threads have
   * died in the middle of a change of several words, and again after each 127 more.
   */
  readonly memoryBytes: number
}

/** A key that was checked, and in memory hashed, once: the fastest way to ask about it again and again. */
export interface BoundKey<Answer extends Decision = Decision, Time extends When = 'now'> {
  readonly key: Key
  take(cost?: number): Decided<Time, Answer>
  peek(cost?: number): Decided<Time, Decision>
}

/** Exists only for the compiler: the result type of the takes of a handle's limiter. */
declare const answer: unique symbol

/** What to post to a worker thread; there, `attachLimiter(handle)`. Structured-clonable. */
export interface LimiterHandle<Answer extends Decision = Decision> {
  readonly sluicegate: 1
  readonly [answer]?: Answer
}

/**
 * What every limiter does, in memory (`now`) and over a store (`later`): a policy applied to keys. A key is a string of 1 to 1,024 UTF-16 units,
 * a cost an integer >= 1.
 */
export interface LimiterVerbs<Answer extends Decision = Decision, Time extends When = When, Keys = Key> extends QueueVerbs {
  /** The policy in force now. In memory on any thread that shares this limiter; of `allOf` it is made again at each reading. */
  readonly policy: Policy
  /** Takes `cost` tokens if they are there. A denial changes nothing; a cost above the burst is denied with `retryAfterMs: Infinity`. */
  take(key: Keys, cost?: number): Decided<Time, Answer>
  /** What `take` would answer now; changes nothing, and `remaining` is what is there before it. */
  peek(key: Keys, cost?: number): Decided<Time, Decision>
  /**
   * Resolves with an allowed decision when `cost` tokens are there, in the order of arrival for each key of this thread; neither `take`
   * nor `reserve` overtakes. Denied at once when the cost can never pass, when it would take longer than `maxWait`, or when
   * `maxWaiting` are waiting.
   *
   * Rejects only when the signal aborts, with its reason, and with {@link StoreError} `CLOSED` when the limiter is closed.
   */
  wait(key: Keys, options?: WaitOptions): Promise<Answer>
  /**
   * Books `cost` tokens now, to be spent in `waitMs`: for work whose cost is known only afterwards, such as bytes or the tokens
   * of a language model. Say what it was with `settle`, or `cancel`. With `{ maxWait: 0 }` it books what may be spent now, or nothing.
   */
  reserve(key: Keys, cost: number, options?: ReserveOptions): Answered<Time, Reservation<Time>>
  /** Gives back `tokens`, at most to full. */
  refund(key: Keys, tokens: number): Answered<Time, Decision>
  /** Takes `tokens` whether they are there or not, down to ten bursts below empty. */
  penalize(key: Keys, tokens: number): Answered<Time, Decision>
  /** Denies the key everything for `duration`, apart from its tokens. The longest block wins; 0 lifts it. */
  block(key: Keys, duration: Duration): Answered<Time, Decision>
  /** Refills the key and lifts its block. */
  reset(key: Keys): Answered<Time, Decision>
  /** The key checked once. */
  key(key: Keys): BoundKey<Answer, Time>
  /** Changes the policy; its algorithm stays. */
  update(policy: Policy): void
  /** The `n` keys with the highest demand and the `n` with the most denials; empty unless the option `hotKeys` is set. Default 10. */
  hotKeys(n?: number): HotKeys
  close(): void
  [Symbol.dispose](): void
}

/**
 * A limiter in memory, whose answers come at once.
 *
 * Every method throws {@link PolicyError} `KEY_INVALID` or `COST_INVALID` on misuse, {@link StoreError} `CLOSED` after
 * `close()`, and `CONTENTION` if other threads kept it from deciding within a bounded wait.
 */
export interface Limiter<Answer extends Decision = Decision> extends LimiterVerbs<Answer, 'now', Key | KeysByName> {
  /**
   * Changes the policy for all threads that share this limiter, at once. With the same numbers, as when only the name is another,
   * nothing changes about any key. With other numbers, spent tokens stay spent, at most the new burst: no key gets a new burst or is
   * denied for years. Debt of a bucket beyond the new burst, from penalties or bookings ahead, is forgiven, also if the limit is raised
   * again; waiters keep their times.
   *
   * @throws {PolicyError} `ALGORITHM_CHANGE` and `RANGE_UNSUPPORTED`; nothing has changed then.
   * @throws {StoreError} `CONTENTION` when keys could not be carried over.
   */
  update(policy: Policy): void
  /**
   * Begins work whose cost is known only afterwards, such as an answer of a language model. What it will probably cost is held, which spends nothing;
   * {@link Hold.add} spends as the work goes, {@link Hold.close} what is missing, and frees the rest. Passes if the policy has room beside what
   * is spent and held. All threads that share this limiter see what is held; the work goes on in this one.
   *
   * @throws {PolicyError} `POLICY_INVALID` under `concurrency`, and for options what they say.
   * @example
   * const work = limiter.open('ada', { most: 4_096 })
   * if (!work.allowed) return busy(work.retryAfterMs)
   * for await (const piece of answer) if (!work.add(piece.tokens)) break
   * work.close()
   */
  open(key: Key | KeysByName, options?: OpenOptions & { readonly over?: 'cut' | 'finish' }): Hold
  open(key: Key | KeysByName, options: OpenOptions): Hold<Awaitable<boolean>>
  /** For a worker thread: `attachLimiter(handle)` there shares this exact budget. */
  handle(): LimiterHandle<Answer>
  stats(): LimiterStats
  /**
   * The whole state as bytes for {@link restoreLimiter}, so that a restart grants no new bursts. Other threads may continue: each key is copied
   * in its state at one moment; under `allOf`, separately for each policy.
   */
  snapshot(): Uint8Array
  /** Releases the memory of this thread; other threads keep theirs. Later calls throw `CLOSED`. */
  close(): void
  [Symbol.dispose](): void
}

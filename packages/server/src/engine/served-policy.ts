import { type Decision, type HotKeys, type Key, type Policy, StoreError } from 'sluicegate'
import type { FleetStats } from 'sluicegate/redis'
import type { PolicyConfig } from '../config/policy-config.js'
import { type Awaitable, whenDone } from './awaitable.js'
import type { Latency } from './latency.js'
import { type Outcome, outcomeOf } from './outcome.js'
import type { LimiterFigures, StoredLimiter, StoredReservation } from './stored-limiter.js'

/** What a policy has answered since the service started. */
export type Counts = Record<Outcome | 'peeks', number>

/** Tokens taken ahead of their use; see {@link ServedPolicy.reserve}. */
export interface ServedReservation {
  /** As a take would answer. Denied: nothing is held, and the two methods change nothing. */
  readonly decision: Decision
  /** Corrects the cost: the rest comes back, or the key goes into debt. Works once. */
  settle(actualCost: number): Awaitable<Decision>
  /** Gives the tokens back. Works once. */
  cancel(): Awaitable<Decision>
  /** Its time is over: it stays charged. */
  lapse?(): void
}

/**
 * A named policy with its keys: the one place where decisions are made and counted, for all protocols. Every verb answers with a value
 * when the keys are in memory, and with a value or a promise when a store has them.
 *
 * Every verb throws, or rejects with:
 * - `PolicyError` `KEY_INVALID`, `COST_INVALID` and others: the caller's mistake, counted nowhere.
 * - `StoreError`: no decision could be made, an outage, counted as such.
 */
export class ServedPolicy {
  readonly name: string
  readonly counts: Counts = { allowed: 0, denied: 0, impossible: 0, peeks: 0 }
  /** Of an all-of: denials by the name of the binding part. Empty for a single policy. */
  readonly denialsByPart = new Map<string, number>()
  /** Answers to takes by what decided: memory, a lease, the store, or this process in an outage. */
  readonly sources: Record<Decision['source'], number> = { memory: 0, lease: 0, store: 0, outage: 0 }
  /** Outages by the code of their error. */
  readonly errors = new Map<string, number>()
  #limiter: StoredLimiter
  readonly #latency: Latency
  #config: PolicyConfig

  constructor(config: PolicyConfig, limiter: StoredLimiter, latency: Latency) {
    this.name = config.policy.name
    this.#config = config
    this.#limiter = limiter
    this.#latency = latency
    this.#nameParts()
  }

  /** The policy in force. A frozen object, another one after {@link ServedPolicy.update}: protocols may cache by it, in a `WeakMap`. */
  get policy(): Policy {
    return this.#config.policy
  }

  /** The policy in force, and the options of its table. */
  get config(): PolicyConfig {
    return this.#config
  }

  /** Whether a store has the keys, so that other processes share them and verbs may answer with promises. */
  get isShared(): boolean {
    return this.#limiter.isShared
  }

  /** Under concurrency the time after which a permit ends without a heartbeat; `Infinity` where takes answer with no permits. */
  get permitMs(): number {
    return permitMs(this.policy)
  }

  /** Takes `cost` tokens of `key` if they are there; of an all-of `key` may be one key for each part. Under concurrency the answer is a permit. */
  take(key: Key, cost: number): Awaitable<Decision> {
    const startMs = performance.now()
    let answer: Awaitable<Decision>
    // Written out: the hot path makes no functions.
    try {
      answer = this.#limiter.take(key, cost)
    } catch (error) {
      throw this.#counted(error)
    }
    if (answer instanceof Promise) {
      return this.#counting(
        () => answer,
        (decision) => this.#taken(decision, startMs),
      )
    }
    return this.#taken(answer, startMs)
  }

  /** What {@link ServedPolicy.take} would answer now; changes nothing. */
  peek(key: Key, cost: number): Awaitable<Decision> {
    return this.#counting(
      () => this.#limiter.peek(key, cost),
      (decision) => {
        this.counts.peeks++
        return decision
      },
    )
  }

  /** Takes `cost` tokens, of which the holder says later how many it used. Denied when they are not there now: nothing is booked ahead. */
  reserve(key: Key, cost: number): Awaitable<ServedReservation> {
    return this.#counting(
      () => this.reserveUncounted(key, cost),
      (reservation) => {
        this.count(reservation.decision)
        return reservation
      },
    )
  }

  /** Gives back `tokens`, at most to full. Answers as `peek(key, 1)` then does, like the next three. */
  refund(key: Key, tokens: number): Awaitable<Decision> {
    return this.#counting(() => this.#limiter.refund(key, tokens), unchanged)
  }

  /** Takes `tokens` whether they are there or not, down to a debt of ten bursts. */
  penalize(key: Key, tokens: number): Awaitable<Decision> {
    return this.#counting(() => this.#limiter.penalize(key, tokens), unchanged)
  }

  /** Denies everything to the key for `forMs`; the longest block wins, 0 lifts it. */
  block(key: Key, forMs: number): Awaitable<Decision> {
    return this.#counting(() => this.#limiter.block(key, forMs), unchanged)
  }

  /** Refills the key and lifts its block. */
  reset(key: Key): Awaitable<Decision> {
    return this.#counting(() => this.#limiter.reset(key), unchanged)
  }

  /** {@link ServedPolicy.take} without counting: for takes of several policies, whose outcome is known only together. */
  takeUncounted(key: Key, cost: number): Awaitable<Decision> {
    return this.#counting(() => this.#limiter.take(key, cost), unchanged)
  }

  /** {@link ServedPolicy.peek} without counting. */
  peekUncounted(key: Key, cost: number): Awaitable<Decision> {
    return this.#counting(() => this.#limiter.peek(key, cost), unchanged)
  }

  /** {@link ServedPolicy.reserve} without counting. */
  reserveUncounted(key: Key, cost: number): Awaitable<ServedReservation> {
    return this.#counting(
      () => whenDone(this.#limiter.peek(key, cost), (seen) => (seen.allowed ? this.#limiter.reserve(key, cost) : seen)),
      (made) => ('waitMs' in made ? dueNow(made) : { decision: made, settle: () => made, cancel: () => made }),
    ) as Awaitable<ServedReservation>
  }

  /** Counts the outcome of a take. */
  count(decision: Decision): void {
    const outcome = outcomeOf(decision)
    this.counts[outcome]++
    this.sources[decision.source]++
    if (outcome !== 'denied') return
    const denials = this.denialsByPart.get(decision.policy)
    if (denials !== undefined) this.denialsByPart.set(decision.policy, denials + 1)
  }

  /**
   * Changes the numbers of the policy. What keys have spent stays spent; see `update` of the library's limiter.
   *
   * @throws {PolicyError} `ALGORITHM_CHANGE` or `RANGE_UNSUPPORTED`: nothing has changed then.
   */
  update(policy: Policy): void {
    this.#limiter.update(policy)
    this.#config = { ...this.#config, policy }
    this.#nameParts()
  }

  /** Puts another limiter in the place of this one: keys start full. Counts go on. Returns the limiter before, which the caller closes. */
  replace(config: PolicyConfig, limiter: StoredLimiter): StoredLimiter {
    const before = this.#limiter
    this.#limiter = limiter
    this.#config = config
    this.#nameParts()
    return before
  }

  /** The parts of an all-of have a table each; `keys` is their mean. */
  stats(): LimiterFigures {
    const stats = this.#limiter.stats()
    return { ...stats, keys: Math.ceil(stats.keys / Math.max(1, this.denialsByPart.size)) }
  }

  /** Figures of the calls to the store since the start; undefined in memory. */
  storeStats(): FleetStats | undefined {
    return this.#limiter.storeStats()
  }

  /** The `n` keys with the highest demand, and the `n` with the most denials. */
  hotKeys(n: number): HotKeys {
    return this.#limiter.hotKeys(n)
  }

  /** All keys as bytes; undefined where a store keeps them. */
  snapshot(): Uint8Array | undefined {
    return this.#limiter.snapshot()
  }

  close(): void {
    this.#limiter.close()
  }

  #taken(decision: Decision, startMs: number): Decision {
    this.#latency.observe((performance.now() - startMs) / 1000)
    this.count(decision)
    return decision
  }

  #nameParts(): void {
    for (const { name } of this.policy.policies ?? []) if (!this.denialsByPart.has(name)) this.denialsByPart.set(name, 0)
  }

  /** Calls a verb, and counts an outage however it comes. */
  #counting<Value, Result>(verb: () => Awaitable<Value>, then: (value: Value) => Result): Awaitable<Awaited<Result> | Result> {
    try {
      const answer = whenDone(verb(), then)
      if (answer instanceof Promise) {
        return answer.catch((error: unknown) => {
          throw this.#counted(error)
        })
      }
      return answer
    } catch (error) {
      throw this.#counted(error)
    }
  }

  #counted(error: unknown): unknown {
    if (error instanceof StoreError) this.errors.set(error.code, (this.errors.get(error.code) ?? 0) + 1)
    return error
  }
}

function permitMs({ algorithm, windowMs, policies = [] }: Policy): number {
  return algorithm === 'concurrency' ? windowMs : Math.min(Number.POSITIVE_INFINITY, ...policies.map(permitMs))
}

function unchanged<Value>(value: Value): Value {
  return value
}

/** What a take would have answered: a reservation has the state after it, which denies the next one when nothing is left. */
function passed({ parts, ...decision }: Decision): Decision {
  return { ...decision, allowed: true, retryAfterMs: 0, ...(parts && { parts: parts.map(passed) }) }
}

/** Tokens that may be used at once; those of a later time go back, since another caller took the ones that were seen. */
function dueNow(reservation: StoredReservation): Awaitable<ServedReservation> {
  const { allowed, waitMs, decision } = reservation
  if (allowed && waitMs === 0)
    return {
      decision: passed(decision),
      settle: (cost) => reservation.settle(cost),
      cancel: () => reservation.cancel(),
      lapse: () => reservation.lapse?.(),
    }
  const refused = (state: Decision): ServedReservation => {
    const denied = { ...state, allowed: false, retryAfterMs: waitMs }
    return { decision: denied, settle: () => denied, cancel: () => denied }
  }
  return allowed ? whenDone(reservation.cancel(), refused) : refused(decision)
}

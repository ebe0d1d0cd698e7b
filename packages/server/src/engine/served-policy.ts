import { type Decision, type HotKeys, type Key, type Policy, type SharedStats, StoreError } from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { type Awaitable, whenDone } from './awaitable.js'
import { CarryingLimiter, type FormerSnapshot } from './carrying-limiter.js'
import type { EngineLimiter, EngineReservation, LimiterFigures, ServerCalls } from './engine-limiter.js'
import type { DecisionObserver, Latency } from './outcome.js'
import { type Outcome, outcomeOf, passed } from './outcome.js'
import { type AskedPriority, floorOf } from './priorities.js'
import type { Follower, KeyChange, RegionFigures } from './shared-limiter.js'
import type { SoftLimits, SoftWatch } from './soft-limits.js'
import { takeAbove } from './take-above.js'
import { type PreparedTiers, TieredLimiter, type TierSnapshot } from './tiered-limiter.js'

/** What a policy has answered since the service started. */
export type Counts = Record<Outcome | 'peeks', number>

/** Work whose cost is known only afterwards: tokens, and how often it ended so since the service started. */
export type HoldCounts = Record<
  /** Work that is open now, and what is held for it. */
  | 'open'
  | 'held'
  | 'spent'
  /** Of what was spent, the debt. */
  | 'over'
  | 'lapsed'
  /** Pieces that were refused. */
  | 'cut',
  number
>

export function noHolds(): HoldCounts {
  return { open: 0, held: 0, spent: 0, over: 0, lapsed: 0, cut: 0 }
}

/** Puts tiers around the limiter of a policy's own limit. */
export type MakeTiered = (own: EngineLimiter, config: PolicyConfig) => TieredLimiter

/** The verbs of requests whose outcome someone else counts. */
type Uncounted = Pick<ServedPolicy, 'take' | 'peek' | 'reserve' | 'refund'>

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

/** What looks at decisions. */
interface ServedPolicyOptions {
  readonly observer?: DecisionObserver | undefined
  readonly follower?: Follower | undefined
  readonly softLimits?: SoftLimits | undefined
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
  readonly holds: HoldCounts = noHolds()
  /** Of an all-of: denials by the name of the binding part. Empty for a single policy. */
  readonly denialsByPart = new Map<string, number>()
  /** Answers to takes by what decided: memory, a lease, the store, or this process in an outage. */
  readonly sources: Record<Decision['source'], number> = { memory: 0, lease: 0, store: 0, outage: 0 }
  /** Outages by the code of their error. */
  readonly errors = new Map<string, number>()
  /** Soft limits that this process announced. */
  readonly softReached = new Map<string, { readonly part: string; readonly threshold: string; count: number }>()
  #limiter: EngineLimiter
  readonly #latency: Latency
  readonly #observer: DecisionObserver | undefined
  #config: PolicyConfig
  readonly #softLimits: SoftLimits | undefined
  #soft: SoftWatch | undefined
  /** Sees what was decided. */
  readonly follower: Follower | undefined

  readonly #makeTiered: MakeTiered

  /** @param makeTiered puts tiers around a limiter, for a policy that gets them later. */
  constructor(
    config: PolicyConfig,
    limiter: EngineLimiter,
    latency: Latency,
    makeTiered: MakeTiered,
    { observer, follower, softLimits }: ServedPolicyOptions = {},
  ) {
    this.#observer = observer
    this.follower = follower
    this.name = config.policy.name
    this.#makeTiered = makeTiered
    this.#softLimits = softLimits
    this.#config = config
    this.#limiter = limiter
    this.#latency = latency
    this.#use(config)
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
  take(key: Key, cost: number, priority?: AskedPriority): Awaitable<Decision> {
    const startMs = performance.now()
    if (this.#config.priorities !== undefined) {
      return this.#counting(
        () => takeAbove(this.#limiter, key, cost, this.floorOf(key, priority)),
        (decision) => this.#taken(decision, startMs, key, cost),
      )
    }
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
        (decision) => this.#taken(decision, startMs, key, cost),
      )
    }
    return this.#taken(answer, startMs, key, cost)
  }

  /** What {@link ServedPolicy.take} would answer now; changes nothing. */
  peek(key: Key, cost: number, priority?: AskedPriority): Awaitable<Decision> {
    return whenDone(this.uncounted.peek(key, cost, priority), (decision) => {
      this.counts.peeks++
      this.#observer?.decided({ policy: this.name, outcome: outcomeOf(decision), source: decision.source })
      return this.looked(key, decision)
    })
  }

  /** Takes `cost` tokens, of which the holder says later how many it used. Denied when they are not there now: nothing is booked ahead. */
  reserve(key: Key, cost: number, priority?: AskedPriority): Awaitable<ServedReservation> {
    return whenDone(this.uncounted.reserve(key, cost, priority), (reservation) => {
      this.count(reservation.decision)
      return reservation
    })
  }

  /** The same verbs, but an outage alone is counted: of takes of several policies the outcome is known only together. */
  readonly uncounted: Uncounted = {
    take: (key, cost, priority) => this.#counting(() => takeAbove(this.#limiter, key, cost, this.floorOf(key, priority)), unchanged),
    peek: (key, cost, priority) => this.#counting(() => this.#limiter.peek(key, cost + this.floorOf(key, priority)), unchanged),
    reserve: (key, cost, priority) => {
      const floor = this.floorOf(key, priority)
      return this.#counting(
        () => whenDone(this.#limiter.peek(key, cost + floor), (seen) => (seen.allowed ? this.#reserved(key, cost) : seen)),
        (made) => ('waitMs' in made ? dueNow(made, floor) : { decision: made, settle: () => made, cancel: () => made }),
      ) as Awaitable<ServedReservation>
    },
    refund: (key, tokens) => this.#counting(() => this.#limiter.refund(key, tokens), unchanged),
  }

  /** Gives back `tokens`, at most to full. Answers as `peek(key, 1)` then does, like the next three. */
  refund(key: Key, tokens: number): Awaitable<Decision> {
    return this.#changing('refund', key, tokens, () => this.#limiter.refund(key, tokens))
  }

  /** Takes `tokens` whether they are there or not, down to ten bursts below empty. */
  penalize(key: Key, tokens: number): Awaitable<Decision> {
    return this.#changing('penalize', key, tokens, () => this.#limiter.penalize(key, tokens))
  }

  /** Denies everything to the key for `forMs`; the longest block wins, 0 lifts it. */
  block(key: Key, forMs: number): Awaitable<Decision> {
    return this.#changing('block', key, forMs, () => this.#limiter.block(key, forMs))
  }

  /** Refills the key and lifts its block. */
  reset(key: Key): Awaitable<Decision> {
    return this.#changing('reset', key, 0, () => this.#limiter.reset(key))
  }

  /** Makes a call to the store, and counts an outage. */
  reaching<Value>(call: () => Promise<Value>): Promise<Value> {
    return this.#counting(call, unchanged) as Promise<Value>
  }

  /** The limiter that has the key now. */
  limiterOf(key: Key): EngineLimiter {
    return this.#limiter.limiterOf?.(key) ?? this.#limiter
  }

  /** Settled by way of the tiers that the policy may have by then. */
  #reserved(key: Key, cost: number): Awaitable<EngineReservation> {
    const limiter = this.#limiter
    if (limiter instanceof TieredLimiter || limiter.isShared) return limiter.reserve(key, cost)
    return whenDone(limiter.reserve(key, cost), (made): EngineReservation => {
      const tiers = (): TieredLimiter | undefined =>
        this.#limiter instanceof TieredLimiter && this.#limiter.isOver(limiter) ? this.#limiter : undefined
      return {
        allowed: made.allowed,
        waitMs: made.waitMs,
        decision: made.decision,
        settle: (actualCost) => (tiers()?.adopted(made, key, cost) ?? made).settle(actualCost),
        cancel: () => (tiers()?.adopted(made, key, cost) ?? made).cancel(),
        lapse: () => made.lapse?.(),
      }
    }) as Awaitable<EngineReservation>
  }

  /** Counts the outcome of a take. */
  count(decision: Decision): void {
    const outcome = outcomeOf(decision)
    this.counts[outcome]++
    this.sources[decision.source]++
    this.#observer?.decided({ policy: this.name, outcome, source: decision.source })
    if (outcome !== 'denied') return
    const denials = this.denialsByPart.get(decision.policy)
    if (denials !== undefined) this.denialsByPart.set(decision.policy, denials + 1)
  }

  /**
   * Changes the numbers of the policy. What keys have spent stays spent; see `update` of the library's limiter.
   *
   * @throws {PolicyError} `ALGORITHM_CHANGE` or `RANGE_UNSUPPORTED`: nothing has changed then.
   */
  update({ policy, priorities, maxSettle, soft }: Pick<PolicyConfig, 'policy' | 'priorities' | 'maxSettle' | 'soft'>): void {
    this.#limiter.update(policy)
    this.#use({ ...this.#config, policy, priorities, maxSettle, soft })
  }

  /** The policy of a key: that of its tier, where there are tiers. */
  policyOf(key: Key): Policy {
    return (this.#limiter instanceof TieredLimiter ? this.#limiter.policyOf(key) : undefined) ?? this.policy
  }

  /**
   * Makes what other tiers of the policy need, in steps. The returned function puts them in force, and does not fail. Keys keep what they have spent.
   *
   * @throws {PolicyError} when there is no room for a table. Nothing has changed then.
   */
  *preparingTiers(config: PolicyConfig): Generator<void, PreparedTiers> {
    const limiter = this.#limiter instanceof TieredLimiter ? this.#limiter : this.#makeTiered(this.#limiter, config)
    const prepared = yield* limiter.preparing(config)
    const commit = (): void => {
      prepared()
      this.#limiter = limiter
      this.#use(config)
    }
    return Object.assign(commit, { discard: () => prepared.discard() })
  }

  /**
   * Puts another limiter in the place of this one. In memory keys bring along what they have spent; with tiers they start full. Counts go on. Returns the
   * limiter before, where the caller has to close it.
   */
  replace(config: PolicyConfig, limiter: EngineLimiter, nowMs: () => number): EngineLimiter | undefined {
    const before = this.#limiter
    const carries = CarryingLimiter.canCarry(before, limiter)
    this.#limiter = carries ? new CarryingLimiter(limiter, before, nowMs) : limiter
    this.#use(config)
    return carries ? undefined : before
  }

  /** The parts of an all-of have a table each; `keys` is their mean. */
  stats(): LimiterFigures {
    const stats = this.#limiter.stats()
    const parts = this.denialsByPart.size
    return parts > 1 ? { ...stats, keys: Math.ceil(stats.keys / parts) } : stats
  }

  /** Figures of the calls to the store since the start; undefined in memory. */
  storeStats(): SharedStats | undefined {
    return this.#limiter.storeStats()
  }

  /** How the home of the budget does, and what it leased to this region; undefined where the store itself holds the budget. */
  region(): RegionFigures | undefined {
    return this.#limiter.storeStats()?.region
  }

  /** Calls to each server of the store; empty in memory. */
  servers(): readonly ServerCalls[] {
    return this.#limiter.servers?.() ?? []
  }

  /** The `n` keys with the highest demand, and the `n` with the most denials. */
  hotKeys(n: number): HotKeys {
    return this.#limiter.hotKeys(n)
  }

  /** What other threads may attach to; undefined where tiers decide which limiter has a key. */
  get sharedLimiter(): EngineLimiter | undefined {
    return this.#limiter instanceof TieredLimiter ? undefined : this.#limiter
  }

  /** All keys as bytes; undefined where a store keeps them. */
  snapshot(): Uint8Array | undefined {
    return this.#limiter.snapshot()
  }

  /** Before a snapshot, in steps: keys of tiers are then where the next process looks for them. */
  *carrying(): Generator<void> {
    if (this.#limiter instanceof TieredLimiter) yield* this.#limiter.carrying()
  }

  *formerSnapshots(): Generator<FormerSnapshot> {
    if (this.#limiter instanceof CarryingLimiter) yield* this.#limiter.formerSnapshots()
  }

  /** Keys under the limits of tiers as bytes, with the id of the limit. */
  *tierSnapshots(): Generator<TierSnapshot> {
    if (this.#limiter instanceof TieredLimiter) yield* this.#limiter.tierSnapshots()
  }

  close(): void {
    this.#limiter.close()
  }

  /** Tokens that a request of this class must leave. */
  floorOf(key: Key, priority: AskedPriority | undefined): number {
    const { priorities } = this.#config
    return priority?.floor ?? (priorities === undefined ? 0 : floorOf(priorities, priority, this.policyOf(key).burst))
  }

  #taken(decision: Decision, startMs: number, key: Key, cost: number): Decision {
    this.#latency.observe((performance.now() - startMs) / 1000)
    this.count(decision)
    if (this.follower !== undefined) this.follower.taken(this, key, cost, decision)
    return this.spent(key, decision)
  }

  #changing(change: KeyChange, key: Key, amount: number, verb: () => Awaitable<Decision>): Awaitable<Decision> {
    return this.#counting(verb, (state) => {
      this.follower?.changed(this, change, key, amount)
      return this.spent(key, state)
    })
  }

  /** The same answer, with the soft limits that the key has reached, which are announced once. */
  spent<Made extends Decision>(key: Key, decision: Made): Made {
    return this.#soft === undefined ? decision : this.#soft.seen(this.policyOf(key), key, decision, true)
  }

  /** The same of an answer that changed nothing, which announces nothing. */
  looked(key: Key, decision: Decision): Decision {
    return this.#soft === undefined ? decision : this.#soft.seen(this.policyOf(key), key, decision, false)
  }

  #use(config: PolicyConfig): void {
    this.#config = config
    this.#soft = this.#softLimits?.watch(config, ({ part = '', threshold }) => {
      const id = `${part}\n${threshold}`
      const reached = this.softReached.get(id) ?? { part, threshold, count: 0 }
      reached.count++
      this.softReached.set(id, reached)
    })
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

/** Tokens that may be used at once; those of a later time go back, since another caller took the ones that were seen. */
function dueNow(reservation: EngineReservation, floor: number): Awaitable<ServedReservation> {
  const { allowed, waitMs, decision } = reservation
  const isAbove = decision.remaining >= floor || decision.source === 'outage'
  if (allowed && waitMs === 0 && isAbove)
    return {
      decision: passed(decision),
      settle: (cost) => reservation.settle(cost),
      cancel: () => reservation.cancel(),
      lapse: () => reservation.lapse?.(),
    }
  const refused = (state: Decision): ServedReservation => {
    const denied = { ...state, allowed: false, retryAfterMs: Math.max(1, waitMs) }
    return { decision: denied, settle: () => denied, cancel: () => denied }
  }
  return allowed ? whenDone(reservation.cancel(), refused) : refused(decision)
}

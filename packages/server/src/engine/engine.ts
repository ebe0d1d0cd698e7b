import { isDeepStrictEqual } from 'node:util'
import { type Clock, type Decision, type Policy, PolicyError, preciseClock } from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Awaitable } from './awaitable.js'
import { CallRates } from './call-rates.js'
import { canBecome } from './can-become.js'
import { CarryingLimiter, MAX_FORMER } from './carrying-limiter.js'
import { type Cost, Costs } from './costs.js'
import { type CallRateRoom, type EngineLimiter, type LimiterMaking, MEMORY, type Storage } from './engine-limiter.js'
import type { HoldVerbs } from './hold-verbs.js'
import { Holds } from './holds.js'
import type { DecisionObserver } from './outcome.js'
import { Latency } from './outcome.js'
import { Permits } from './permits.js'
import { ended, MAX_POLICIES, type PreparedChanges, preparingChanges } from './policy-changes.js'
import { Reservations } from './reservations.js'
import { ServedPolicy } from './served-policy.js'
import type { Follower, Peers } from './shared-limiter.js'
import { CALL_RATES, type SavedPolicy } from './snapshot-file.js'
import { type SoftLimitReached, SoftLimits } from './soft-limits.js'
import { type TakeAllOptions, type TakePart, takeAll } from './take-all.js'
import { type MakeTier, TieredLimiter, type TierTable } from './tiered-limiter.js'

export { type Decision, type Key, type Policy, PolicyError, StoreError } from 'sluicegate'
export { type Awaitable, answersOf, whenDone } from './awaitable.js'
export { CallRates } from './call-rates.js'
export type { Cost, Usage } from './costs.js'
export { TooManyHeldError } from './held-by-id.js'
export * from './hold-verbs.js'
export * from './holds.js'
export type { DecisionObserver } from './outcome.js'
export type { AskedPriority } from './priorities.js'
export { MAX_RESERVATION_MS } from './reservations.js'
export { type Counts, type HoldCounts, ServedPolicy } from './served-policy.js'
export type { SoftLimitReached } from './soft-limits.js'
export { MAX_HOLD_ID_LENGTH, MAX_HOLD_WAIT_MS } from './store-holds.js'
export type { TakeAllOptions, TakePart } from './take-all.js'

/** Options of {@link Engine} beside the policies. */
export interface EngineOptions {
  /** For tests; the library's precise clock otherwise. */
  readonly clock?: Clock
  /** How many keys the top list of each policy holds; default 0, none. */
  readonly hotKeys?: number
  /** Where the keys are; default in the memory of this process. */
  readonly storage?: Storage
  /** Keys of an earlier process, by the names of their policies. */
  readonly saved?: readonly SavedPolicy[]
  /** Called for a policy whose saved keys cannot be used, and which starts with full keys. */
  readonly onUnusable?: (name: string, reason: string) => void
  /** Room for the keys whose rate comes with each call. */
  readonly callRates?: CallRateRoom
  /** Other processes of the same service. */
  readonly peers?: Peers | undefined
  /** Open work of another process, which has the keys; undefined: of this one. */
  readonly holds?: HoldVerbs | undefined
  /** Receives each decision, within the call that it is made for. */
  readonly observer?: DecisionObserver | undefined
  /** Sees the decisions of all policies. */
  readonly follower?: Follower
  /** Called once a window for each soft limit that a key reaches; left out: soft limits are not looked at. */
  readonly onSoft?: ((reached: SoftLimitReached) => void) | undefined
}

/** Of the keys of a policy, of its tier with that id, or of its table before. No name has a line feed in it. */
function savedId(policy: string, tier: string | undefined, former?: number): string {
  return former !== undefined ? `${policy}\n\n${former}` : tier === undefined ? policy : `${policy}\n${tier}`
}

/** Whether saved keys go on in the table that they were saved of. */
function staysIn({ policy, maxKeys, onFull }: PolicyConfig, of: Policy, saved: SavedPolicy): boolean {
  return (saved.room ?? saved.maxKeys) === maxKeys && saved.onFull === onFull && isDeepStrictEqual(of, policy)
}

/** The owner of the policies that the engine was made with. */
const FILE = 'file'

/** All policies by name. Protocols translate to and from it and decide nothing themselves. */
export class Engine {
  /** Of all takes together. */
  readonly latency = new Latency()
  readonly storage: Storage
  /** Decisions without a policy: the rate comes with each call. */
  readonly callRates: CallRates
  readonly reservations: Reservations
  readonly permits: Permits
  readonly holds: HoldVerbs
  readonly softLimits: SoftLimits | undefined
  /** By the prices of the configuration. */
  readonly costs = new Costs()
  readonly #ownHolds: Holds
  readonly #making: LimiterMaking
  readonly observer: DecisionObserver | undefined
  readonly #nowMs: () => number
  /** Keys of an earlier process that no policy or tier has taken over: see {@link savedId}. */
  readonly #saved = new Map<string, SavedPolicy>()
  readonly #onUnusable: EngineOptions['onUnusable']
  readonly #follower: Follower | undefined
  readonly #policies = new Map<string, ServedPolicy>()
  #isClosed = false
  /** Names of policies by who prepared them; those that were added singly have no owner. */
  readonly #owned = new Map<string, Set<string>>()

  /** @throws {PolicyError} when there is no room for a policy or its options are invalid. */
  constructor(policies: readonly PolicyConfig[], options: EngineOptions = {}) {
    const { clock, hotKeys = 0, storage = MEMORY, callRates, saved = [], observer, peers } = options
    this.observer = observer
    this.storage = storage
    this.#follower = options.follower
    this.#making = { clock, hotKeys }
    this.softLimits = options.onSoft && new SoftLimits(storage, this.#making, options.onSoft)
    this.callRates = new CallRates(storage, this, this.#making, callRates)
    const ticking = clock ?? preciseClock()
    const nowMs = (): number => ticking.nowMs()
    this.reservations = new Reservations(nowMs, this.latency, peers)
    this.permits = new Permits(nowMs, peers)
    this.#ownHolds = new Holds(nowMs, this.costs, (name) => this.policy(name))
    this.holds = options.holds ?? this.#ownHolds
    this.#nowMs = nowMs
    this.#onUnusable = options.onUnusable
    for (const each of saved) {
      if (each.name === CALL_RATES) this.#restoreCallRates(each)
      else this.#saved.set(savedId(each.name, each.tier, each.former), each)
    }
    try {
      for (const config of policies) {
        this.#serve(config)
        this.#namesOf(FILE).add(config.policy.name)
      }
      // Not with the whole file that they are a part of.
      for (const [id, left] of this.#saved) this.#saved.set(id, { ...left, bytes: left.bytes.slice() })
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Keys of an earlier process whose policy or tier is not there now. One that comes back takes them over. */
  get leftOut(): Iterable<SavedPolicy> {
    return this.#saved.values()
  }

  /** Drops the keys of {@link Engine.leftOut}. */
  forget(policy: string, tier?: string): void {
    this.#saved.delete(savedId(policy, tier))
    if (tier === undefined) for (let i = 1; i <= MAX_FORMER; i++) this.#saved.delete(savedId(policy, tier, i))
  }

  /** The policy of that name. Looked up in a map, so that only configured names are found. */
  policy(name: string): ServedPolicy | undefined {
    return this.#policies.get(name)
  }

  /** Tokens. @throws {PolicyError} `COST_INVALID` for a usage that has no price. */
  costOf(cost: Cost): number {
    return this.costs.of(cost)
  }

  /** Tokens that work holds for a cost: of a model that is free the fewest that can be held. */
  heldFor(cost: Cost): number {
    return typeof cost === 'number' ? cost : Math.max(1, this.costs.of(cost))
  }

  /** How many policies there are. */
  get size(): number {
    return this.#policies.size
  }

  /** In the order of the configuration. */
  get policies(): IterableIterator<ServedPolicy> {
    return this.#policies.values()
  }

  /**
   * Adds a policy while the service runs. Its name must be free.
   *
   * @throws {PolicyError} `NAME_INVALID` for a name that is taken, `RANGE_UNSUPPORTED` above {@link MAX_POLICIES}, and what `createLimiter` throws.
   */
  add(config: PolicyConfig): ServedPolicy {
    return this.#serve(config)
  }

  #serve(config: PolicyConfig): ServedPolicy {
    const { name } = config.policy
    if (this.#policies.has(name)) throw new PolicyError('NAME_INVALID', 'name', name, 'must be given to one policy only')
    if (this.#policies.size >= MAX_POLICIES)
      throw new PolicyError('RANGE_UNSUPPORTED', 'policies', this.#policies.size + 1, `must be at most ${MAX_POLICIES}`)
    const served = this.#served(config, this.#limiter(config))
    this.#policies.set(name, served)
    return served
  }

  #served(config: PolicyConfig, limiter: EngineLimiter): ServedPolicy {
    this.forget(config.policy.name)
    return new ServedPolicy(config, limiter, this.latency, (own, { policy }) => this.#tiered(own, policy.name), {
      observer: this.observer,
      follower: this.#follower,
      softLimits: this.softLimits,
    })
  }

  /** With the keys that were saved of it, and its tiers. */
  #limiter(config: PolicyConfig): EngineLimiter {
    const own = this.#made(config)
    if (config.tiers === undefined) return own
    const limiter = this.#tiered(own, config.policy.name)
    try {
      ended(limiter.preparing(config))()
      return limiter
    } catch (error) {
      own.close()
      throw error
    }
  }

  #tiered(own: EngineLimiter, name: string): TieredLimiter {
    const make: MakeTier = (config, id, isFirst) => this.#madeTier(config, isFirst ? this.#saved.get(savedId(name, id)) : undefined)
    return new TieredLimiter(own, make, this.#nowMs)
  }

  #made(config: PolicyConfig): EngineLimiter {
    const saved = this.#saved.get(savedId(config.policy.name, undefined))
    return (saved && this.#restored(config, saved)) ?? this.storage.limiter(config, this.#making)
  }

  /** Keys with a limit of their own may be more than there were: their table is another then. */
  #madeTier(config: PolicyConfig, saved: SavedPolicy | undefined): TierTable {
    const before = saved && this.#restored(config, saved)
    if (saved === undefined || before === undefined) return { limiter: this.storage.limiter(config, this.#making) }
    if (staysIn(config, before.policy, saved)) return { limiter: before }
    return { limiter: this.storage.limiter(config, this.#making), former: before }
  }

  /** Under another algorithm, other parts or another table keys bring along what they have spent when they are next used; with tiers they start full, but for a tier's under another table. */
  #restored(config: PolicyConfig, saved: SavedPolicy): EngineLimiter | undefined {
    const unusable = (reason: string): undefined => {
      this.forget(saved.name, saved.tier)
      if (saved.tier === undefined) this.#onUnusable?.(saved.name, reason)
    }
    try {
      const before = this.storage.restored(config, this.#making, saved)
      if (before === undefined) return unusable('its keys are at a store now')
      const stays = staysIn(config, before.policy, saved)
      if (config.tiers === undefined && saved.tier === undefined) {
        const all = this.#withFormer(before, config, 1)
        return stays ? all : new CarryingLimiter(this.storage.limiter(config, this.#making), all, this.#nowMs)
      }
      if (stays || (saved.tier !== undefined && canBecome(before.policy, config.policy))) return before
      before.close()
      return unusable('its algorithm or its table is another now')
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      return unusable(error.message)
    }
  }

  /** With the tables before it, from the one of that number on. */
  #withFormer(limiter: EngineLimiter, config: PolicyConfig, number: number): EngineLimiter {
    const saved = this.#saved.get(savedId(config.policy.name, undefined, number))
    const { untilMs = 0 } = saved ?? {}
    const former = saved && untilMs > this.#nowMs() ? this.storage.restored(config, this.#making, saved) : undefined
    return former === undefined ? limiter : new CarryingLimiter(limiter, this.#withFormer(former, config, number + 1), this.#nowMs, untilMs)
  }

  #restoreCallRates(saved: SavedPolicy): void {
    const onUnusable = this.#onUnusable
    const { maxKeys } = this.callRates.room
    try {
      if (saved.maxKeys === maxKeys) this.callRates.restore(saved.bytes)
      else onUnusable?.('CL.THROTTLE', 'its table is another now')
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      onUnusable?.('CL.THROTTLE', error.message)
    }
  }

  /** Removes a policy with its keys. Returns whether there was one. Its later verbs throw `StoreError` `CLOSED`. */
  remove(name: string): boolean {
    this.#policies.get(name)?.close()
    return this.#policies.delete(name)
  }

  /**
   * Prepares another set of policies in the place of those that `owner` prepared or was made with; other policies stay. The returned function puts it
   * in force, and does not fail: all or nothing. Where it is not called, its `discard` closes what was made.
   *
   * A policy that stays the same keeps its keys. One with other numbers keeps what was spent. One with another algorithm, other
   * parts or other options of its table is made anew, and in memory keys bring along what they have spent; with tiers they start full.
   *
   * @throws {PolicyError} as {@link Engine.add} does, also for a name that another owner has. Nothing has changed then.
   */
  prepare(configs: readonly PolicyConfig[], owner: string = FILE): PreparedChanges {
    return ended(this.preparing(configs, owner))
  }

  /** {@link Engine.prepare} in steps, each of which ends soon. */
  preparing(configs: readonly PolicyConfig[], owner: string = FILE): Generator<void, PreparedChanges> {
    return preparingChanges({
      configs,
      served: this.#policies,
      own: this.#namesOf(owner),
      limiter: (config) => this.#limiter(config),
      add: (config, limiter) => this.#served(config, limiter),
      nowMs: this.#nowMs,
      isClosed: () => this.#isClosed,
    })
  }

  #namesOf(owner: string): Set<string> {
    const names = this.#owned.get(owner) ?? new Set()
    this.#owned.set(owner, names)
    return names
  }

  /**
   * Takes from several policies, all or nothing: see {@link takeAll}. `Decision[]` in memory, possibly a promise of it over a store.
   *
   * @throws {PolicyError} `KEY_INVALID`, `COST_INVALID`; nothing is charged then.
   * @throws {StoreError} when no decision could be made; nothing is charged then.
   */
  takeAll(parts: readonly TakePart[], options?: TakeAllOptions): Awaitable<Decision[]> {
    return takeAll(parts, { ...options, latency: this.latency })
  }

  /** Frees reservations, permits and holds whose time is over, of each kind so many; to be called about once a second. False: there are more. */
  sweep(): boolean {
    return [this.reservations, this.permits, this.#ownHolds].map((held) => held.sweep()).every(Boolean)
  }

  close(): void {
    this.#isClosed = true
    this.callRates.close()
    for (const policy of this.#policies.values()) policy.close()
    this.softLimits?.close()
  }
}

import { isDeepStrictEqual } from 'node:util'
import {
  carryKey,
  type Decision,
  type HotKey,
  type HotKeys,
  type Key,
  type Limiter,
  type Policy,
  PolicyError,
  type SharedStats,
  tokensSpent,
} from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { NO_PREFIXES, type PrefixRules } from 'sluicegate-config/tiers/prefix-rules.js'
import type { Tiers } from 'sluicegate-config/tiers/tiers.js'
import { type Awaitable, whenDone } from './awaitable.js'
import { canBecome } from './can-become.js'
import type { EngineLimiter, EngineReservation, LimiterFigures } from './engine-limiter.js'
import { MovedKeys } from './moved-keys.js'
import { OldestFirst } from './oldest-first.js'
import { RoutedLimiter } from './routed-limiter.js'
import { sumOfRegion } from './shared-limiter.js'

/** New tiers that can be put in force: one of the two is called, once. */
export interface PreparedTiers {
  /** Puts them in force, and does not fail. */
  (): void
  /** Closes what was made for them. */
  discard(): void
}

/** The table of a tier. */
export interface TierTable {
  readonly limiter: EngineLimiter
  /** One of a snapshot, which had room for another number of keys. */
  readonly former?: EngineLimiter | undefined
}

/** Makes the table of a tier. `id` is that of its limit, `isFirst` whether no table of it is here that has its keys. */
export type MakeTier = (config: PolicyConfig, id: string, isFirst: boolean) => TierTable

/** Keys that are known to have moved: reservations of others, from before the oldest of these, return nothing. */
const MAX_CARRIED = 100_000
/** Earlier sets of prefixes by which a key may have state elsewhere. */
const MAX_FORMER = 8
/** The policy's own limit among the ids of limits. */
const OWN = ''
/** A table for keys that are known beforehand is at most twice as large as they need. */
const LEAST_KEYS = 16
/** Keys that go to a larger table, or to that of another limit, between two steps. */
const KEYS_OF_STEP = 16

/** A limiter that is not used any more, until no key can have state in it. */
interface Retired {
  readonly limiter: EngineLimiter
  readonly untilMs: number
}

/** A table with room for another number of keys than have the limit now. */
interface Outgrown extends Retired {
  readonly id: string
}

/** Prefixes that were in force. */
interface Former {
  readonly prefixes: PrefixRules
  /** No key has state by them any more. */
  readonly untilMs: number
}

/** The keys of a tier. */
export interface TierSnapshot {
  readonly tier: string
  readonly bytes: Uint8Array
  /** Keys that its table has room for; left out: the default. */
  readonly room?: number
}

/** What a key had spent beyond the burst of the limit to which it moved: it is forgiven there, and spent again under a larger one. */
interface Excess {
  readonly tokens: number
  readonly atMs: number
  /** Under which it was spent. */
  readonly policy: Policy
}

/**
 * Limits by key: each tier has its own limiter, and a call goes to that of the key's tier. In memory a key that changes its tier takes what it has
 * spent along, with its block, when it is next used. At a store all tiers have the same keys, and the store counts what was spent under each.
 */
export class TieredLimiter extends RoutedLimiter {
  protected readonly own: EngineLimiter
  readonly #make: MakeTier
  readonly #nowMs: () => number
  #tiers: ReadonlyMap<string, EngineLimiter> = new Map()
  #rules: Tiers | undefined
  readonly #moved = new MovedKeys()
  #former: Former[] = []
  #isClosed = false
  readonly #retired = new Map<string, Retired>()
  /** Keys that have not been used since are there. */
  #outgrown: Outgrown[] = []
  /** Keys that tables have room for; left out: the default. */
  readonly #rooms = new WeakMap<EngineLimiter, number>()
  /** How often keys took their state to another limit, and by key the number of the last time; of keys not here at most the oldest kept. */
  #carries = 0
  readonly #carriedAt = new OldestFirst<number>()
  readonly #excess = new OldestFirst<Excess>()
  #carriedBefore = 0

  /** @param own applies the policy's own limit. It is closed with this one. */
  constructor(own: EngineLimiter, make: MakeTier, nowMs: () => number) {
    super()
    this.own = own
    this.#make = make
    this.#nowMs = nowMs
  }

  /**
   * Makes what other tiers need, in steps. The returned function puts them in force, and does not fail. Where it is not called, its `discard` closes what was made.
   *
   * @throws {PolicyError} when there is no room for a table. Nothing has changed then.
   */
  *preparing(config: PolicyConfig): Generator<void, PreparedTiers> {
    const next = new Map<string, EngineLimiter>()
    const fresh: EngineLimiter[] = []
    const updates: (() => void)[] = []
    const former: (readonly [id: string, limiter: EngineLimiter])[] = []
    const made = (wanted: PolicyConfig, id: string): EngineLimiter => {
      const table = this.#make(wanted, id, true)
      fresh.push(table.limiter)
      if (table.former !== undefined) {
        fresh.push(table.former)
        former.push([id, table.former])
      }
      return this.#knowingRoom(table.limiter, wanted)
    }
    const discard = (): void => {
      for (const limiter of fresh) limiter.close()
      if (isNoted) this.#moved.changed()
    }
    const isNoted = this.#hasState()
    if (isNoted) this.#moved.changing()
    try {
      for (const [id, { policy, keys }] of config.tiers?.limits ?? []) {
        yield
        const wanted = tierConfig(config, policy, keys)
        const before = this.#tiers.get(id) ?? this.#retired.get(id)?.limiter
        if (before === undefined || !canBecome(before.policy, policy)) next.set(id, made(wanted, id))
        else {
          const limiter = this.#withRoom(id, before, wanted)
          next.set(id, limiter)
          if (!isDeepStrictEqual(limiter.policy, policy)) updates.push(() => limiter.update(policy))
        }
      }
      yield* this.#movingToLarger()
      if (isNoted) yield* this.#moved.noting(this.#rules, config.tiers)
    } catch (error) {
      discard()
      throw error
    }
    const commit = (): void => {
      for (const update of updates) update()
      if (isNoted) this.#moved.changed()
      // The first keys came since: they are few, but nobody knows which.
      else if (this.#hasState()) Array.from(this.#moved.noting(this.#rules, config.tiers))
      this.#commit(config.tiers, next)
      for (const [id, limiter] of former) this.#outgrow(id, limiter)
    }
    return Object.assign(commit, { discard })
  }

  /** The table with room for the keys that will have the limit: another takes its place at once, with the numbers in force. */
  #withRoom(id: string, limiter: EngineLimiter, wanted: PolicyConfig): EngineLimiter {
    const room = this.#rooms.get(limiter)
    if (limiter.isShared || room === undefined || (wanted.maxKeys !== undefined && wanted.maxKeys <= room)) return limiter
    const larger = this.#knowingRoom(this.#make({ ...wanted, policy: limiter.policy }, id, false).limiter, wanted)
    const retired = this.#retired.get(id)
    if (this.#tiers.has(id)) this.#tiers = new Map(this.#tiers).set(id, larger)
    else if (retired !== undefined) this.#retired.set(id, { ...retired, limiter: larger })
    this.#outgrow(id, limiter)
    return larger
  }

  #knowingRoom(limiter: EngineLimiter, { maxKeys }: PolicyConfig): EngineLimiter {
    if (maxKeys !== undefined) this.#rooms.set(limiter, maxKeys)
    return limiter
  }

  #outgrow(id: string, limiter: EngineLimiter): void {
    this.#outgrown.push({ id, limiter, untilMs: this.#nowMs() + fullAfterMs(limiter.policy) })
  }

  /** Those in which no key has state any more. */
  #closeOutgrown(nowMs: number): void {
    const over = this.#outgrown.filter(({ untilMs }) => untilMs <= nowMs)
    for (const { limiter } of over) limiter.close()
    if (over.length > 0) this.#outgrown = this.#outgrown.filter((each) => !over.includes(each))
  }

  /** Keys that are known go to the larger tables now: a snapshot has those alone. */
  *#movingToLarger(): Generator<void> {
    const rules = this.#rules
    if (rules === undefined || this.#outgrown.length === 0) return
    const ids = new Set<string | undefined>(this.#outgrown.map(({ id }) => id))
    let looked = 0
    for (const data of [rules.parts.keys, rules.parts.fileData]) {
      for (const key of data.exactKeys()) {
        if (ids.has(rules.idOf(key))) this.of(key)
        if (++looked % KEYS_OF_STEP === 0) yield
      }
    }
  }

  get isShared(): boolean {
    return this.own.isShared
  }

  policyOf(key: Key): Policy | undefined {
    return typeof key === 'string' && this.#rules !== undefined ? this.#rules.policyOf(key) : undefined
  }

  override reserve(key: Key, cost: number): Awaitable<EngineReservation> {
    const limiter = this.of(key)
    const since = this.#carries
    return whenDone(limiter.reserve(key, cost), (made) => this.#following(made, key, cost, limiter, since)) as Awaitable<EngineReservation>
  }

  /** One that the policy's own limiter made before there were tiers. */
  adopted(made: EngineReservation, key: Key, cost: number): EngineReservation {
    return this.#following(made, key, cost, this.own, 0)
  }

  /** Whether `limiter` applies the policy's own limit. */
  isOver(limiter: EngineLimiter): boolean {
    return this.own === limiter
  }

  /**
   * What is below the estimate comes back in the limiter that it charged, unless the key has taken its state to another since, and the charge with it. What is
   * above it is charged where the key is; its state there is the answer.
   */
  #following(made: EngineReservation, key: Key, cost: number, limiter: EngineLimiter, since: number): EngineReservation {
    const isHere = (): boolean => this.#carriedSince(key as string) <= since && this.#uses(limiter)
    // At a store all tiers have the same keys.
    const isCurrent = (): boolean => limiter.isShared || this.of(key) === limiter
    const back = (settle: () => Awaitable<Decision>): Awaitable<Decision> => {
      const settled = isHere() ? settle() : undefined
      return settled !== undefined && isCurrent() ? settled : this.peek(key, 1)
    }
    return {
      allowed: made.allowed,
      waitMs: made.waitMs,
      decision: made.decision,
      settle: (actualCost) =>
        actualCost <= cost || (isHere() && isCurrent()) ? back(() => made.settle(actualCost)) : this.penalize(key, actualCost - cost),
      cancel: () => back(() => made.cancel()),
      lapse: () => made.lapse?.(),
    }
  }

  stats(): LimiterFigures {
    return sumOf(this.#all().map((limiter) => limiter.stats()))
  }

  storeStats(): SharedStats | undefined {
    const stats = this.#all().flatMap((limiter) => limiter.storeStats() ?? [])
    const own = this.own.storeStats()
    if (own === undefined) return undefined
    const region = sumOfRegion(stats.map((each) => each.region).toReversed())
    const figures = stats.map(({ region: _, ...each }) => each)
    return { ...sumOf(figures), nodes: own.nodes, share: own.share, ...(region && { region }) }
  }

  hotKeys(n: number): HotKeys {
    const all = this.#all().map((limiter) => limiter.hotKeys(n))
    return {
      demand: most(
        all.flatMap(({ demand }) => demand),
        n,
      ),
      denials: most(
        all.flatMap(({ denials }) => denials),
        n,
      ),
    }
  }

  /** Keys that are noted take their state along, in steps: where a key had it before is known to this process alone. Keys by a prefix are not noted. */
  *carrying(): Generator<void> {
    let carried = 0
    let rules: Tiers | undefined
    do {
      rules = this.#rules
      for (const key of this.#moved.keys()) {
        if (this.#isClosed) return
        this.of(key)
        if (++carried % KEYS_OF_STEP === 0) yield
      }
      // Other tiers may have come meanwhile.
    } while (rules !== this.#rules)
  }

  *tierSnapshots(): Generator<TierSnapshot> {
    for (const [tier, limiter] of this.#tiers) {
      const bytes = limiter.snapshot()
      const room = this.#rooms.get(limiter)
      if (bytes !== undefined) yield { tier, bytes, ...(room !== undefined && { room }) }
    }
  }

  close(): void {
    this.#isClosed = true
    for (const limiter of this.#all()) limiter.close()
    for (const { limiter } of [...this.#retired.values(), ...this.#outgrown]) limiter.close()
    this.#retired.clear()
    this.#outgrown = []
  }

  /** Whether a key may have spent here under another limit: not at a start with a million keys in the data. */
  #hasState(): boolean {
    return !this.own.isShared && (this.#rules !== undefined || this.own.stats().keys > 0)
  }

  #commit(rules: Tiers | undefined, next: ReadonlyMap<string, EngineLimiter>): void {
    const nowMs = this.#nowMs()
    const before = this.#rules
    this.#former = this.#former.filter(({ untilMs }) => untilMs > nowMs)
    if (!this.own.isShared && (before?.prefixes.size ?? 0) + (rules?.prefixes.size ?? 0) > 0) {
      const limits = Array.from(before?.limits.values() ?? [], ({ policy }) => policy)
      const untilMs = nowMs + Math.max(...[this.own.policy, ...limits].map(fullAfterMs))
      this.#former = [{ prefixes: before?.prefixes ?? NO_PREFIXES, untilMs }, ...this.#former].slice(0, MAX_FORMER)
    }
    this.#closeOutgrown(nowMs)
    for (const [id, { limiter, untilMs }] of this.#retired) {
      if (!next.has(id) && untilMs > nowMs) continue
      this.#retired.delete(id)
      if (!next.has(id)) limiter.close()
    }
    for (const [id, limiter] of this.#tiers) {
      if (next.get(id) === limiter) continue
      if (next.has(id)) limiter.close()
      else this.#retired.set(id, { limiter, untilMs: nowMs + fullAfterMs(limiter.policy) })
    }
    this.#tiers = next
    this.#rules = rules
  }

  protected of(key: Key): EngineLimiter {
    if (typeof key !== 'string') throw new PolicyError('KEY_INVALID', 'key', key, 'must be one string under a policy with tiers')
    const id = this.#rules?.idOf(key) ?? OWN
    const limiter = this.#at(id) ?? this.own
    if (this.#moved.size > 0 || this.#former.length > 0 || this.#outgrown.length > 0) this.#carry(key, id, limiter)
    return limiter
  }

  #at(id: string): EngineLimiter | undefined {
    return id === OWN ? this.own : (this.#tiers.get(id) ?? this.#retired.get(id)?.limiter)
  }

  /** What the key has spent under another limit is spent under this one. Done twice it changes nothing, since nothing is left there. */
  #carry(key: string, id: string, to: EngineLimiter): void {
    const from = new Set<string>()
    const moved = this.#moved.take(key, id)
    if (moved !== undefined) from.add(moved)
    for (const { prefixes } of this.#former) from.add(prefixes.idOf(key) ?? OWN)
    from.delete(id)
    if (this.#outgrown.length > 0) this.#closeOutgrown(this.#nowMs())
    const outgrown = this.#outgrown.filter((each) => each.id === id || from.has(each.id))
    for (const limiter of [...Array.from(from, (each) => this.#at(each)), ...outgrown.map((each) => each.limiter)]) {
      if (limiter === undefined || limiter === to || !this.#carryOver(limiter, to, key)) continue
      this.#carriedAt.set(key, ++this.#carries)
      for (let { oldest } = this.#carriedAt; oldest !== undefined && this.#carriedAt.size > MAX_CARRIED; { oldest } = this.#carriedAt) {
        this.#carriedBefore = oldest.value
        this.#carriedAt.delete(oldest.key)
      }
    }
  }

  /** In memory, where every answer comes at once. Returns whether there was anything to carry. */
  #carryOver(from: EngineLimiter, to: EngineLimiter, key: string): boolean {
    // Permits are given back where they were taken.
    if (from.policy.algorithm === 'concurrency') return false
    const used = tokensSpent(from as unknown as Limiter, key)
    const nowMs = this.#nowMs()
    const before = this.#excess.get(key)
    const left = before === undefined ? 0 : leftOf(before, nowMs)
    // As after an update of the policy: no fresh burst, and no key is closed for longer than under the limit that it has now.
    const isCarried = carryKey([from as unknown as Limiter], to as unknown as Limiter, key)
    if (!isCarried && left <= 0) return false
    const carried = tokensSpent(to as unknown as Limiter, key)
    const more = Math.min(left, Math.max(0, to.policy.burst - carried))
    const tokens = Math.max(0, used - carried) + left - more
    this.#excess.delete(key)
    if (tokens > 0) this.#excess.set(key, { tokens, atMs: nowMs, policy: left > 0 && before !== undefined ? before.policy : from.policy })
    this.#excess.cutTo(MAX_CARRIED)
    if (more > 0) to.penalize(key, more)
    return true
  }

  /** Not of a limiter that was closed since no key could have state in it. */
  #uses(limiter: EngineLimiter): boolean {
    return this.#all().includes(limiter) || [...this.#retired.values(), ...this.#outgrown].some((each) => each.limiter === limiter)
  }

  #carriedSince(key: string): number {
    return this.#carriedAt.get(key) ?? this.#carriedBefore
  }

  #all(): EngineLimiter[] {
    return [this.own, ...this.#tiers.values()]
  }
}

function tierConfig({ maxKeys, onFull, priorities }: PolicyConfig, policy: Policy, keys: number | undefined): PolicyConfig {
  const config = { policy, maxKeys, onFull, priorities }
  if (keys === undefined) return config
  // Keys of the data alone can have this limit.
  const room = 2 ** Math.ceil(Math.log2(Math.max(LEAST_KEYS, keys)))
  return maxKeys !== undefined && maxKeys <= room ? config : { ...config, maxKeys: room }
}

/** What of it has not flowed back, or not left its window. */
function leftOf({ tokens, atMs, policy }: Excess, nowMs: number): number {
  const { algorithm, limit, windowMs } = policy
  const passed = (nowMs - atMs) / windowMs
  if (algorithm === 'token-bucket' || algorithm === 'gcra') return Math.max(0, Math.floor(tokens - passed * limit))
  return passed < (algorithm === 'sliding-window' ? 2 : 1) ? tokens : 0
}

/** The time after which a key that owes the most is full again. */
export function fullAfterMs({ windowMs, burst, limit, policies }: Policy): number {
  if (policies !== undefined) return Math.max(...policies.map(fullAfterMs))
  return Math.max(windowMs, (11 * burst * windowMs) / limit)
}

function sumOf<Stats extends object>(stats: readonly Stats[]): Stats {
  const sum: Record<string, number> = {}
  for (const each of stats) for (const [name, count] of Object.entries(each)) sum[name] = (sum[name] ?? 0) + (count as number)
  return sum as Stats
}

function most(keys: readonly HotKey[], n: number): HotKey[] {
  return [...keys].sort((a, b) => b.count - a.count).slice(0, n)
}

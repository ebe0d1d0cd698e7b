import { isDeepStrictEqual } from 'node:util'
import {
  type Clock,
  createLimiter,
  type Decision,
  type Hold,
  type HoldsById,
  type HotKeys,
  type Key,
  type Limiter,
  type LimiterHandle,
  type LimiterStats,
  type OpenOptions,
  type Policy,
  type Reservation,
  restoreLimiter,
  type SharedStats,
} from 'sluicegate'
import { type CallRate, createRateTable, restoreRateTable, type Throttled } from 'sluicegate/rate-table'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Awaitable } from './awaitable.js'
import { canBecome } from './can-become.js'
import { reserveNowOf } from './reserve-now.js'
import type { SavedPolicy } from './snapshot-file.js'
import type { StoreWatch } from './store-watch.js'

/** A reservation in memory or at a store. */
export interface EngineReservation extends Pick<Reservation<'later'>, 'allowed' | 'waitMs' | 'decision'> {
  settle(actualCost: number): Awaitable<Decision>
  cancel(): Awaitable<Decision>
  /** Its time is over: it stays charged. */
  lapse?(): void
}

/** Figures of a limiter in memory; at a store the tables are elsewhere, and all of them are 0 but `keys`, those with a lease here. */
export type LimiterFigures = LimiterStats

/** Figures of a table that is elsewhere, or that has no key yet. */
export const NO_TABLE: LimiterStats = {
  decisions: {},
  keys: 0,
  evictions: 0,
  refusals: 0,
  overflows: 0,
  casRetries: 0,
  contentions: 0,
  memoryBytes: 0,
}

/** Calls to one server of a store. */
export interface ServerCalls {
  /** Undefined where there is one only. */
  readonly server: string | undefined
  readonly calls: number
}

/** The verbs that the service needs of a limiter, wherever its keys are. */
export interface EngineLimiter {
  readonly isShared: boolean
  /** The policy in force; of several that of keys without a tier. */
  readonly policy: Policy
  take(key: Key, cost: number): Awaitable<Decision>
  /** A take that leaves `floor` tokens, or takes none, in one step; absent where a look and a take do it. */
  takeAbove?(key: Key, cost: number, floor: number): Awaitable<Decision>
  peek(key: Key, cost: number): Awaitable<Decision>
  /** Reserves what may be spent at once, or nothing. */
  reserve(key: Key, cost: number): Awaitable<EngineReservation>
  /** Opens work whose cost is known only afterwards, in memory. */
  open?(key: Key, options: OpenOptions): Hold<Awaitable<boolean>>
  /** The same at a store, which knows it by an id. */
  readonly byId?: HoldsById | undefined
  /** The limiter that has the key now, where that is not this one. */
  limiterOf?(key: Key): EngineLimiter
  refund(key: Key, tokens: number): Awaitable<Decision>
  penalize(key: Key, tokens: number): Awaitable<Decision>
  block(key: Key, forMs: number): Awaitable<Decision>
  reset(key: Key): Awaitable<Decision>
  update(policy: Policy): void
  stats(): LimiterFigures
  /** Figures of the calls to a store; undefined in memory. */
  storeStats(): SharedStats | undefined
  /** By server; absent in memory. */
  servers?(): readonly ServerCalls[]
  hotKeys(n: number): HotKeys
  /** All keys as bytes; undefined at a store, which keeps them. */
  snapshot(): Uint8Array | undefined
  /** For other threads; absent where no memory can be shared. */
  handle?(): LimiterHandle
  close(): void
}

/** Options of limiters that belong to the service, not to one policy. */
export interface LimiterMaking {
  /** For tests; the library's precise clock otherwise. */
  readonly clock: Clock | undefined
  /** How many keys the top list of each policy holds; 0 for none. */
  readonly hotKeys: number
  /** At a store each decision is made there; default as the configuration says. */
  readonly isExact?: boolean
}

/** What was saved of a policy, to begin with. */
export type Saved = Pick<SavedPolicy, 'maxKeys' | 'room' | 'onFull' | 'bytes'>

/** Room for the keys whose rate comes with each call. Undefined: the library's defaults. */
export interface CallRateRoom {
  readonly maxKeys?: number | undefined
}

/** Keys whose rate comes with each call, wherever they are. */
export interface EngineRateTable {
  throttle(key: string, rate: CallRate, quantity: number): Awaitable<Throttled>
  /** At a store all figures are 0. */
  stats(): LimiterStats
  /** All keys as bytes; undefined at a store, which keeps them. */
  snapshot(): Uint8Array | undefined
  /** Calls that a store would have decided and this process did, in an outage; 0 in memory. */
  readonly outageDecisions: number
  hotKeys(n: number): HotKeys
  close(): void
}

/** Connections to a store, and calls that wait for one. */
export interface StoreConnections {
  readonly busy: number
  readonly idle: number
  readonly waiting: number
}

/** Of the stores of a service. */
export interface StorageWatches {
  readonly store: StoreWatch
  readonly home: StoreWatch | undefined
}

/** Where the keys of policies are: in the memory of this process, or at a store that other processes share. */
export interface Storage {
  /** @throws {PolicyError} when there is no room for the policy or its options are invalid. */
  limiter(config: PolicyConfig, making: LimiterMaking): EngineLimiter
  /**
   * The same with the keys that were saved, as they were saved where they cannot go on under the policy; undefined at a store.
   *
   * @throws {PolicyError} `SNAPSHOT_INVALID`
   */
  restored(config: PolicyConfig, making: LimiterMaking, saved: Saved): EngineLimiter | undefined
  /**
   * @param saved an earlier `snapshot()`, to begin with; ignored at a store.
   * @throws {PolicyError} `SNAPSHOT_INVALID`, and when there is no room for the table.
   */
  rateTable(room: CallRateRoom, making: LimiterMaking, saved?: Uint8Array): EngineRateTable
  /** In a worker whose primary process has the keys: asks it who announces a soft limit. Elsewhere a limiter says so. */
  announce?(policy: Policy, key: string): Awaitable<Decision>
  readonly name: 'memory' | 'redis' | 'postgres'
  /** Whether the store could be written at the last look; always true in memory. */
  readonly isReachable: boolean
  /** Whether the home of the budgets can be reached; absent where the store itself holds them. */
  readonly isHomeReachable?: boolean | undefined
  /** Of PostgreSQL, also as the home: how long the last look took, of one that succeeded. */
  readonly lookMs?: number | undefined
  /** Of a pool of connections. */
  readonly connections?: StoreConnections | undefined
  /** The looks at the store, and at the home where there is one; absent in memory. */
  readonly watches?: StorageWatches
  /**
   * Resolves when the store can be written, or after a moment: the service starts without it, too.
   *
   * @throws {StoreRefusal} when a server answers and refuses, unless the configuration says to serve all the same.
   */
  connect(): Promise<void>
  close(): Promise<void>
}

/** Keys in the memory of this process. */
export const MEMORY: Storage = {
  limiter({ policy, maxKeys, onFull }, { clock, hotKeys }) {
    return inMemory(createLimiter(policy, { onFull, hotKeys, ...(maxKeys && { maxKeys }), ...(clock && { clock }) }))
  },
  restored({ policy, maxKeys, onFull }, { clock, hotKeys }, saved) {
    const limiter = restoreLimiter(saved.bytes, { hotKeys, ...(clock && { clock }) })
    const isSameTable = (saved.room ?? saved.maxKeys) === maxKeys && saved.onFull === onFull
    if (isSameTable && canBecome(limiter.policy, policy) && !isDeepStrictEqual(limiter.policy, policy)) limiter.update(policy)
    return inMemory(limiter)
  },
  rateTable({ maxKeys }, { clock, hotKeys }, saved) {
    if (saved !== undefined) {
      const restored = restoreRateTable(saved, { hotKeys, ...(clock && { clock }) })
      return Object.assign(restored, { outageDecisions: 0 })
    }
    const table = createRateTable({ hotKeys, ...(clock && { clock }), ...(maxKeys !== undefined && { maxKeys }) })
    return Object.assign(table, { outageDecisions: 0 })
  },
  name: 'memory',
  isReachable: true,
  async connect() {},
  async close() {},
}

function inMemory(limiter: Limiter): EngineLimiter {
  return Object.assign(limiter, { isShared: false, reserve: reserveNowOf(limiter), storeStats: () => undefined })
}

import { setImmediate as nextTurn } from 'node:timers/promises'
import { createLimiter, type SharedLimiter, type Store } from 'sluicegate'
import { region } from 'sluicegate/regions'
import type { PostgresPlace, RedisPlace, SharedStorageConfig } from 'sluicegate-config/config.js'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Log } from '../log.js'
import {
  type CallRateRoom,
  type EngineLimiter,
  type EngineRateTable,
  type LimiterMaking,
  MEMORY,
  type Storage,
  type StorageWatches,
  type StoreConnections,
} from './engine-limiter.js'
import { sharedOptions, storedShared } from './shared-limiter.js'
import { DEFAULT_PREFIX, reportOf, START_MS, throwRefusal } from './store-reports.js'
import type { StoreNews, StoreWatch } from './store-watch.js'

/** A store, as this process is connected to it. */
interface ConnectedStore {
  /** Of limiters. */
  readonly store: Store
  readonly isReachable: boolean
  readonly watch: StoreWatch
  /** Of PostgreSQL. */
  readonly connections?: StoreConnections
  /** Resolves when it can be written, or after `withinMs`. */
  connect(withinMs: number): Promise<void>
  /** Of Redis: an answer that follows those to all calls before it; undefined where no connection keeps the order of all. */
  ping?(): Promise<unknown> | undefined
  /** Of Redis: rates that come with each call. */
  rates?(config: SharedStorageConfig, hotKeys: number): EngineRateTable
  close(): void | Promise<void>
}

/** What one use of a store has of its own: `option` is where its place stands, for messages. */
interface StoreUse {
  readonly option: string
  readonly prefix: string | undefined
  readonly timeoutMs: number
  /** Whose store it is, beside a home elsewhere. */
  readonly region?: string | undefined
  say(news: StoreNews): void
}

/** A driver is loaded where it is used. */
async function connectedStore(
  place: RedisPlace | PostgresPlace,
  { option, prefix, timeoutMs, region, say }: StoreUse,
): Promise<ConnectedStore> {
  const named = prefix === undefined ? {} : { prefix }
  if (place.kind === 'redis') {
    const [{ RedisConnection }, { redis: redisStore }, { redisRates }] = await Promise.all([
      import('./redis-connection.js'),
      import('sluicegate/redis'),
      import('./redis-rates.js'),
    ])
    const own = prefix ?? DEFAULT_PREFIX
    const redis = new RedisConnection(place, region === undefined ? [own] : [own, `${own}@${region}`], say)
    return Object.assign(redis, { store: redisStore(redis.client, named), rates: redisRates(redis.client) })
  }
  const [{ PostgresConnection }, { postgres: postgresStore }] = await Promise.all([
    import('./postgres-connection.js'),
    import('sluicegate/postgres'),
  ])
  const postgres = new PostgresConnection(place, { option, prefix: prefix ?? DEFAULT_PREFIX, closeMs: timeoutMs }, say)
  return Object.assign(postgres, { store: postgresStore(postgres.client, { table: place.table, ...named }) })
}

/** Connects to the store, and to the home of the budgets where the configuration names one. */
export async function sharedStorage(config: SharedStorageConfig, log: Log): Promise<SharedStorage> {
  const { prefix, timeoutMs, home } = config
  const limiters = new Set<SharedLimiter>()
  const say = reportOf(log, 'the store', () => sharesOf(limiters))
  const store = await connectedStore(config, { option: `storage.${config.kind}`, prefix, timeoutMs, region: home?.region, say })
  if (home === undefined) return new SharedStorage(config, limiters, store)
  const sayHome = reportOf(log, 'the home of the budgets', () => ({ region: home.region }), ': the region decides with its share')
  const use = { option: 'storage.home.postgres', prefix: home.prefix, timeoutMs: home.timeoutMs, say: sayHome }
  return new SharedStorage(config, limiters, store, await connectedStore(home.place, use))
}

/**
 * Keys at a store, or in a region that is made of two: other processes with the same prefix and policy names share them. Tokens are leased, so
 * that most decisions stay in this process.
 */
export class SharedStorage implements Storage {
  readonly name: 'redis' | 'postgres'
  readonly #config: SharedStorageConfig
  readonly #store: ConnectedStore
  readonly #home: ConnectedStore | undefined
  /** Of limiters: this store, or the region that it is of. */
  readonly #shared: Store
  readonly #limiters: Set<SharedLimiter>

  constructor(config: SharedStorageConfig, limiters: Set<SharedLimiter>, store: ConnectedStore, home?: ConnectedStore) {
    this.name = config.kind
    this.#config = config
    this.#store = store
    this.#home = home
    this.#limiters = limiters
    this.#shared = store.store
    if (config.home === undefined || home === undefined) return
    const { region: name, share, tooSmall, cold, timeoutMs } = config.home
    const own = share === undefined ? {} : { share }
    this.#shared = region({ name, local: store.store, home: home.store, tooSmall, cold, timeout: timeoutMs, ...own })
  }

  get isReachable(): boolean {
    return this.#store.isReachable
  }

  get isHomeReachable(): boolean | undefined {
    return this.#home?.isReachable
  }

  get lookMs(): number | undefined {
    return this.#pooled?.watch.lookMs
  }

  get connections(): StoreConnections | undefined {
    return this.#pooled?.connections
  }

  /** The one of the two that is in PostgreSQL. */
  get #pooled(): ConnectedStore | undefined {
    return [this.#store, this.#home].find((each) => each?.connections !== undefined)
  }

  get watches(): StorageWatches {
    return { store: this.#store.watch, home: this.#home?.watch }
  }

  async connect(): Promise<void> {
    await Promise.all([this.#store.connect(START_MS), this.#home?.connect(START_MS)])
    if (this.#config.refusedAtStart === 'serve') return
    throwRefusal('the store', this.#store.watch)
    throwRefusal('the home of the budgets', this.#home?.watch)
  }

  limiter(config: PolicyConfig, making: LimiterMaking): EngineLimiter {
    const options = sharedOptions(this.#config, config, making)
    return storedShared(createLimiter(config.policy, { ...options, store: this.#shared }), this.#limiters)
  }

  restored(): undefined {
    return undefined
  }

  /** In memory where the store keeps none. */
  rateTable(room: CallRateRoom, making: LimiterMaking): EngineRateTable {
    return this.#store.rates?.(this.#config, making.hotKeys) ?? MEMORY.rateTable(room, making)
  }

  /** Leases go back first. */
  async close(): Promise<void> {
    for (const limiter of this.#limiters) limiter.close()
    // A look that fails meanwhile says what is left.
    this.#limiters.clear()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#config.timeoutMs)
    })
    if (this.isReachable) await Promise.race([this.#leasesReturned(late), late])
    clearTimeout(timer)
    await Promise.all([this.#store.close(), this.#home?.close()])
  }

  /** Limiters return their leases, and then those whose refill was under way: an answer of the store follows the answers before it. */
  async #leasesReturned(late: Promise<void>): Promise<void> {
    for (let round = 0; round < 2; round++) {
      await nextTurn()
      // PostgreSQL closes when its statements have ended.
      if (this.#store.ping === undefined) return
      // One connection keeps the order; the nodes of a cluster have one each.
      const answer = this.#store.ping()
      if (answer === undefined) return late
      await answer.catch(() => undefined)
    }
  }
}

/** The most nodes that share a policy, and the least share of one, while the store cannot be reached. */
function sharesOf(limiters: Iterable<SharedLimiter>): { nodes?: number; share?: number } {
  const stats = [...limiters].map((limiter) => limiter.stats())
  if (stats.length === 0) return {}
  return { nodes: Math.max(...stats.map(({ nodes }) => nodes)), share: Math.min(...stats.map(({ share }) => share)) }
}

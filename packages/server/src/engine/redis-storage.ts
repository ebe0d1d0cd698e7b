import { setImmediate as nextTurn } from 'node:timers/promises'
import { createLimiter, type SharedLimiter, type Store } from 'sluicegate'
import { createRedisRateTable, redis as redisStore } from 'sluicegate/redis'
import { region } from 'sluicegate/regions'
import type { HomeConfig, RedisStorageConfig } from 'sluicegate-config/config.js'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Log } from '../log.js'
import { RedisConnection } from './redis-connection.js'
import { sharedOptions, storedShared } from './shared-limiter.js'
import { DEFAULT_PREFIX, reportOf, START_MS, throwRefusal } from './store-reports.js'
import type { StoreWatch } from './store-watch.js'
import {
  type CallRateRoom,
  type LimiterMaking,
  NO_TABLE,
  type Storage,
  type StorageWatches,
  type StoreConnections,
  type StoredLimiter,
  type StoredRateTable,
} from './stored-limiter.js'

/** The store that holds the budgets of all regions, as this process is connected to it. */
interface BudgetHome {
  /** Of the regions of limiters. */
  readonly store: Store
  readonly isReachable: boolean
  readonly watch: StoreWatch
  /** Of PostgreSQL. */
  readonly connections?: StoreConnections
  /** Resolves when it can be written, or after `withinMs`. */
  connect(withinMs: number): Promise<void>
  close(): void | Promise<void>
}

/** A driver is loaded where it is used. */
async function budgetHome({ place, region, prefix, timeoutMs }: HomeConfig, log: Log): Promise<BudgetHome> {
  const report = reportOf(log, 'the home of the budgets', () => ({ region }), ': the region decides with its share')
  const named = prefix === undefined ? {} : { prefix }
  if (place.kind === 'redis') {
    const redis = new RedisConnection(place, prefix ?? DEFAULT_PREFIX, report)
    return Object.assign(redis, { store: redisStore(redis.client, named) })
  }
  const [{ PostgresConnection }, { postgres: postgresIn }] = await Promise.all([
    import('./postgres-connection.js'),
    import('sluicegate/postgres'),
  ])
  const use = { option: 'storage.home.postgres', prefix: prefix ?? DEFAULT_PREFIX, closeMs: timeoutMs }
  const postgres = new PostgresConnection(place, use, report)
  return Object.assign(postgres, { store: postgresIn(postgres.client, { table: place.table, ...named }) })
}

/** As the configuration says, with a home where it names one. */
export async function redisStorage(config: RedisStorageConfig, log: Log): Promise<RedisStorage> {
  return new RedisStorage(config, log, config.home && (await budgetHome(config.home, log)))
}

/** Keys in Redis or Valkey: other processes with the same prefix and policy names share them. Tokens are leased, so that most decisions stay in this process. */
export class RedisStorage implements Storage {
  readonly name = 'redis'
  readonly #config: RedisStorageConfig
  readonly #store: RedisConnection
  readonly #home: BudgetHome | undefined
  /** Of limiters: this Redis, or the region that it is of. */
  readonly #shared: Store
  readonly #limiters = new Set<SharedLimiter>()

  constructor(config: RedisStorageConfig, log: Log, home?: BudgetHome) {
    this.#config = config
    this.#home = home
    this.#store = new RedisConnection(
      config,
      config.prefix ?? DEFAULT_PREFIX,
      reportOf(log, 'the store', () => this.#shares()),
    )
    const local = redisStore(this.#store.client, config.prefix === undefined ? {} : { prefix: config.prefix })
    this.#shared = config.home === undefined || home === undefined ? local : regionOf(config.home, local, home.store)
  }

  get isReachable(): boolean {
    return this.#store.isReachable
  }

  get isHomeReachable(): boolean | undefined {
    return this.#home?.isReachable
  }

  get lookMs(): number | undefined {
    return this.#config.home?.place.kind === 'postgres' ? this.#home?.watch.lookMs : undefined
  }

  get connections(): StoreConnections | undefined {
    return this.#home?.connections
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

  /** The most nodes that share a policy, and the least share of one, while the store cannot be reached. */
  #shares(): { nodes?: number; localShare?: number } {
    const stats = [...this.#limiters].map((limiter) => limiter.stats())
    if (stats.length === 0) return {}
    return { nodes: Math.max(...stats.map(({ nodes }) => nodes)), localShare: Math.min(...stats.map(({ localShare }) => localShare)) }
  }

  limiter(config: PolicyConfig, making: LimiterMaking): StoredLimiter {
    const options = sharedOptions(this.#config, config, making)
    return storedShared(createLimiter(config.policy, { ...options, store: this.#shared }), this.#limiters)
  }

  restored(): undefined {
    return undefined
  }

  rateTable(_room: CallRateRoom, { hotKeys }: LimiterMaking): StoredRateTable {
    const { prefix, outage, timeoutMs } = this.#config
    const table = createRedisRateTable({
      client: this.#store.client,
      outage,
      timeout: timeoutMs,
      hotKeys,
      ...(prefix !== undefined && { prefix }),
    })
    return {
      throttle: (key, rate, quantity) => table.throttle(key, rate, quantity),
      stats: () => NO_TABLE,
      snapshot: () => undefined,
      get outageDecisions() {
        return table.outageDecisions
      },
      hotKeys: (n) => table.hotKeys(n),
      close: () => table.close(),
    }
  }

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
    this.#store.close()
    await this.#home?.close()
  }

  /** Limiters return their leases, and then those whose refill was under way: an answer of the store follows the answers before it. */
  async #leasesReturned(late: Promise<void>): Promise<void> {
    // One connection keeps the order; the nodes of a cluster have one each.
    for (let round = 0; round < 2; round++) {
      await nextTurn()
      const answer = this.#store.ping()
      if (answer === undefined) return late
      await answer.catch(() => undefined)
    }
  }
}

function regionOf({ region: name, share, tooSmall, cold, timeoutMs }: HomeConfig, local: Store, home: Store): Store {
  return region({ name, local, home, tooSmall, cold, timeout: timeoutMs, ...(share !== undefined && { share }) })
}

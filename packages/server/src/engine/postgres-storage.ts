import { createLimiter, type SharedLimiter, type Store } from 'sluicegate'
import { postgres } from 'sluicegate/postgres'
import type { PostgresStorageConfig } from 'sluicegate-config/config.js'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Log } from '../log.js'
import { PostgresConnection } from './postgres-connection.js'
import { sharedOptions, storedShared } from './shared-limiter.js'
import { DEFAULT_PREFIX, reportOf, START_MS, throwRefusal } from './store-reports.js'
import {
  type CallRateRoom,
  type LimiterMaking,
  MEMORY,
  type Storage,
  type StorageWatches,
  type StoreConnections,
  type StoredLimiter,
  type StoredRateTable,
} from './stored-limiter.js'

/** Keys in a table of PostgreSQL, which other processes with the same prefix and policy names share. Keys of `CL.THROTTLE` stay in memory. */
export class PostgresStorage implements Storage {
  readonly name = 'postgres'
  readonly #config: PostgresStorageConfig
  readonly #store: PostgresConnection
  readonly #shared: Store
  readonly #limiters = new Set<SharedLimiter>()

  constructor(config: PostgresStorageConfig, log: Log) {
    this.#config = config
    const use = { option: 'storage.postgres', prefix: config.prefix ?? DEFAULT_PREFIX, closeMs: config.timeoutMs }
    this.#store = new PostgresConnection(config, use, reportOf(log, 'the store'))
    const { table, prefix } = config
    this.#shared = postgres(this.#store.client, { table, ...(prefix !== undefined && { prefix }) })
  }

  get isReachable(): boolean {
    return this.#store.isReachable
  }

  get lookMs(): number | undefined {
    return this.#store.watch.lookMs
  }

  get connections(): StoreConnections {
    return this.#store.connections
  }

  get watches(): StorageWatches {
    return { store: this.#store.watch, home: undefined }
  }

  async connect(): Promise<void> {
    await this.#store.connect(START_MS)
    if (this.#config.refusedAtStart === 'fail') throwRefusal('the store', this.#store.watch)
  }

  limiter(config: PolicyConfig, making: LimiterMaking): StoredLimiter {
    const options = sharedOptions(this.#config, config, making)
    return storedShared(createLimiter(config.policy, { ...options, store: this.#shared }), this.#limiters)
  }

  restored(): undefined {
    return undefined
  }

  rateTable(room: CallRateRoom, making: LimiterMaking): StoredRateTable {
    return MEMORY.rateTable(room, making)
  }

  /** Leases go back first. */
  async close(): Promise<void> {
    for (const limiter of this.#limiters) limiter.close()
    this.#limiters.clear()
    await new Promise((resolve) => setImmediate(resolve))
    await this.#store.close()
  }
}

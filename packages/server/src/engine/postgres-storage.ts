import { createPostgresLimiter, type FleetLimiter } from 'sluicegate/postgres'
import type { PostgresStorageConfig } from 'sluicegate-config/config.js'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Log } from '../log.js'
import { fleetOptions, storedFleet } from './fleet-limiter.js'
import { PostgresConnection } from './postgres-connection.js'
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
  readonly #limiters = new Set<FleetLimiter>()

  constructor(config: PostgresStorageConfig, log: Log) {
    this.#config = config
    const use = { option: 'storage.postgres', prefix: config.prefix ?? DEFAULT_PREFIX, closeMs: config.timeoutMs }
    this.#store = new PostgresConnection(config, use, reportOf(log, 'the store'))
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
    const options = fleetOptions(this.#config, config, making)
    const { client } = this.#store
    return storedFleet(createPostgresLimiter(config.policy, { client, table: this.#config.table, ...options }), this.#limiters)
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

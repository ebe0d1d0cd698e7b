import pg from 'pg'
import { createPostgresLimiter, type FleetLimiter } from 'sluicegate/postgres'
import type { PostgresStorageConfig } from 'sluicegate-config/config.js'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Log } from '../log.js'
import { fleetOptions, storedFleet } from './fleet-limiter.js'
import {
  type CallRateRoom,
  type LimiterMaking,
  MEMORY,
  type Storage,
  type StoreConnections,
  type StoredLimiter,
  type StoredRateTable,
} from './stored-limiter.js'

/** How long a connection may take to open, and the start waits for the first. */
const CONNECT_MS = 2_000
/** A statement that takes longer frees its connection. */
const STATEMENT_MS = 5_000
/** Its table can be read, and takes fail all the same. */
const READ_ONLY =
  'storage.postgres.url leads to a server that is read-only, a standby or one with default_transaction_read_only: give the primary'
/** Between two looks whether the table can be read. */
const LOOK_MS = 1_000

/** Keys in a table of PostgreSQL, which other processes with the same prefix and policy names share. Keys of `CL.THROTTLE` stay in memory. */
export class PostgresStorage implements Storage {
  readonly name = 'postgres'
  readonly #config: PostgresStorageConfig
  readonly #log: Log
  readonly #pool: pg.Pool
  readonly #limiters = new Set<FleetLimiter>()
  #isReachable = true
  #lookMs: number | undefined
  #looking: NodeJS.Timeout | undefined

  constructor(config: PostgresStorageConfig, log: Log) {
    this.#config = config
    this.#log = log
    this.#pool = new pg.Pool({
      connectionString: config.url,
      max: config.connections,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: STATEMENT_MS,
      application_name: 'sluicegate',
      keepAlive: true,
    })
    this.#pool.on('error', (error) => this.#lost(error))
  }

  get isReachable(): boolean {
    return this.#isReachable
  }

  get lookMs(): number | undefined {
    return this.#lookMs
  }

  get connections(): StoreConnections {
    const { totalCount, idleCount, waitingCount } = this.#pool
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
  }

  /** Resolves when the table can be read, or after a moment: the service starts without it too. */
  async connect(): Promise<void> {
    await this.#look()
    this.#looking = setInterval(() => void this.#look(), LOOK_MS)
    this.#looking.unref()
  }

  async #look(): Promise<void> {
    try {
      const beganMs = performance.now()
      const { rows } = await this.#pool.query(
        `SELECT current_setting('transaction_read_only') AS "readOnly", (SELECT count(*) FROM (SELECT FROM ${this.#table} LIMIT 0) AS none)`,
      )
      this.#lookMs = performance.now() - beganMs
      if (rows[0]?.readOnly === 'on') throw new Error(READ_ONLY)
      if (!this.#isReachable) this.#log.info('the store can be reached again')
      this.#isReachable = true
    } catch (error) {
      this.#lost(error as Error)
    }
  }

  get #table(): string {
    return this.#config.table.split('.').map(pg.escapeIdentifier).join('.')
  }

  #lost({ message }: Error): void {
    this.#lookMs = undefined
    if (this.#isReachable) this.#log.warn({ err: { message } }, 'the store cannot be reached')
    this.#isReachable = false
  }

  limiter(config: PolicyConfig, making: LimiterMaking): StoredLimiter {
    const options = fleetOptions(this.#config, config, making)
    return storedFleet(createPostgresLimiter(config.policy, { client: this.#pool, table: this.#config.table, ...options }), this.#limiters)
  }

  restored(): undefined {
    return undefined
  }

  rateTable(room: CallRateRoom, making: LimiterMaking): StoredRateTable {
    return MEMORY.rateTable(room, making)
  }

  /** Leases go back first: the pool ends when its statements have. */
  async close(): Promise<void> {
    clearInterval(this.#looking)
    for (const limiter of this.#limiters) limiter.close()
    await new Promise((resolve) => setImmediate(resolve))
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#config.timeoutMs)
    })
    await Promise.race([this.#pool.end(), late])
    clearTimeout(timer)
  }
}

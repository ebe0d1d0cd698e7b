import pg from 'pg'
import type { PostgresPlace } from 'sluicegate-config/config.js'
import type { StoreConnections } from './stored-limiter.js'

/** How long a connection may take to open, and the start waits for the first. */
const CONNECT_MS = 2_000
/** A statement that takes longer frees its connection. */
const STATEMENT_MS = 5_000
/** Between two looks whether the table can be read. */
const LOOK_MS = 1_000

/** What one use of PostgreSQL has of its own. */
interface PostgresUse {
  /** The option with its address, for messages. */
  readonly option: string
  /** How long statements under way may take when it is closed. */
  readonly closeMs: number
}

/** A pool of connections to PostgreSQL, and a look at the table once a second. */
export class PostgresConnection {
  readonly pool: pg.Pool
  readonly #place: PostgresPlace
  readonly #use: PostgresUse
  readonly #changed: (isReachable: boolean, error?: Error) => void
  #isReachable = true
  #lookMs: number | undefined
  #looking: NodeJS.Timeout | undefined

  /** @param changed hears once of each outage, and of its end. */
  constructor(place: PostgresPlace, use: PostgresUse, changed: (isReachable: boolean, error?: Error) => void) {
    this.#place = place
    this.#use = use
    this.#changed = changed
    this.pool = new pg.Pool({
      connectionString: place.url,
      max: place.connections,
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: STATEMENT_MS,
      application_name: 'sluicegate',
      keepAlive: true,
    })
    this.pool.on('error', (error) => this.#lost(error))
  }

  get isReachable(): boolean {
    return this.#isReachable
  }

  get lookMs(): number | undefined {
    return this.#lookMs
  }

  get connections(): StoreConnections {
    const { totalCount, idleCount, waitingCount } = this.pool
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
  }

  /** Resolves when the table can be read, or after a moment. */
  async connect(): Promise<void> {
    await this.#look()
    this.#looking = setInterval(() => void this.#look(), LOOK_MS)
    this.#looking.unref()
  }

  /** The pool ends when its statements have. */
  async close(): Promise<void> {
    clearInterval(this.#looking)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#use.closeMs)
    })
    await Promise.race([this.pool.end(), late])
    clearTimeout(timer)
  }

  async #look(): Promise<void> {
    try {
      const beganMs = performance.now()
      const table = this.#place.table.split('.').map(pg.escapeIdentifier).join('.')
      const { rows } = await this.pool.query(
        `SELECT current_setting('transaction_read_only') AS "readOnly", (SELECT count(*) FROM (SELECT FROM ${table} LIMIT 0) AS none)`,
      )
      this.#lookMs = performance.now() - beganMs
      // Its table can be read, and takes fail all the same.
      if (rows[0]?.readOnly === 'on') throw new Error(readOnly(this.#use.option))
      if (!this.#isReachable) this.#changed(true)
      this.#isReachable = true
    } catch (error) {
      this.#lost(error as Error)
    }
  }

  #lost(error: Error): void {
    this.#lookMs = undefined
    const wasReachable = this.#isReachable
    this.#isReachable = false
    if (wasReachable) this.#changed(false, error)
  }
}

function readOnly(option: string): string {
  return `${option}.url leads to a server that is read-only, a standby or one with default_transaction_read_only: give the primary`
}

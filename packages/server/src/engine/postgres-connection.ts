import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { type PostgresClient, postgresStore } from 'sluicegate/postgres'
import type { CasStore } from 'sluicegate/store'
import type { PostgresPlace } from 'sluicegate-config/config.js'
import type { StoreConnections } from './engine-limiter.js'
import { type StoreNews, StoreRefusal, StoreWatch, type WatchedStore } from './store-watch.js'

/** How long a connection may take to open. */
const CONNECT_MS = 2_000
/** A statement that takes longer frees its connection. */
const STATEMENT_MS = 5_000
/** How long connections of an old pool have to end before they are cut off. */
const END_MS = 1_000
const LOOK_KEPT_MS = 60_000
/** Connections that stay open: a limiter has as many statements under way, and a new connection takes longer than its timeout. */
const KEPT_OPEN = 4
const ONE_BYTE = Uint8Array.of(1)

/** What one use of PostgreSQL has of its own. */
interface PostgresUse {
  /** The option with its address, for messages. */
  readonly option: string
  /** Of the names that limiters use. */
  readonly prefix: string
  /** How long statements under way may take when it is closed. */
  readonly closeMs: number
}

/** The part of a client of `pg` that its types leave out. */
interface Connected {
  readonly connection: { readonly stream: { destroy(): void } }
}

/** A pool of connections to PostgreSQL. Limiters get a pool of which the one behind it is replaced when the server refuses or is silent. */
export class PostgresConnection implements WatchedStore {
  /** For limiters. */
  readonly client: PostgresClient
  readonly watch: StoreWatch
  readonly #place: PostgresPlace
  readonly #use: PostgresUse
  readonly #store: CasStore
  readonly #lookKey: string
  /** Connections of each pool, by the pool. */
  readonly #open = new WeakMap<pg.Pool, Set<pg.Client>>()
  #pool: pg.Pool
  #answeredMs = Number.NEGATIVE_INFINITY

  constructor(place: PostgresPlace, use: PostgresUse, say: (news: StoreNews) => void) {
    this.#place = place
    this.#use = use
    this.watch = new StoreWatch(this, say)
    this.#pool = this.#made()
    this.client = poolOver(() => this.#pool)
    this.#store = postgresStore({ client: this.client, table: place.table })
    this.#lookKey = `${use.prefix}:look:${randomBytes(6).toString('hex')}`
  }

  get isReachable(): boolean {
    return this.watch.isSound
  }

  get connections(): StoreConnections {
    const { totalCount, idleCount, waitingCount } = this.#pool
    return { busy: totalCount - idleCount, idle: idleCount, waiting: waitingCount }
  }

  /** Resolves when the table can be written, or after `withinMs`. */
  async connect(withinMs: number): Promise<void> {
    await this.watch.start(withinMs)
    if (this.watch.isSound) await this.#warm()
  }

  /** The pool ends when its statements have. */
  async close(): Promise<void> {
    this.watch.end()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#use.closeMs)
    })
    await Promise.race([this.#pool.end(), late])
    clearTimeout(timer)
  }

  /** Writes a key of this process's own. */
  async look(): Promise<void> {
    try {
      const { version } = await this.#store.read(this.#lookKey)
      await this.#store.swap({ key: this.#lookKey, version, value: ONE_BYTE, ttlMs: LOOK_KEPT_MS })
    } catch (error) {
      throw refusalOf(error, this.#use.option)
    }
  }

  hasAnsweredSince(sinceMs: number): boolean {
    return this.#answeredMs >= sinceMs
  }

  renew(): boolean {
    if (this.#pool.totalCount === 0) return false
    const old = this.#pool
    this.#pool = this.#made()
    void this.#warm()
    void old.end().catch(() => undefined)
    // A silent server does not answer a farewell either.
    setTimeout(() => {
      for (const client of this.#open.get(old) ?? []) (client as unknown as Connected).connection.stream.destroy()
    }, END_MS).unref()
    return true
  }

  /** Opens the connections that stay open. */
  async #warm(): Promise<void> {
    const pool = this.#pool
    const one = async (): Promise<void> => {
      const client = await pool.connect()
      client.release()
    }
    await Promise.allSettled(Array.from({ length: Math.min(KEPT_OPEN, this.#place.connections) }, one))
  }

  #made(): pg.Pool {
    const pool = new pg.Pool({
      connectionString: this.#place.url,
      max: this.#place.connections,
      min: Math.min(KEPT_OPEN, this.#place.connections),
      connectionTimeoutMillis: CONNECT_MS,
      query_timeout: STATEMENT_MS,
      application_name: 'sluicegate',
      keepAlive: true,
    })
    const open = new Set<pg.Client>()
    this.#open.set(pool, open)
    pool.on('connect', (client) => {
      open.add(client)
      // It may end before whoever asked for it has it: without a listener the event would end the process.
      client.on('error', () => undefined)
    })
    pool.on('remove', (client) => open.delete(client))
    pool.on('error', (error) => {
      if (pool === this.#pool) this.watch.lost(refusalOf(error, this.#use.option))
    })
    pool.on('release', (error) => {
      if (!error && pool === this.#pool) this.#answeredMs = performance.now()
    })
    return pool
  }
}

/** What the library uses of a pool, at the pool of the moment. */
function poolOver(pool: () => pg.Pool): PostgresClient {
  return {
    get totalCount() {
      return pool().totalCount
    },
    connect: (connected: Parameters<pg.Pool['connect']>[0]) => pool().connect(connected),
    query: (query: pg.QueryConfig) => pool().query(query),
  } as PostgresClient
}

/** The server starts or ends. */
const DOWN = /^57P0[123]$/
/** Refusals that pass by themselves: no connection is left, or another statement came first. */
const PASSING = /^(?:53300|55P03|40\d{3}|57014)$/

/** What this service has its own words for; the library's error says what to do about the others. */
const MENDS: readonly (readonly [code: RegExp, mend: (option: string) => string])[] = [
  [/^28/, (option) => `give user and password in ${option}.url, and let the server accept them (pg_hba.conf)`],
  [/^3D000$/, (option) => `give the name of the database in ${option}.url`],
  [/^53300$/, () => 'no connection is left: raise max_connections or the CONNECTION LIMIT of its role, or lower connections'],
]

/** What a server answered as a refusal, with what to do; other errors, such as a lost connection, as they are. */
function refusalOf(error: unknown, option: string): Error {
  const cause = ((error as Error).cause ?? error) as Error
  const { code, severity } = cause as { readonly code?: unknown; readonly severity?: unknown }
  // Errors of the system and of the driver have no severity.
  if (typeof code !== 'string' || typeof severity !== 'string' || DOWN.test(code)) return error as Error
  const mend = MENDS.find(([codes]) => codes.test(code))?.[1](option)
  const { message } = mend === undefined ? (error as Error) : cause
  return new StoreRefusal(message, { mend, isPassing: PASSING.test(code), cause: error })
}

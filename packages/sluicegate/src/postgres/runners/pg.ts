import type { CancelSignal } from '../../shared/backend.js'
import { warnOfStore } from '../../warn-once.js'
import { notSent, type SqlRow, type SqlRunner } from '../sql-runner.js'
import type { Statement } from '../statements.js'
import { PgTextQuery, takesTextQueries } from './pg-text-query.js'

interface PgQuery {
  readonly name?: string
  readonly text: string
  readonly values: unknown[]
}

interface PgResult {
  readonly rows: readonly SqlRow[]
}

/** The part of `pg` that is used: a `Client` or a client of a pool, outside transactions. */
export interface PgClient {
  query(query: PgQuery): Promise<PgResult>
  /** `I`: in none. Absent in earlier versions of `pg`, null before it is known. */
  getTransactionStatus?(): string | null
}

interface PooledClient extends PgClient {
  on(event: 'error', listener: () => void): unknown
  off(event: 'error', listener: () => void): unknown
  release(broken?: boolean): void
}

/** The part of `pg` that is used: a `Pool`. */
export interface PgPool extends PgClient {
  readonly totalCount: number
  connect(): Promise<PooledClient>
}

/** The same with a callback, which hears of a client at once. A pool around one of `pg` may know promises alone. */
interface CallingPool {
  connect(connected: (error: Error | undefined, client: PooledClient | undefined) => void): Promise<PooledClient> | undefined
}

export function isPg(client: unknown): client is PgClient | PgPool {
  const { query, connect } = Object(client) as Partial<Record<string, unknown>>
  return typeof client === 'object' && typeof query === 'function' && typeof connect === 'function'
}

export function pgRunner(client: PgClient | PgPool): SqlRunner {
  return 'totalCount' in client ? poolRunner(client) : clientRunner(client)
}

function poolRunner(pool: PgPool): SqlRunner {
  let [opening, opened] = [0, 0]
  return {
    connectionsOpened: () => (opening > 0 ? undefined : opened),
    run: async (statement, values, prepared, signal) => {
      const before = pool.totalCount
      const connected = connectedTo(pool)
      if (pool.totalCount <= before) return sent(pool, await connected, statement, values, prepared, signal)
      opening++
      try {
        return await sent(pool, await connected, statement, values, prepared, signal)
      } finally {
        opening--
        opened++
      }
    },
  }
}

/**
 * A client of the pool, until {@link giveBack}. What is asked of it rejects; without a listener its event would end the process, from the first moment on: the
 * server's greeting and the error with which it shuts down may arrive together.
 */
function connectedTo(pool: PgPool): Promise<PooledClient> {
  return new Promise((resolve, reject) => {
    const connected = (client: PooledClient): void => {
      client.on('error', ignored)
      resolve(client)
    }
    const promised = (pool as unknown as CallingPool).connect((error, client) => (client === undefined ? reject(error) : connected(client)))
    promised?.then(connected, reject)
  })
}

function giveBack(client: PooledClient, broken: boolean): void {
  client.off('error', ignored)
  client.release(broken)
}

/** Runs a statement on a client of a pool and gives the client back. */
async function sent(
  pool: PgPool,
  connected: PooledClient,
  statement: Statement,
  values: readonly string[],
  prepared: boolean,
  signal: CancelSignal | undefined,
): Promise<readonly SqlRow[]> {
  const client = isInTransaction(connected) ? await outsideTransactions(pool, connected) : connected
  if (signal?.aborted) {
    giveBack(client, false)
    throw notSent()
  }
  let broken = true
  try {
    const rows = await rowsOf(client, statement, values, prepared)
    broken = false
    return rows
  } catch (error) {
    broken = !isRefusal(error) || isFailedTransaction(error)
    throw error
  } finally {
    giveBack(client, broken)
  }
}

/** Clients of a pool that are in a transaction, one after another, before a take gives up. */
const MOST_LEFT_OPEN = 20

/**
 * Another client, which is in no transaction. What a statement writes in a transaction that was left open is seen by nobody, and keeps the row
 * locked: such a client is given back with ROLLBACK.
 */
async function outsideTransactions(pool: PgPool, first: PooledClient): Promise<PooledClient> {
  let client = first
  for (let left = 0; ; left++) {
    warnOfStore('SLUICEGATE_OPEN_TRANSACTION', LEFT_OPEN)
    let broken = true
    try {
      await client.query({ text: 'ROLLBACK', values: [] })
      broken = isInTransaction(client)
    } catch {
      // It is closed.
    } finally {
      giveBack(client, broken)
    }
    if (left === MOST_LEFT_OPEN) throw new Error(LEFT_OPEN)
    client = await connectedTo(pool)
    if (!isInTransaction(client)) return client
  }
}

const LEFT_OPEN =
  'a client of the pool is inside a transaction that was left open, and has been rolled back: end each BEGIN with COMMIT or ROLLBACK before release()'
const OWN_TRANSACTION = 'the client is inside a transaction, whose steps nobody else would see: give a Pool, or a Client of its own'

function isInTransaction(client: PgClient): boolean {
  const status = client.getTransactionStatus?.()
  return status === 'T' || status === 'E'
}

/** Without a name where the server may not keep the statement. */
async function rowsOf(client: PgClient, statement: Statement, values: readonly string[], prepared: boolean): Promise<readonly SqlRow[]> {
  const { name, text, columns } = statement
  if (!prepared) return (await client.query({ text, values: [...values] })).rows
  if (columns === undefined || !takesTextQueries(client)) return (await client.query({ name, text, values: [...values] })).rows
  return new Promise((resolve, reject) => {
    const ended = (error: unknown, result?: PgResult): void => (result === undefined ? reject(error) : resolve(result.rows))
    void client.query(new PgTextQuery(statement, values, ended) as unknown as PgQuery)
  })
}

function ignored(): void {}

/** One connection runs one statement at a time: those that wait here can still be given up. */
function clientRunner(client: PgClient): SqlRunner {
  let last: Promise<unknown> = Promise.resolve()
  return {
    run: (statement, values, prepared, signal) => {
      const run = async (): Promise<readonly SqlRow[]> => {
        if (isAborted(signal)) throw notSent()
        if (isInTransaction(client)) {
          warnOfStore('SLUICEGATE_OPEN_TRANSACTION', OWN_TRANSACTION)
          throw new Error(OWN_TRANSACTION)
        }
        return rowsOf(client, statement, values, prepared)
      }
      const result = last.then(run)
      last = result.catch(() => undefined)
      return result
    },
  }
}

function isAborted(signal: CancelSignal | undefined): boolean {
  return signal?.aborted === true
}

/** Of a version of `pg` that does not tell: the connection is closed. */
function isFailedTransaction(error: unknown): boolean {
  return Object(error).code === '25P02'
}

/** Whether the server said so, and the connection can be used again. */
function isRefusal(error: unknown): boolean {
  const { code, severity } = Object(error) as { readonly code?: unknown; readonly severity?: unknown }
  return typeof code === 'string' && code.length === 5 && severity === 'ERROR'
}

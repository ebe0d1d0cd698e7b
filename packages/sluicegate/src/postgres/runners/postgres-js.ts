import { onceInProcess } from '../../once-in-process.js'
import { notSent, type SqlRow, type SqlRunner } from '../sql-runner.js'
import { Turns } from '../turns.js'

/** A statement, what it is made of with it: it is written when a connection takes it. */
interface PendingRows extends PromiseLike<readonly SqlRow[]> {
  /** Null until a connection has it. */
  readonly state?: unknown
  strings?: readonly string[]
  args?: readonly unknown[]
}

/** A statement that does nothing. */
const NOTHING = ['SELECT 1']

/** The part of `postgres` that is used: what `postgres()` returns. */
export interface PostgresJsClient {
  // biome-ignore lint/suspicious/noExplicitAny: its own types say which parameters it takes, in several versions of them.
  unsafe(text: string, parameters?: any[], options?: { readonly prepare?: boolean }): PendingRows
  readonly options?: { readonly max?: number | undefined }
}

export function isPostgresJs(client: unknown): client is PostgresJsClient {
  return typeof client === 'function' && typeof (client as { readonly unsafe?: unknown }).unsafe === 'function'
}

/** Connections of a client, where it does not say how many. */
const MOST_CONNECTIONS = 10

/**
 * One statement a connection, of all stores of a client. `postgres` would send a second one behind the first: where the server lacks a prepared
 * statement, as behind a pooler, it sends the first once more behind the second, takes the answers of one for those of the other, and waits for ever.
 */
const turnsOf = /* @__PURE__ */ onceInProcess('turns of connections', () => new WeakMap<PostgresJsClient, Turns>())

export function postgresJsRunner(sql: PostgresJsClient): SqlRunner {
  const turns = turnsOf.get(sql) ?? new Turns(sql.options?.max ?? MOST_CONNECTIONS)
  turnsOf.set(sql, turns)
  return {
    run: ({ text }, values, prepared, signal) =>
      turns.run(async () => {
        if (signal?.aborted) throw notSent()
        const pending = sql.unsafe(text, [...values], { prepare: prepared })
        // One that waits for a connection becomes one that does nothing. It is not cancelled: `postgres` loses a connection for ever that opens for a
        // statement which was cancelled meanwhile. One that was sent is left alone: its answer says what was charged.
        let isDropped = false
        const drop = (): void => {
          if (pending.state !== null || pending.strings === undefined) return
          pending.strings = NOTHING
          pending.args = []
          isDropped = true
        }
        signal?.addEventListener('abort', drop)
        try {
          const rows = await pending
          if (isDropped) throw notSent()
          return rows
        } finally {
          signal?.removeEventListener('abort', drop)
        }
      }),
  }
}

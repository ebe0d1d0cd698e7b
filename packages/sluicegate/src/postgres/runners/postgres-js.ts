import { notSent, type SqlRow, type SqlRunner } from '../sql-runner.js'

interface PendingRows extends PromiseLike<readonly SqlRow[]> {
  /** Null until a connection has it. */
  readonly state?: unknown
  cancel?(): unknown
}

/** The part of `postgres` that is used: what `postgres()` returns. */
export interface PostgresJsClient {
  // biome-ignore lint/suspicious/noExplicitAny: its own types say which parameters it takes, in several versions of them.
  unsafe(text: string, parameters?: any[], options?: { readonly prepare?: boolean }): PendingRows
}

export function isPostgresJs(client: unknown): client is PostgresJsClient {
  return typeof client === 'function' && typeof (client as { readonly unsafe?: unknown }).unsafe === 'function'
}

export function postgresJsRunner(sql: PostgresJsClient): SqlRunner {
  return {
    run: async ({ text }, values, prepared, signal) => {
      if (signal?.aborted) throw notSent()
      const pending = sql.unsafe(text, [...values], { prepare: prepared })
      // One that waits for a connection is dropped. One that was sent is not cancelled: its answer says what was charged, and `postgres` would
      // open a connection to cancel it, whose failure cannot be caught.
      const drop = (): void => {
        if (pending.state === null) pending.cancel?.()
      }
      signal?.addEventListener('abort', drop)
      try {
        return await pending
      } finally {
        signal?.removeEventListener('abort', drop)
      }
    },
  }
}

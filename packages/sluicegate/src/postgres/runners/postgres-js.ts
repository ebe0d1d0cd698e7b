import { notSent, type SqlRow, type SqlRunner } from '../sql-runner.js'

interface PendingRows extends PromiseLike<readonly SqlRow[]> {
  readonly active?: boolean
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
      // One that waits for a connection is dropped. One that was sent is not cancelled: its answer says what was charged.
      const drop = (): void => {
        if (pending.active === false) pending.cancel?.()
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

import { PolicyError } from '../errors.js'
import { isPg, type PgClient, type PgPool, pgRunner } from './runners/pg.js'
import { isPostgresJs, type PostgresJsClient, postgresJsRunner } from './runners/postgres-js.js'
import type { SqlRunner } from './sql-runner.js'

/** A `Pool` or a `Client` of `pg`, or what `postgres()` returns: made and closed by the caller. */
export type PostgresClient = PgPool | PgClient | PostgresJsClient

/** @throws {PolicyError} `CLIENT_INVALID` */
export function sqlRunnerFor(client: unknown): SqlRunner {
  if (isPostgresJs(client)) return postgresJsRunner(client)
  if (isPg(client)) return pgRunner(client)
  if (typeof (client as { readonly then?: unknown } | null | undefined)?.then === 'function') {
    throw new PolicyError('CLIENT_INVALID', 'client', client, 'must be a client, and this is a promise of one: await it')
  }
  throw new PolicyError(
    'CLIENT_INVALID',
    'client',
    client,
    'must be a Pool or Client of pg (8 or later), or what postgres() of postgres (3) returns',
  )
}

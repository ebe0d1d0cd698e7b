import { checkOptions } from '../options/option-checks.js'
import type { Store, StoreOptions } from '../shared/store.js'
import { casStoreOf } from '../store/cas.js'
import { type PostgresStoreOptions, postgresStore } from './postgres-store.js'
import type { PostgresClient } from './sql-runner-for.js'

/** What {@link postgres} takes beside the client. */
export interface PostgresOptions extends Omit<PostgresStoreOptions, 'client'>, StoreOptions {}

const OPTIONS: readonly string[] = ['table', 'prefix'] satisfies (keyof PostgresOptions)[]

/**
 * A table of PostgreSQL (11 or later) as the store of limiters: the server decides rates and fixed windows, and keeps the values of the rest.
 * Keys contain the policy's name, as with every store.
 *
 * @throws {PolicyError} `CLIENT_INVALID`, and on an unknown option or one out of range.
 * @example
 * const limiter = createLimiter(tokenBucket({ limit: 100, window: '1s', name: 'api' }), { store: postgres(pool) })
 * const { allowed } = await limiter.take('user:42')
 */
export function postgres(client: PostgresClient, options: PostgresOptions = {}): Store {
  const { table, prefix } = checkOptions(options, OPTIONS, "{ table: 'limits.sluicegate' }", 'postgres()')
  const store = postgresStore({ client, ...(table !== undefined && { table }) })
  return casStoreOf(store, prefix === undefined ? {} : { prefix }, undefined, { place: client, within: `${table ?? ''} ` })
}

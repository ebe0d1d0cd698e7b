import type { Decision } from '../decision/decision.js'
import type { AnswerOf } from '../decision/permit.js'
import type { Policy } from '../policy/policy.js'
import type { FleetLimiter } from '../shared/fleet-limiter.js'
import { createStoreLimiter, type StoreLimiterOptions } from '../store/create-store-limiter.js'
import { type PostgresStoreOptions, postgresStore } from './postgres-store.js'

/** What {@link createPostgresLimiter} takes beside the policy: the options of the store and those of `createStoreLimiter`. */
export interface PostgresLimiterOptions extends PostgresStoreOptions, Omit<StoreLimiterOptions, 'store'> {}

/**
 * Creates a limiter whose budget all processes share in a table of PostgreSQL: `createStoreLimiter` over `postgresStore`.
 *
 * @throws {PolicyError} as both of them do
 * @example
 * const limiter = createPostgresLimiter(tokenBucket({ limit: 100, window: '1s', name: 'api' }), { client: pool })
 * const { allowed } = await limiter.take('user:42')
 */
export function createPostgresLimiter<P extends Policy>(policy: P, options: PostgresLimiterOptions): FleetLimiter<AnswerOf<P> & Decision> {
  const { client, table, ...rest } = options ?? {}
  return createStoreLimiter(policy, { ...rest, store: postgresStore({ client, ...(table !== undefined && { table }) }) })
}

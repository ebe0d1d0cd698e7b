import type { StoreHome } from '../regions/store-home.js'
import { storeHome } from '../store/store-home.js'
import { type PostgresStoreOptions, postgresStore } from './postgres-store.js'

/**
 * A table of PostgreSQL as the home of budgets that several regions share: `storeHome` over `postgresStore`.
 *
 * @throws {PolicyError} as `postgresStore` does
 * @example
 * const home = { store: postgresHome({ client: pool }), region: 'eu-west', share: 0.5 }
 * const limiter = createRedisLimiter(policy, { client, home })
 */
export function postgresHome(options: PostgresStoreOptions): StoreHome {
  return storeHome(postgresStore(options))
}

import type { RedisLimiterOptions } from 'sluicegate/redis'
import type { HomeConfig } from 'sluicegate-config/config.js'
import type { Log } from '../log.js'
import { RedisConnection } from './redis-connection.js'
import { DEFAULT_PREFIX, reportOf } from './store-reports.js'
import type { StoreWatch } from './store-watch.js'
import type { StoreConnections } from './stored-limiter.js'

/** The store that holds the budgets of all regions, as this process is connected to it. */
export interface BudgetHome {
  /** Of the option `home` of a limiter. */
  readonly place: Pick<NonNullable<RedisLimiterOptions['home']>, 'client' | 'store'>
  readonly isReachable: boolean
  readonly watch: StoreWatch
  /** Of PostgreSQL. */
  readonly connections?: StoreConnections
  /** Resolves when it can be written, or after `withinMs`. */
  connect(withinMs: number): Promise<void>
  close(): void | Promise<void>
}

/** A driver is loaded where it is used. */
export async function budgetHome({ place, region, prefix, timeoutMs }: HomeConfig, log: Log): Promise<BudgetHome> {
  const report = reportOf(log, 'the home of the budgets', () => ({ region }), ': the region decides with its share')
  if (place.kind === 'redis') {
    const redis = new RedisConnection(place, prefix ?? DEFAULT_PREFIX, report)
    return Object.assign(redis, { place: { client: redis.client } })
  }
  const [{ PostgresConnection }, { postgresHome }] = await Promise.all([import('./postgres-connection.js'), import('sluicegate/postgres')])
  const use = { option: 'storage.home.postgres', prefix: prefix ?? DEFAULT_PREFIX, closeMs: timeoutMs }
  const postgres = new PostgresConnection(place, use, report)
  return Object.assign(postgres, { place: { store: postgresHome({ client: postgres.client, table: place.table }) } })
}

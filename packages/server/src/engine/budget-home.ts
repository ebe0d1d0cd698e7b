import type { RedisLimiterOptions } from 'sluicegate/redis'
import type { HomeConfig } from 'sluicegate-config/config.js'
import type { Log } from '../log.js'
import { RedisConnection } from './redis-connection.js'
import type { StoreConnections } from './stored-limiter.js'

/** The store that holds the budgets of all regions, as this process is connected to it. */
export interface BudgetHome {
  /** Of the option `home` of a limiter. */
  readonly place: Pick<NonNullable<RedisLimiterOptions['home']>, 'client' | 'store'>
  readonly isReachable: boolean
  /** Of PostgreSQL. */
  readonly lookMs?: number | undefined
  readonly connections?: StoreConnections
  /** Resolves when it is reached, or that has failed. */
  connect(): Promise<void>
  close(): Promise<void>
}

/** A driver is loaded where it is used. */
export async function budgetHome({ place, region, timeoutMs }: HomeConfig, log: Log): Promise<BudgetHome> {
  const changed = (isReachable: boolean, error?: Error): void => {
    if (isReachable) log.info({ region }, 'the home of the budgets can be reached again')
    else
      log.warn({ err: { message: error?.message }, region }, 'the home of the budgets cannot be reached: the region decides with its share')
  }
  if (place.kind === 'redis') {
    const redis = new RedisConnection(place, changed)
    return Object.assign(redis, { place: { client: redis.client } })
  }
  const [{ PostgresConnection }, { postgresHome }] = await Promise.all([import('./postgres-connection.js'), import('sluicegate/postgres')])
  const postgres = new PostgresConnection(place, { option: 'storage.home.postgres', closeMs: timeoutMs }, changed)
  return Object.assign(postgres, { place: { store: postgresHome({ client: postgres.pool, table: place.table }) } })
}

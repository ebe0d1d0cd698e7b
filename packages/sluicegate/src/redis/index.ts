export { type RedisOptions, redis } from './redis.js'
export type { HashTag } from './redis-keys.js'
export { createRedisRateTable, type RedisRateTable, type RedisRateTableOptions } from './redis-rate-table.js'
export type { RedisClient } from './runner-for.js'

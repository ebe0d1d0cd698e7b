export { redis } from './redis.js'
export { createRedisRateTable, type RedisRateTable } from './redis-rate-table.js'
export type { RedisClient } from './runner-for.js'

export type { LimiterVerbs } from '../limiter-verbs.js'
export { type BlackAndWhiteOptions, RLWrapperBlackAndWhite } from './black-and-white.js'
// The second names are those of rate-limiter-flexible.
export type { FlexibleOptions, FlexibleOptions as IRateLimiterOptions } from './flexible-options.js'
export { RateLimiterQueue, RateLimiterQueueError, type RateLimiterQueueOptions } from './rate-limiter-queue.js'
export {
  RateLimiterRedis,
  type RateLimiterRedisOptions,
  type RateLimiterRedisOptions as IRateLimiterRedisOptions,
  type RateLimiterRedisOptions as IRateLimiterStoreOptions,
} from './rate-limiter-redis.js'
export { RateLimiterRes } from './rate-limiter-res.js'
export {
  type CallOptions,
  RateLimiterMemory,
  type RateLimiterMemoryOptions,
  RateLimiterSluicegate,
  RateLimiterSluicegate as RateLimiterAbstract,
  type RateLimiterSluicegateOptions,
} from './rate-limiter-sluicegate.js'

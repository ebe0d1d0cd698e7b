export type { LimiterVerbs } from '../limiter-verbs.js'
export type { MakeLimiter } from '../made-limiter.js'
export { countingPolicy } from './counting-policy.js'
// The second names are those of express-rate-limit: who imports them changes no more than the package's.
export type { HitCount, HitCount as ClientRateLimitInfo, HitCount as IncrementResponse } from './hits.js'
export { ipKeyGenerator } from './ip-key-generator.js'
export {
  type RateLimitMiddleware,
  type RateLimitMiddleware as RateLimitRequestHandler,
  rateLimit,
  rateLimit as default,
} from './rate-limit.js'
export type {
  DenialHandler,
  DenialHandler as RateLimitExceededEventHandler,
  OfRequest,
  OfRequest as ValueDeterminingMiddleware,
  RateLimitOptions,
  RateLimitOptions as Options,
  StandardHeaders,
  UsedOptions,
} from './rate-limit-options.js'
export type { Ipv6Subnet } from './request-ip-key.js'
export {
  SluicegateStore,
  SluicegateStore as MemoryStore,
  type SluicegateStore as Store,
  type SluicegateStoreOptions,
  type StoreSettings,
} from './sluicegate-store.js'
export { DAY, HOUR, MINUTE, SECOND } from './time-constants.js'
export type { AugmentedRequest, RateLimitInfo } from './told-limit.js'

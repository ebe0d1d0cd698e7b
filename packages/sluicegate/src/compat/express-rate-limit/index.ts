export type { LimiterVerbs, MakeLimiter } from '../limiter-verbs.js'
export { countingPolicy } from './counting-policy.js'
// The second names are those of express-rate-limit: only the package's name in an import has to change.
export type { HitCount, HitCount as ClientRateLimitInfo, HitCount as IncrementResponse } from './hit-counts.js'
export type { Ipv6Subnet } from './ip-keys.js'
export { ipKeyGenerator } from './ip-keys.js'
export type { AugmentedRequest, RateLimitInfo } from './limit-info.js'
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
export { DAY, HOUR, MINUTE, SECOND } from './rate-limit-options.js'
export {
  SluicegateStore,
  SluicegateStore as MemoryStore,
  type SluicegateStore as Store,
  type SluicegateStoreOptions,
  type StoreSettings,
} from './sluicegate-store.js'

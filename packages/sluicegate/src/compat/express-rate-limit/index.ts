export type { LimiterVerbs, MakeLimiter } from '../limiter-verbs.js'
// The second names are those of express-rate-limit: only the package's name in an import has to change.
export type { HitCount, HitCount as ClientRateLimitInfo, HitCount as IncrementResponse } from './hit-counts.js'
export { type Ipv6Subnet, ipKeyGenerator } from './ip-keys.js'
export {
  type AugmentedRequest,
  type RateLimitInfo,
  type RateLimitMiddleware,
  type RateLimitMiddleware as RateLimitRequestHandler,
  rateLimit,
  rateLimit as default,
} from './rate-limit.js'
export {
  DAY,
  type DenialHandler,
  type DenialHandler as RateLimitExceededEventHandler,
  HOUR,
  MINUTE,
  type OfRequest,
  type OfRequest as ValueDeterminingMiddleware,
  type RateLimitOptions,
  type RateLimitOptions as Options,
  SECOND,
  type StandardHeaders,
  type UsedOptions,
} from './rate-limit-options.js'
export {
  countingPolicy,
  SluicegateStore,
  SluicegateStore as MemoryStore,
  type SluicegateStore as Store,
  type SluicegateStoreOptions,
  type StoreSettings,
} from './sluicegate-store.js'

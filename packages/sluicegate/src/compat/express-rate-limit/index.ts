// All names but two are those of express-rate-limit: only the package's name in an import has to change.
export type { HitCount as ClientRateLimitInfo, HitCount as IncrementResponse } from './hit-counts.js'
export { ipKeyGenerator } from './ip-keys.js'
export {
  type AugmentedRequest,
  type RateLimitInfo,
  type RateLimitMiddleware as RateLimitRequestHandler,
  rateLimit,
  rateLimit as default,
} from './rate-limit.js'
export {
  DAY,
  type DenialHandler as RateLimitExceededEventHandler,
  HOUR,
  MINUTE,
  type OfRequest as ValueDeterminingMiddleware,
  type RateLimitOptions as Options,
  SECOND,
} from './rate-limit-options.js'
export { countingPolicy, SluicegateStore, SluicegateStore as MemoryStore, type SluicegateStore as Store } from './sluicegate-store.js'

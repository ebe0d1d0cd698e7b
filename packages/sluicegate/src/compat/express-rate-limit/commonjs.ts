import { ipKeyGenerator } from './ip-keys.js'
import { rateLimit } from './rate-limit.js'
import { DAY, HOUR, MINUTE, type RateLimitOptions, SECOND } from './rate-limit-options.js'
import { countingPolicy, SluicegateStore } from './sluicegate-store.js'

const required = Object.assign((options?: RateLimitOptions) => rateLimit(options), {
  rateLimit,
  default: rateLimit,
  ipKeyGenerator,
  SluicegateStore,
  MemoryStore: SluicegateStore,
  countingPolicy,
  SECOND,
  MINUTE,
  HOUR,
  DAY,
})

/** What require() returns, as for express-rate-limit: the middleware itself, with the other exports as properties. */
export default required

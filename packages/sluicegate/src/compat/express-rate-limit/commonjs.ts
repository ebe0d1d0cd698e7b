import { countingPolicy } from './counting-policy.js'
import { ipKeyGenerator } from './ip-keys.js'
import { rateLimit } from './rate-limit.js'
import type { RateLimitOptions } from './rate-limit-options.js'
import { DAY, HOUR, MINUTE, SECOND } from './rate-limit-options.js'
import { SluicegateStore } from './sluicegate-store.js'

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

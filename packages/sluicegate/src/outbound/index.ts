export { limited, type OutboundInterceptor } from './limited.js'
export { type AnyFetch, type LimitedFetch, limitedFetch } from './limited-fetch.js'
export { OutboundError, type OutboundErrorCode } from './outbound-error.js'
export type {
  KeyStats,
  OutboundControls,
  OutboundLimiter,
  OutboundOptions,
  OutboundStats,
  RetryEvent,
  ThrottleEvent,
  WaitEvent,
} from './outbound-options.js'
export type { OutboundRequest, Outcome } from './retry-rule.js'

export { limited, type OutboundInterceptor } from './limited.js'
export { type LimitedFetch, limitedFetch } from './limited-fetch.js'
export { OutboundError } from './outbound-error.js'
export type { OutboundOptions, OutboundStats } from './outbound-options.js'

export type { ParentChannel, WorkerProcess } from './channel.js'
export type { ServableLimiter } from './owned-policy.js'
export { primary } from './primary.js'
export { type ServedLimiter, serveLimiter } from './serve-limiter.js'

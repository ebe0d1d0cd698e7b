export type { ServableLimiter } from '../owner/owned-policy.js'
export type { ParentChannel, WorkerProcess } from './channel.js'
export { primary } from './primary.js'
export { type ServedLimiter, serveLimiter } from './serve-limiter.js'

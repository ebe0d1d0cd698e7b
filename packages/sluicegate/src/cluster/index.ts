export type { ChannelEnd, ParentChannel, PrimaryCluster, WorkerProcess } from './channel.js'
export type { ServableLimiter } from './owned-policy.js'
export { type PrimaryOptions, primary } from './primary.js'
export { type ServedLimiter, type ServeOptions, serveLimiter } from './serve-limiter.js'

export type {
  Awaitable,
  FleetBoundKey,
  FleetLimiter,
  FleetPermit,
  FleetReservation,
  FleetStats,
} from '../fleet/fleet-limiter.js'
export type { OutageMode } from '../fleet/outage.js'
export type { OutageEvent } from '../fleet/outage-events.js'
export { type ClusterLimiterOptions, createClusterLimiter } from './create-cluster-limiter.js'
export { type ServedLimiter, type ServeOptions, serveLimiter } from './serve-limiter.js'
export type { ChannelEnd, ParentChannel, PrimaryCluster, WorkerProcess } from './worker-process.js'

// The types that the limiters of every store are called and answered with. The entry of each store exports them.

export type { Awaitable } from '../awaitable.js'
export type { FleetBoundKey, FleetLimiter, FleetPermit, FleetReservation, FleetStats } from './fleet-limiter.js'
export type { OutageMode } from './outage/local-share.js'
export type { OutageEvent } from './outage/outage-account.js'

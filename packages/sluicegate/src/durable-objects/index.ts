import '../workers.js'

export type { Awaitable } from '../awaitable.js'
export type { FleetBoundKey, FleetLimiter, FleetPermit, FleetReservation, FleetStats } from '../shared/fleet-limiter.js'
export type { OutageMode } from '../shared/outage/local-share.js'
export type { OutageEvent } from '../shared/outage/outage-account.js'
export { createDurableObjectLimiter, type DurableObjectLimiterOptions } from './create-durable-object-limiter.js'
export { type LimiterObject, type LimiterObjectOptions, limiterObject } from './limiter-object.js'
export type { ObjectNamespace, ObjectRequest, ObjectResponse, ObjectState, ObjectStorage } from './object-types.js'

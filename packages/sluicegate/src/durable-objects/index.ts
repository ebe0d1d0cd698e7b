import '../workers.js'

export { durableObjects } from './durable-objects.js'
export { type LimiterObject, limiterObject } from './limiter-object.js'
export type { ObjectNamespace, ObjectState } from './object-types.js'

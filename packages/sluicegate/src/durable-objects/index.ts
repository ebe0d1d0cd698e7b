import '../workers.js'

export { type DurableObjectsOptions, durableObjects } from './durable-objects.js'
export { type LimiterObject, type LimiterObjectOptions, limiterObject } from './limiter-object.js'
export type { ObjectNamespace, ObjectRequest, ObjectResponse, ObjectState, ObjectStorage } from './object-types.js'

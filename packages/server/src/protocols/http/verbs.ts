import type { Access } from '../../access.js'
import type { Engine } from '../../engine/engine.js'
import type { RateLimits } from '../../envoy/rate-limits.js'
import { authRoute } from './auth.js'
import { batchRoute } from './batch.js'
import { blockRoute, penalizeRoute, refundRoute, resetRoute } from './change.js'
import { peekRoute, takeRoute } from './decide.js'
import type { Route } from './handler.js'
import { jsonRoute } from './json.js'
import { openapiRoute } from './openapi.js'
import { heartbeatRoute, releaseRoute } from './permit.js'
import { cancelRoute, reserveRoute, settleRoute } from './reserve.js'

/** Paths for callers that are limited, or decide for those that are. */
export function decisionRoutes(engine: Engine, limits: RateLimits, access: Access): [path: string, route: Route][] {
  return [
    ['/v1/take', takeRoute(engine, access)],
    ['/v1/peek', peekRoute(engine, access)],
    ['/v1/auth', authRoute(engine, access)],
    ['/v1/batch', batchRoute(engine, access)],
    ['/v1/reserve', reserveRoute(engine, access)],
    ['/v1/settle', settleRoute(engine)],
    ['/v1/cancel', cancelRoute(engine)],
    ['/v1/release', releaseRoute(engine)],
    ['/v1/heartbeat', heartbeatRoute(engine)],
    ['/json', jsonRoute(limits, access)],
    ['/openapi.json', openapiRoute()],
  ]
}

/** Paths that change the keys of others. */
export function changeRoutes(engine: Engine): [path: string, route: Route][] {
  return [
    ['/v1/refund', refundRoute(engine)],
    ['/v1/penalize', penalizeRoute(engine)],
    ['/v1/block', blockRoute(engine)],
    ['/v1/reset', resetRoute(engine)],
  ]
}

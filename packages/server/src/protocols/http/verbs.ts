import type { Access } from '../../access.js'
import { type Engine, whenDone } from '../../engine/engine.js'
import { limitRequestOf, limitResponseJson } from '../../envoy/limit-json.js'
import { LimitRequestError } from '../../envoy/limit-request.js'
import type { RateLimits } from '../../envoy/rate-limits.js'
import { authRoute } from './auth.js'
import { batchRoute } from './batch.js'
import { readJsonBody } from './body.js'
import { blockRoute, penalizeRoute, refundRoute, resetRoute } from './change.js'
import { refuseOtherSites } from './cross-site.js'
import { peekRoute, takeRoute } from './decide.js'
import type { Route, WholeHandler } from './handler.js'
import { openapiRoute } from './openapi.js'
import { heartbeatRoute, releaseRoute } from './permit.js'
import { priorityOf } from './priority.js'
import { Problem } from './problem.js'
import { JSON_TYPE, reply } from './reply.js'
import { cancelRoute, reserveRoute, settleRoute } from './reserve.js'

/** Holds the most descriptors that a request may have, with some entries each. */
const MAX_REQUEST_BYTES = 262_144

/**
 * `/json`: a request to Envoy's rate limit service as JSON, for clients without gRPC. 200 with `OK`, 429 with `OVER_LIMIT`, 400 for a request
 * that makes no sense. The content type does not matter, as in Envoy's ratelimit service, whose clients send that of curl.
 */
function jsonRoute(limits: RateLimits, access: Access): Route {
  const whole: WholeHandler = async (request, response) => {
    const members = await readJsonBody(request, MAX_REQUEST_BYTES, 'any')
    refuseOtherSites(request)
    try {
      await whenDone(limits.decide(limitRequestOf(members), priorityOf(request, access)), (answer) =>
        reply(response, answer.over ? 429 : 200, JSON_TYPE, limitResponseJson(answer)),
      )
    } catch (error) {
      if (error instanceof LimitRequestError) throw new Problem(400, 'REQUEST_INVALID', error.message)
      throw error
    }
  }
  return { POST: { whole } }
}

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

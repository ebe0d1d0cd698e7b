import type { Access } from '../../access.js'
import { whenDone } from '../../engine/engine.js'
import { limitRequestOf, limitResponseJson } from '../../envoy/limit-json.js'
import { LimitRequestError } from '../../envoy/limit-request.js'
import type { RateLimits } from '../../envoy/rate-limits.js'
import { readJsonBody } from './body.js'
import { refuseOtherSites } from './cross-site.js'
import type { Route, WholeHandler } from './handler.js'
import { priorityOf } from './priority.js'
import { Problem } from './problem.js'
import { JSON_TYPE, reply } from './reply.js'

/** Holds the most descriptors that a request may have, with some entries each. */
const MAX_REQUEST_BYTES = 262_144

/**
 * `/json`: a request to Envoy's rate limit service as JSON, for clients without gRPC. 200 with `OK`, 429 with `OVER_LIMIT`, 400 for a request
 * that makes no sense. The content type does not matter, as in Envoy's ratelimit service, whose clients send that of curl.
 */
export function jsonRoute(limits: RateLimits, access: Access): Route {
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

import type { Request } from 'express'
import { isPromise } from '../awaitable.js'
import { type LimitArgument, notCalledBy, optionsOf } from '../middleware/limit-argument.js'
import { Middleware, type MiddlewareResult } from '../middleware/middleware.js'
import type { LimitingOptions, MiddlewareOptions } from '../middleware/middleware-options.js'
import {
  faultOf,
  followLater,
  isGone,
  NodeFacts,
  type NodeRequest,
  type NodeResponse,
  routePattern,
  sendDenial,
  setHeaders,
  settleAtEnd,
} from '../middleware/node-exchange.js'

export { holdOf } from '../holds/hold-of.js'
export type * from '../middleware/option-types.js'

/** Options of {@link rateLimit}. */
export type RateLimitOptions<ExpressRequest = Request> = LimitingOptions<ExpressRequest>

/** The parts of an Express request, version 4 or 5, that are used. */
interface RequestLike extends NodeRequest {
  readonly originalUrl: string
  readonly route?: { readonly path?: unknown } | undefined
}

/** Express middleware for an app, a router or a route. */
export type RateLimitMiddleware = (request: RequestLike, response: NodeResponse, next: (error?: unknown) => void) => void

/**
 * Rate limits an app, a router or a route of Express 4 or 5. Make it once, outside handlers: each call has its own budget, unless it is
 * given a limiter.
 *
 * Requests are counted by the address of the socket; behind a proxy say `key: address({ trustedHops: 1 })`. Errors of the functions among the
 * options go to `next`.
 *
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * app.use(rateLimit(tokenBucket({ limit: 100, window: '1m' })))
 * app.post('/login', rateLimit({ policy: tokenBucket({ limit: 5, window: '1h' }), counts: 'failures' }), login)
 */
export function rateLimit<ExpressRequest extends RequestLike = Request>(options: RateLimitOptions<ExpressRequest>): RateLimitMiddleware
export function rateLimit<ExpressRequest extends RequestLike = Request>(argument: LimitArgument<ExpressRequest>): RateLimitMiddleware
export function rateLimit<ExpressRequest extends RequestLike>(
  argument: LimitArgument<ExpressRequest>,
  second?: unknown,
): RateLimitMiddleware {
  const middleware = new Middleware(optionsOf(argument, 'rateLimit', second) as MiddlewareOptions<RequestLike>)
  return (request, response, next) => {
    if (typeof next !== 'function' || request.method === undefined) throw notCalledBy('express', request)
    const { socket } = request
    // The client has disconnected.
    if (socket?.destroyed === true) return
    let result: MiddlewareResult | Promise<MiddlewareResult>
    try {
      result = middleware.handle(new ExpressFacts(request, response, socket), request)
    } catch (error) {
      next(faultOf(error))
      return
    }
    if (isPromise(result)) applyLater(result, request, response, next)
    else if (apply(result, request, response)) next()
  }
}

function applyLater(
  result: Promise<MiddlewareResult>,
  request: NodeRequest,
  response: NodeResponse,
  next: (error?: unknown) => void,
): void {
  followLater(result, (found) => apply(found, request, response) && !isGone(request, response), next)
}

/** True if the request goes on. */
function apply(result: MiddlewareResult, request: NodeRequest, response: NodeResponse): boolean {
  if (!result.passes) {
    sendDenial(response, result)
    return false
  }
  setHeaders(response, result.headers)
  if (result.settle !== undefined) settleAtEnd(request, response, result.settle)
  return true
}

class ExpressFacts extends NodeFacts<RequestLike> {
  protected get url(): string {
    return this.raw.originalUrl
  }

  /** In a mounted router Express has only the path of the mount, parts of which clients may choose, and not its pattern: it is not used. */
  get route(): string | undefined {
    return routePattern(this.raw.route?.path)
  }
}

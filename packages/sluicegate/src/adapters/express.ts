import type { Request } from 'express'
import { isPromise } from '../awaitable.js'
import { type LimitArgument, optionsOf } from '../middleware/limit-argument.js'
import type { Outcome } from '../middleware/middleware.js'
import { Gatekeeper } from '../middleware/middleware.js'
import type { GatekeeperOptions, LimitingOptions } from '../middleware/middleware-options.js'
import {
  faultOf,
  followLater,
  isGone,
  NodeFacts,
  type NodeRequest,
  type NodeResponse,
  routePattern,
  sendAnswer,
  setHeaders,
  settleAtEnd,
} from '../middleware/node-exchange.js'

export type * from '../middleware/option-types.js'

/** Options of {@link rateLimit}. */
export type RateLimitOptions<ExpressRequest = Request> = LimitingOptions<ExpressRequest>

/** What is used of a request of Express, 4 or 5. */
interface RequestLike extends NodeRequest {
  readonly originalUrl: string
  readonly route?: { readonly path?: unknown } | undefined
}

/** Middleware of Express, which can be mounted anywhere, of whatever requests the options speak. */
export type RateLimitMiddleware = (request: RequestLike, response: NodeResponse, next: (error?: unknown) => void) => void

/**
 * Limits what comes to an app, a router or a route of Express 4 or 5. Make it once, outside handlers: each call has a budget of its own, unless
 * it is given a limiter.
 *
 * Clients are told apart by the address of the socket; behind a proxy say `key: address({ trustedHops: 1 })`. What the functions among the
 * options throw goes to `next`.
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
  const gatekeeper = new Gatekeeper(optionsOf(argument, 'rateLimit', second) as GatekeeperOptions<RequestLike>)
  return (request, response, next) => {
    const { socket } = request
    // Its client is gone.
    if (socket?.destroyed === true) return
    let outcome: Outcome | Promise<Outcome>
    try {
      outcome = gatekeeper.decide(new ExpressFacts(request, response, socket), request)
    } catch (error) {
      next(faultOf(error))
      return
    }
    if (isPromise(outcome)) askedLater(outcome, request, response, next)
    else if (follow(outcome, request, response)) next()
  }
}

function askedLater(outcome: Promise<Outcome>, request: NodeRequest, response: NodeResponse, next: (error?: unknown) => void): void {
  followLater(outcome, (found) => follow(found, request, response) && !isGone(request, response), next)
}

class ExpressFacts extends NodeFacts<RequestLike> {
  protected get url(): string {
    return this.raw.originalUrl
  }

  get route(): string | undefined {
    // Of a mounted router only the address is known, in which clients may choose parts, and not the pattern.
    return routePattern(this.raw.route?.path)
  }
}

/** Whether the request goes on. */
function follow(outcome: Outcome, request: NodeRequest, response: NodeResponse): boolean {
  if (!outcome.passes) {
    sendAnswer(response, outcome)
    return false
  }
  setHeaders(response, outcome.headers)
  if (outcome.settle !== undefined) settleAtEnd(request, response, outcome.settle)
  return true
}

import { type CanActivate, type ExecutionContext, HttpException, Inject } from '@nestjs/common'
import { isPromise } from '../../awaitable.js'
import { type LimitArgument, namesLimit, optionsOf } from '../../middleware/limit-argument.js'
import type { LimitEnvironment } from '../../middleware/limits.js'
import { Middleware, type MiddlewareResult } from '../../middleware/middleware.js'
import { isGone, settleAtEnd } from '../../middleware/node-exchange.js'
import { RouteMiddlewares } from '../../middleware/route-middlewares.js'
import { onceInProcess } from '../../once-in-process.js'
import { NestExchange, type NestRequest } from './nest-exchange.js'
import { limitSaidOf } from './rate-limit-decorator.js'
import { RateLimitException } from './rate-limit-exception.js'

/** The limits of an app, shared by all guards that a module makes: Nest makes one for each controller that names the class. */
class RateLimits<Request = NestRequest> {
  private readonly ofAll: Middleware<Request> | undefined
  private readonly ofRoutes: RouteMiddlewares<Request>
  /** Where a request says that its limit was asked. */
  private readonly asked = Symbol('sluicegate: rate limit')

  /** @throws {PolicyError} on an option that is wrong. */
  constructor(argument: LimitArgument<Request>, { perRoute = false }: Pick<LimitEnvironment, 'perRoute'> = {}) {
    const all = optionsOf(argument)
    this.ofAll = namesLimit(all) ? new Middleware<Request>(all, { perRoute }) : undefined
    this.ofRoutes = new RouteMiddlewares<Request>(all)
  }

  /** Whether a request comes to a guard for the first time: the guard of all may stand before a controller as well. */
  isFirst(request: { [mark: symbol]: unknown }): boolean {
    if (request[this.asked] === true) return false
    request[this.asked] = true
    return true
  }

  /** Who decides about requests to a handler, if anybody. */
  keeperOf(handler: object, controller: object): Middleware<Request> | undefined {
    const own = limitSaidOf(handler, controller)
    if (own === undefined) return this.ofAll
    return own.limit === false ? undefined : this.ofRoutes.of(own.target, own.limit as LimitArgument<Request>)
  }
}

/** Of one identity in both forms of the package, so that `instanceof` agrees. */
const OnceRateLimits: typeof RateLimits = /* @__PURE__ */ onceInProcess('RateLimits', () => RateLimits)
type OnceRateLimits<Request = NestRequest> = RateLimits<Request>

export { OnceRateLimits as RateLimits }

/** Nobody reads it. Nginx notes those who hang up so. */
const CLIENT_GONE = 499

/**
 * Asks limits before handlers run; a denial is a {@link RateLimitException}. Requests of HTTP alone: others pass. Where guards of one module
 * stand behind each other, the first asks.
 *
 * @example
 * app.useGlobalGuards(new RateLimitGuard(tokenBucket({ limit: 100, window: '1m' })))
 */
export class RateLimitGuard<Request = NestRequest> implements CanActivate {
  private readonly limits: RateLimits<Request>

  /**
   * @param argument of all routes; options without a policy, or nothing, limit those alone that have a limit of their own.
   * @throws {PolicyError} on an option that is wrong.
   */
  constructor(argument: LimitArgument<Request> | RateLimits<Request> = {}) {
    this.limits = argument instanceof RateLimits ? argument : new RateLimits(argument)
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    if (context.getType() !== 'http') return true
    const keeper = this.limits.keeperOf(context.getHandler(), context.getClass())
    if (keeper === undefined) return true
    const http = context.switchToHttp()
    if (!this.limits.isFirst(http.getRequest())) return true
    const exchange = new NestExchange(http.getRequest(), http.getResponse())
    refuseGone(exchange)
    const outcome = keeper.handle(exchange.facts(), http.getRequest())
    return isPromise(outcome) ? outcome.then((later) => follow(later, exchange)) : follow(outcome, exchange)
  }
}

// What a module provides, where the guard is named by its class.
Inject(RateLimits)(RateLimitGuard, undefined, 0)

function follow(outcome: MiddlewareResult, exchange: NestExchange): true {
  exchange.put(outcome.headers)
  if (!outcome.passes) throw new RateLimitException(outcome)
  if (outcome.settle !== undefined) settleAtEnd(exchange.request, exchange.response, outcome.settle)
  refuseGone(exchange)
  return true
}

function refuseGone({ request, response }: NestExchange): void {
  if (isGone(request, response)) throw new HttpException('the client is gone', CLIENT_GONE)
}

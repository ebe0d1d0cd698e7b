import { type CanActivate, type ExecutionContext, HttpException, Inject } from '@nestjs/common'
import { isPromise } from '../awaitable.js'
import type { LimitArgument } from '../edge/limit-argument.js'
import { isGone, settleAtEnd } from '../edge/node-exchange.js'
import type { Outcome } from '../edge/outcome.js'
import { NestExchange } from './nest-exchange.js'
import type { NestRequest } from './nest-request.js'
import { RateLimitException } from './rate-limit-exception.js'
import { RateLimits } from './rate-limits.js'

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
    const outcome = keeper.decide(exchange.facts(), http.getRequest())
    return isPromise(outcome) ? outcome.then((later) => follow(later, exchange)) : follow(outcome, exchange)
  }
}

// What a module provides, where the guard is named by its class.
Inject(RateLimits)(RateLimitGuard, undefined, 0)

function follow(outcome: Outcome, exchange: NestExchange): true {
  exchange.put(outcome.headers)
  if (!outcome.passes) throw new RateLimitException(outcome)
  if (outcome.settle !== undefined) settleAtEnd(exchange.request, exchange.response, outcome.settle)
  refuseGone(exchange)
  return true
}

function refuseGone({ request, response }: NestExchange): void {
  if (isGone(request, response)) throw new HttpException('the client is gone', CLIENT_GONE)
}

import { Gatekeeper } from '../edge/gatekeeper.js'
import { type LimitArgument, namesLimit, optionsOf } from '../edge/limit-argument.js'
import type { Surroundings } from '../edge/limit-rules.js'
import { RouteKeepers } from '../edge/route-keepers.js'
import { onceInProcess } from '../once-in-process.js'
import type { NestRequest } from './nest-request.js'
import { limitSaidOf } from './rate-limited.js'

/** The limits of an app, shared by all guards that a module makes: Nest makes one for each controller that names the class. */
class RateLimits<Request = NestRequest> {
  private readonly ofAll: Gatekeeper<Request> | undefined
  private readonly ofRoutes: RouteKeepers<Request>
  /** Where a request says that its limit was asked. */
  private readonly asked = Symbol('sluicegate: rate limit')

  /** @throws {PolicyError} on an option that is wrong. */
  constructor(argument: LimitArgument<Request>, { perRoute = false }: Pick<Surroundings, 'perRoute'> = {}) {
    const all = optionsOf(argument)
    this.ofAll = namesLimit(all) ? new Gatekeeper<Request>(all, { perRoute }) : undefined
    this.ofRoutes = new RouteKeepers<Request>(all)
  }

  /** Whether a request comes to a guard for the first time: the guard of all may stand before a controller as well. */
  isFirst(request: { [mark: symbol]: unknown }): boolean {
    if (request[this.asked] === true) return false
    request[this.asked] = true
    return true
  }

  /** Who decides about requests to a handler, if anybody. */
  keeperOf(handler: object, controller: object): Gatekeeper<Request> | undefined {
    const own = limitSaidOf(handler, controller)
    if (own === undefined) return this.ofAll
    return own.limit === false ? undefined : this.ofRoutes.of(own.target, own.limit as LimitArgument<Request>)
  }
}

/** Of one identity in both forms of the package, so that `instanceof` agrees. */
const OnceRateLimits: typeof RateLimits = /* @__PURE__ */ onceInProcess('RateLimits', () => RateLimits)
type OnceRateLimits<Request = NestRequest> = RateLimits<Request>

export { OnceRateLimits as RateLimits }

import { Gatekeeper } from '../edge/gatekeeper.js'
import { type LimitArgument, namesLimit, optionsOf } from '../edge/limit-argument.js'
import { RouteKeepers } from '../edge/route-keepers.js'
import type { NestRequest } from './nest-request.js'
import { limitSaidOf } from './rate-limited.js'

/** The limits of an app, shared by all guards that a module makes: Nest makes one for each controller that names the class. */
export class RateLimits<Request = NestRequest> {
  private readonly ofAll: Gatekeeper<Request> | undefined
  private readonly ofRoutes: RouteKeepers<Request>

  /** @throws {PolicyError} on an option that is wrong. */
  constructor(argument: LimitArgument<Request>) {
    const all = optionsOf(argument)
    this.ofAll = namesLimit(all) ? new Gatekeeper<Request>(all) : undefined
    this.ofRoutes = new RouteKeepers<Request>(all)
  }

  /** Who decides about requests to a handler, if anybody. */
  keeperOf(handler: object, controller: object): Gatekeeper<Request> | undefined {
    const own = limitSaidOf(handler, controller)
    if (own === undefined) return this.ofAll
    return own.limit === false ? undefined : this.ofRoutes.of(own.target, own.limit as LimitArgument<Request>)
  }
}

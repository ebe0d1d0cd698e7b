import { type LimitArgument, routeOptions } from './limit-argument.js'
import { Gatekeeper } from './middleware.js'
import type { GatekeeperOptions } from './middleware-options.js'

/** The gatekeepers of routes that have a limit of their own, each made once. */
export class RouteKeepers<Request> {
  private readonly all: GatekeeperOptions<Request>
  private readonly byRoute = new WeakMap<object, Gatekeeper<Request>>()
  private readonly byArgument = new WeakMap<object, Map<string, Gatekeeper<Request>>>()

  /** @param all what routes are like where they say nothing else. */
  constructor(all: GatekeeperOptions<Request>) {
    this.all = all
  }

  /**
   * @param route what a framework knows the route by: an object that is always the same.
   * @throws {PolicyError} on an option that is wrong.
   */
  of(route: object, argument: LimitArgument<Request>): Gatekeeper<Request> {
    const known = this.byRoute.get(route)
    if (known !== undefined) return known
    const keeper = this.made(argument)
    this.byRoute.set(route, keeper)
    return keeper
  }

  /**
   * Those of GET and HEAD, which a framework has as two routes, share one: routes do that have the same argument and one of the same names.
   *
   * @throws {PolicyError} on an option that is wrong.
   */
  named(argument: LimitArgument<Request>, names: readonly string[]): Gatekeeper<Request> {
    const known = this.byArgument.get(argument)
    const shared = names.find((name) => known?.has(name))
    const keeper = (shared === undefined ? undefined : known?.get(shared)) ?? this.made(argument)
    this.byArgument.set(argument, new Map([...(known ?? []), ...names.map((name) => [name, keeper] as const)]))
    return keeper
  }

  private made(argument: LimitArgument<Request>): Gatekeeper<Request> {
    return new Gatekeeper(routeOptions(this.all, argument), { perRoute: true })
  }
}

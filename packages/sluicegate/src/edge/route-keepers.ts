import { Gatekeeper } from './gatekeeper.js'
import type { GatekeeperOptions } from './gatekeeper-options.js'
import { type LimitArgument, routeOptions } from './limit-argument.js'

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
   * Several routes, such as those of GET and HEAD, share one if they have the same argument and the same name. Those without a name share none.
   *
   * @param route what a framework knows the route by: an object that is always the same.
   * @throws {PolicyError} on an option that is wrong.
   */
  of(route: object, argument: LimitArgument<Request>, name?: string): Gatekeeper<Request> {
    const known = this.byRoute.get(route)
    if (known !== undefined) return known
    const keeper = name === undefined ? this.made(argument) : this.named(argument, name)
    this.byRoute.set(route, keeper)
    return keeper
  }

  private named(argument: LimitArgument<Request>, name: string): Gatekeeper<Request> {
    const named = this.byArgument.get(argument) ?? new Map<string, Gatekeeper<Request>>()
    this.byArgument.set(argument, named)
    const keeper = named.get(name) ?? this.made(argument)
    named.set(name, keeper)
    return keeper
  }

  private made(argument: LimitArgument<Request>): Gatekeeper<Request> {
    return new Gatekeeper(routeOptions(this.all, argument), { perRoute: true })
  }
}

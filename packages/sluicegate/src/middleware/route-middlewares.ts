import { type LimitArgument, routeOptions } from './limit-argument.js'
import { Middleware } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

/** The middleware of routes with a limit of their own, each made once. */
export class RouteMiddlewares<Request> {
  private readonly shared: MiddlewareOptions<Request>
  private readonly byRoute = new WeakMap<object, Middleware<Request>>()
  private readonly byArgument = new WeakMap<object, Map<string, Middleware<Request>>>()

  /** @param shared options of routes that do not set them. */
  constructor(shared: MiddlewareOptions<Request>) {
    this.shared = shared
  }

  /**
   * @param route an object that identifies the route in its framework.
   * @throws {PolicyError} on an option that is wrong.
   */
  of(route: object, argument: LimitArgument<Request>): Middleware<Request> {
    const known = this.byRoute.get(route)
    if (known !== undefined) return known
    const middleware = this.make(argument)
    this.byRoute.set(route, middleware)
    return middleware
  }

  /**
   * For frameworks with routes that share a limit, such as GET and HEAD of one path: routes with the same argument and a name in common have one
   * middleware.
   *
   * @throws {PolicyError} on an option that is wrong.
   */
  named(argument: LimitArgument<Request>, names: readonly string[]): Middleware<Request> {
    const known = this.byArgument.get(argument)
    const shared = names.find((name) => known?.has(name))
    const middleware = (shared === undefined ? undefined : known?.get(shared)) ?? this.make(argument)
    this.byArgument.set(argument, new Map([...(known ?? []), ...names.map((name) => [name, middleware] as const)]))
    return middleware
  }

  private make(argument: LimitArgument<Request>): Middleware<Request> {
    return new Middleware(routeOptions(this.shared, argument), { perRoute: true })
  }
}

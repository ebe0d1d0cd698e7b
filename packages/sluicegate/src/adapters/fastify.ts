import type {
  FastifyContextConfig,
  FastifyInstance,
  FastifyPluginCallback,
  FastifyReply,
  FastifyRequest,
  RawServerBase,
  RouteGenericInterface,
  RouteOptions,
} from 'fastify'
import { isPromise } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { PolicyError } from '../errors.js'
import { putHeaders } from '../headers/header.js'
import { type LimitArgument, namesLimit, notCalledBy, optionsOf, routeOptions } from '../middleware/limit-argument.js'
import { Middleware, type MiddlewareResult, stricter } from '../middleware/middleware.js'
import type { LimitingOptions, MiddlewareOptions } from '../middleware/middleware-options.js'
import { faultOf, followLater, isGone, NodeFacts, settleAtEnd } from '../middleware/node-exchange.js'
import { RouteMiddlewares } from '../middleware/route-middlewares.js'
import { asGiven } from '../options/option-checks.js'

export { holdOf } from '../holds/hold-of.js'
export type * from '../middleware/option-types.js'

interface HookOption {
  /**
   * The hook in which requests are limited. A key made of a user or a body needs a later hook than the default, which is before the body is
   * read.
   *
   * @defaultValue `'onRequest'`
   * @example app.register(rateLimit({ policy, hook: 'preHandler' }))
   */
  readonly hook?: 'onRequest' | 'preValidation' | 'preHandler'
}

/** Options of {@link rateLimit}. */
export type RateLimitOptions<Request extends FastifyRequest = FastifyRequest> = LimitingOptions<Request> & HookOption

/** A hook for a single route, over HTTP/1 or HTTP/2. */
export type RateLimitHook = (
  request: FastifyRequest<RouteGenericInterface, RawServerBase>,
  reply: FastifyReply<RouteGenericInterface, RawServerBase>,
  done: (error?: Error) => void,
) => void

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route's own limit, instead of the plugin's. Options of counting and answering that it does not set are those of the plugin. `false`: no limit. */
    readonly rateLimit?: LimitArgument<FastifyRequest> | false
  }
  interface FastifyInstance {
    /** Makes a hook for a route, in addition to its other limits: `preHandler: app.rateLimit(policy)`. */
    rateLimit(argument: LimitArgument<FastifyRequest>): RateLimitHook
  }
  interface FastifyRequest {
    /** The strictest decision about the request; null if no limit applied. */
    rateLimit: Decision | null
  }
}

const HOOKS = ['onRequest', 'preValidation', 'preHandler']

/** Where the config of a route keeps its own limit. If several plugins are registered, one of them enforces it. */
const OWN: unique symbol = Symbol.for('sluicegate: limit of a route')

/** A limit of a route's own. */
interface OwnLimit {
  /** Of the plugin that enforces it. */
  readonly routes: RouteMiddlewares<FastifyRequest>
  readonly middleware: Middleware<FastifyRequest>
}

/** What identifies a route. */
interface NamedRoute {
  readonly method?: RouteOptions['method'] | undefined
  readonly url?: string | undefined
  readonly constraints?: Readonly<Record<string, unknown>>
}

/** The config of a route. Fastify copies it once, symbols included. */
interface RouteConfig extends FastifyContextConfig {
  [OWN]?: OwnLimit
}

/**
 * A plugin that rate limits all routes of the instance it is registered with, nested ones included, and requests that match no route. A route has a
 * limit of its own by `config: { rateLimit: policy }`. Without a policy, only such routes are limited.
 *
 * Where the plugin is registered again in a nested instance, both limit the routes there. A route's own limit replaces both, with the options of the
 * nearer plugin.
 *
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * await app.register(rateLimit(tokenBucket({ limit: 100, window: '1m' })))
 * app.post('/login', { config: { rateLimit: tokenBucket({ limit: 5, window: '1h' }) } }, login)
 */
export function rateLimit<Request extends FastifyRequest = FastifyRequest>(options?: RateLimitOptions<Request>): FastifyPluginCallback
export function rateLimit<Request extends FastifyRequest = FastifyRequest>(argument?: LimitArgument<Request>): FastifyPluginCallback
export function rateLimit(argument: LimitArgument<FastifyRequest> | RateLimitOptions = {}, second?: unknown): FastifyPluginCallback {
  const { hook = 'onRequest', ...all }: MiddlewareOptions<FastifyRequest> & HookOption = asGiven(optionsOf(argument, 'rateLimit', second), [
    'hook',
  ])
  if (!HOOKS.includes(hook)) throw new PolicyError('OPTION_INVALID', 'hook', hook, `must be one of ${HOOKS.join(', ')}`)
  const ofAll = namesLimit(all) ? new Middleware<FastifyRequest>(all) : undefined
  const ofRoutes = new RouteMiddlewares<FastifyRequest>(all)
  const plugin = (app: FastifyInstance, _: unknown, done: () => void): void => {
    if (app.hasRequestDecorator === undefined) throw notCalledBy('fastify', app)
    if (!app.hasRequestDecorator('rateLimit')) app.decorateRequest('rateLimit', null)
    if (!Object.hasOwn(app, 'rateLimit')) {
      app.decorate('rateLimit', (own: LimitArgument<FastifyRequest>) => hookOf(new Middleware(routeOptions(all, own))))
    }
    // An invalid limit of a route throws when the route is added, not at its first request.
    app.addHook('onRoute', (route) => {
      const own = route.config?.rateLimit
      if (own === undefined || own === false) return
      const config: RouteConfig = { ...route.config, [OWN]: ownLimit(ofRoutes, own, route) }
      route.config = config
    })
    app.addHook(hook as 'onRequest', (request, reply, next) => {
      const middleware = middlewareFor(request, ofAll, ofRoutes)
      if (middleware === undefined) next()
      else limit(middleware, request, reply, next)
    })
    done()
  }
  const name = 'sluicegate'
  // As fastify-plugin marks a plugin that is not encapsulated.
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: name,
    [Symbol.for('plugin-meta')]: { name, fastify: '5.x' },
  })
}

class FastifyFacts extends NodeFacts {
  private readonly request: FastifyRequest

  constructor(request: FastifyRequest, reply: FastifyReply) {
    super(request.raw, reply.raw)
    this.request = request
  }

  protected get url(): string {
    return this.request.originalUrl
  }

  get route(): string | undefined {
    return this.request.routeOptions.url
  }
}

/** The middleware for a request; undefined if it is not limited here. */
function middlewareFor(
  { routeOptions }: FastifyRequest,
  ofAll: Middleware<FastifyRequest> | undefined,
  ofRoutes: RouteMiddlewares<FastifyRequest>,
): Middleware<FastifyRequest> | undefined {
  const config: RouteConfig = routeOptions.config
  const own = config.rateLimit
  if (own === undefined) return ofAll
  if (own === false) return undefined
  // A route that was added before the plugin.
  config[OWN] ??= ownLimit(ofRoutes, own, routeOptions)
  return config[OWN].routes === ofRoutes ? config[OWN].middleware : undefined
}

function ownLimit(
  routes: RouteMiddlewares<FastifyRequest>,
  own: LimitArgument<FastifyRequest>,
  { method = [], url = '', constraints = {} }: NamedRoute,
): OwnLimit {
  const only = Object.entries(constraints).map(([name, value]) => `${name} ${String(value)}`)
  const methods = [method].flat()
  const names = methods.map((each) => [each === 'HEAD' ? 'GET' : each, url, ...only].join(' '))
  try {
    return { routes, middleware: routes.named(own, names) }
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    const where = `config.rateLimit of ${methods} ${url}`
    if (error.option !== 'policy') throw new PolicyError(error.code, error.option, error.value, error.mend, { cause: error, where })
    const why = "must have a policy, a limiter or limits of its own, as it replaces the plugin's limit"
    throw new PolicyError(error.code, where, own, why, { cause: error })
  }
}

function hookOf(middleware: Middleware<FastifyRequest>): RateLimitHook {
  return (request, reply, done) => limit(middleware, request as FastifyRequest, reply as FastifyReply, done)
}

function limit(middleware: Middleware<FastifyRequest>, request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  if (isGone(request.raw, reply.raw)) {
    reply.hijack()
    return
  }
  let result: MiddlewareResult | Promise<MiddlewareResult>
  try {
    result = middleware.handle(new FastifyFacts(request, reply), request)
  } catch (error) {
    done(faultOf(error))
    return
  }
  if (isPromise(result)) applyLater(result, request, reply, done)
  else if (apply(result, request, reply)) done()
}

function applyLater(result: Promise<MiddlewareResult>, request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  followLater(result, (found) => apply(found, request, reply), done)
}

/** True if the request goes on. */
function apply(result: MiddlewareResult, request: FastifyRequest, reply: FastifyReply): boolean {
  const { headers, decision } = result
  request.rateLimit = stricter(request.rateLimit, decision)
  if (result.passes && result.settle !== undefined) settleAtEnd(request.raw, reply.raw, result.settle)
  if (isGone(request.raw, reply.raw)) reply.hijack()
  if (reply.sent) return false
  putHeaders(headers, { set: (name, value) => reply.header(name, value), append: (name, value) => reply.header(name, value) })
  if (result.passes) return true
  reply.code(result.status).send(result.body)
  return false
}

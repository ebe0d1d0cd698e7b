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
import type { Decision } from '../decision.js'
import { PolicyError } from '../errors.js'
import { putHeaders } from '../headers/header-pair.js'
import { type LimitArgument, namesLimit, optionsOf, routeOptions } from '../middleware/limit-argument.js'
import { Gatekeeper, type Outcome, stricter } from '../middleware/middleware.js'
import type { GatekeeperOptions, LimitingOptions } from '../middleware/middleware-options.js'
import { faultOf, followLater, isGone, NodeFacts, settleAtEnd } from '../middleware/node-exchange.js'
import { RouteKeepers } from '../middleware/route-middlewares.js'

export type * from '../middleware/option-types.js'

interface HookOption {
  /** When limits are asked, default `onRequest`: before the body is read. Keys made of a user or a body come later. */
  readonly hook?: 'onRequest' | 'preValidation' | 'preHandler'
}

/** Options of {@link rateLimit}. */
export type RateLimitOptions<Request extends FastifyRequest = FastifyRequest> = LimitingOptions<Request> & HookOption

/** A hook of one route, of an instance over HTTP/1 or HTTP/2. */
export type RateLimitHook = (
  request: FastifyRequest<RouteGenericInterface, RawServerBase>,
  reply: FastifyReply<RouteGenericInterface, RawServerBase>,
  done: (error?: Error) => void,
) => void

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Instead of the plugin's limit, with a policy of its own; how it counts and answers, if it does not say, is as there. `false`: no limit. */
    readonly rateLimit?: LimitArgument<FastifyRequest> | false
  }
  interface FastifyInstance {
    /** A hook for a route, besides the limit that it has already: `preHandler: app.rateLimit(policy)`. */
    rateLimit(argument: LimitArgument<FastifyRequest>): RateLimitHook
  }
  interface FastifyRequest {
    /** The strictest of the decisions about it, or null where no limit was asked. */
    rateLimit: Decision | null
  }
}

const HOOKS = ['onRequest', 'preValidation', 'preHandler']

/** Where the config of a route says who asks about its own limit: of several plugins one does. */
const OWN: unique symbol = Symbol.for('sluicegate: limit of a route')

/** A limit of a route's own. */
interface OwnLimit {
  readonly keepers: RouteKeepers<FastifyRequest>
  readonly keeper: Gatekeeper<FastifyRequest>
}

/** What tells a route from others. */
interface NamedRoute {
  readonly method?: RouteOptions['method'] | undefined
  readonly url?: string | undefined
  readonly constraints?: Readonly<Record<string, unknown>>
}

/** The config of a route, which Fastify copies once, with all that is in it. */
interface RouteConfig extends FastifyContextConfig {
  [OWN]?: OwnLimit
}

/**
 * A plugin that limits all routes of the instance that it is registered with, those inside included, and what is not found there. A route has a
 * limit of its own by `config: { rateLimit: policy }`. Options without a policy, or none at all, limit these routes alone.
 *
 * Registered again further in, both limit what is there; a route's own limit takes the place of both, with what the nearer plugin says.
 *
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * await app.register(rateLimit(tokenBucket({ limit: 100, window: '1m' })))
 * app.post('/login', { config: { rateLimit: tokenBucket({ limit: 5, window: '1h' }) } }, login)
 */
export function rateLimit<Request extends FastifyRequest = FastifyRequest>(options?: RateLimitOptions<Request>): FastifyPluginCallback
export function rateLimit<Request extends FastifyRequest = FastifyRequest>(argument?: LimitArgument<Request>): FastifyPluginCallback
export function rateLimit(argument: LimitArgument<FastifyRequest> | RateLimitOptions = {}, second?: unknown): FastifyPluginCallback {
  const { hook = 'onRequest', ...all }: GatekeeperOptions<FastifyRequest> & HookOption = optionsOf(argument, 'rateLimit', second)
  if (!HOOKS.includes(hook)) throw new PolicyError('OPTION_INVALID', 'hook', hook, `must be one of ${HOOKS.join(', ')}`)
  const ofAll = namesLimit(all) ? new Gatekeeper<FastifyRequest>(all) : undefined
  const ofRoutes = new RouteKeepers<FastifyRequest>(all)
  const plugin = (app: FastifyInstance, _: unknown, done: () => void): void => {
    if (!app.hasRequestDecorator('rateLimit')) app.decorateRequest('rateLimit', null)
    if (!Object.hasOwn(app, 'rateLimit')) {
      app.decorate('rateLimit', (own: LimitArgument<FastifyRequest>) => hookOf(new Gatekeeper(routeOptions(all, own))))
    }
    // What is wrong with the limit of a route is told when it is made, not when it is asked for.
    app.addHook('onRoute', (route) => {
      const own = route.config?.rateLimit
      if (own === undefined || own === false) return
      const config: RouteConfig = { ...route.config, [OWN]: ownLimit(ofRoutes, own, route) }
      route.config = config
    })
    app.addHook(hook as 'onRequest', (request, reply, next) => {
      const keeper = keeperOf(request, ofAll, ofRoutes)
      if (keeper === undefined) next()
      else limit(keeper, request, reply, next)
    })
    done()
  }
  const name = 'sluicegate'
  // As fastify-plugin marks what is not to be encapsulated.
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

/** Who decides about a request, if anybody. */
function keeperOf(
  { routeOptions }: FastifyRequest,
  ofAll: Gatekeeper<FastifyRequest> | undefined,
  ofRoutes: RouteKeepers<FastifyRequest>,
): Gatekeeper<FastifyRequest> | undefined {
  const config: RouteConfig = routeOptions.config
  const own = config.rateLimit
  if (own === undefined) return ofAll
  if (own === false) return undefined
  // A route from before the plugin has none yet.
  config[OWN] ??= ownLimit(ofRoutes, own, routeOptions)
  return config[OWN].keepers === ofRoutes ? config[OWN].keeper : undefined
}

function ownLimit(
  keepers: RouteKeepers<FastifyRequest>,
  own: LimitArgument<FastifyRequest>,
  { method = [], url = '', constraints = {} }: NamedRoute,
): OwnLimit {
  const only = Object.entries(constraints).map(([name, value]) => `${name} ${String(value)}`)
  const methods = [method].flat()
  const names = methods.map((each) => [each === 'HEAD' ? 'GET' : each, url, ...only].join(' '))
  try {
    return { keepers, keeper: keepers.named(own, names) }
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    const where = `config.rateLimit of ${methods} ${url}`
    if (error.option !== 'policy') throw new PolicyError(error.code, error.option, error.value, error.mend, { cause: error, where })
    const why = 'needs a policy, a limiter or limits of its own, as it takes the place of the limit that the plugin has'
    throw new PolicyError(error.code, where, own, why, { cause: error })
  }
}

function hookOf(keeper: Gatekeeper<FastifyRequest>): RateLimitHook {
  return (request, reply, done) => limit(keeper, request as FastifyRequest, reply as FastifyReply, done)
}

function limit(keeper: Gatekeeper<FastifyRequest>, request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  if (isGone(request.raw, reply.raw)) {
    reply.hijack()
    return
  }
  let outcome: Outcome | Promise<Outcome>
  try {
    outcome = keeper.decide(new FastifyFacts(request, reply), request)
  } catch (error) {
    done(faultOf(error))
    return
  }
  if (isPromise(outcome)) askedLater(outcome, request, reply, done)
  else if (follow(outcome, request, reply)) done()
}

function askedLater(outcome: Promise<Outcome>, request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  followLater(outcome, (found) => follow(found, request, reply), done)
}

/** Whether the request goes on. */
function follow(outcome: Outcome, request: FastifyRequest, reply: FastifyReply): boolean {
  const { headers, decision } = outcome
  request.rateLimit = stricter(request.rateLimit, decision)
  if (outcome.passes && outcome.settle !== undefined) settleAtEnd(request.raw, reply.raw, outcome.settle)
  if (isGone(request.raw, reply.raw)) reply.hijack()
  if (reply.sent) return false
  putHeaders(headers, { set: (name, value) => reply.header(name, value), append: (name, value) => reply.header(name, value) })
  if (outcome.passes) return true
  reply.code(outcome.status).send(outcome.body)
  return false
}

import type { FastifyInstance, FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import type { Decision } from './decision.js'
import { isPromise } from './edge/awaitable.js'
import { Gatekeeper } from './edge/gatekeeper.js'
import type { GatekeeperOptions } from './edge/gatekeeper-options.js'
import { type LimitArgument, namesLimit, optionsOf, routeOptions } from './edge/limit-argument.js'
import { isGone, NodeFacts, settleAtEnd } from './edge/node-exchange.js'
import type { Outcome } from './edge/outcome.js'
import { putHeaders } from './edge/put-headers.js'
import { RouteKeepers } from './edge/route-keepers.js'
import { PolicyError } from './errors.js'

export type * from './edge/option-types.js'

/** Options of {@link rateLimit}. */
export interface RateLimitOptions extends GatekeeperOptions<FastifyRequest> {
  /** When limits are asked, default `onRequest`: before the body is read. Keys made of a user or a body come later. */
  readonly hook?: 'onRequest' | 'preValidation' | 'preHandler'
}

/** A hook of one route. */
export type RateLimitHook = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Instead of the plugin's own limit; what it does not say is as the plugin has it. `false`: no limit. */
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

/**
 * A plugin that limits all routes of the instance that it is registered with, those inside included, and what is not found there. A route has a
 * limit of its own by `config: { rateLimit: policy }`. Options without a policy, or none at all, limit these routes alone.
 *
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * await app.register(rateLimit(tokenBucket({ limit: 100, window: '1m' })))
 * app.post('/login', { config: { rateLimit: tokenBucket({ limit: 5, window: '1h' }) } }, login)
 */
export function rateLimit(argument: LimitArgument<FastifyRequest> | RateLimitOptions = {}): FastifyPluginCallback {
  const { hook = 'onRequest', ...all }: RateLimitOptions = optionsOf(argument)
  if (!HOOKS.includes(hook)) throw new PolicyError('OPTION_INVALID', 'hook', hook, `must be one of ${HOOKS.join(', ')}`)
  const ofAll = namesLimit(all) ? new Gatekeeper<FastifyRequest>(all) : undefined
  const ofRoutes = new RouteKeepers<FastifyRequest>(all)
  const plugin = (app: FastifyInstance, _: unknown, done: () => void): void => {
    app.decorateRequest('rateLimit', null)
    app.decorate('rateLimit', (own: LimitArgument<FastifyRequest>) => hookOf(new Gatekeeper(routeOptions(all, own))))
    // What is wrong with the limit of a route is told when it is made, not when it is asked for.
    app.addHook('onRoute', ({ config, url }) => void (config?.rateLimit && ofRoutes.of(config, config.rateLimit, url)))
    app.addHook(hook as 'onRequest', (request, reply, next) => {
      const { config, url = '' } = request.routeOptions
      const own = config.rateLimit
      const keeper = own === undefined ? ofAll : own === false ? undefined : ofRoutes.of(config, own, url)
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

  constructor(request: FastifyRequest) {
    super(request.raw)
    this.request = request
  }

  protected get url(): string {
    return this.request.originalUrl
  }

  get route(): string | undefined {
    return this.request.routeOptions.url
  }
}

function hookOf(keeper: Gatekeeper<FastifyRequest>): RateLimitHook {
  return (request, reply, done) => limit(keeper, request, reply, done)
}

function limit(keeper: Gatekeeper<FastifyRequest>, request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void {
  if (isGone(request.raw, reply.raw)) {
    reply.hijack()
    return
  }
  let outcome: Outcome | Promise<Outcome>
  try {
    outcome = keeper.decide(new FastifyFacts(request), request)
  } catch (error) {
    done(error as Error)
    return
  }
  if (isPromise(outcome)) outcome.then((later) => follow(later, request, reply, done), done)
  else follow(outcome, request, reply, done)
}

function follow(outcome: Outcome, request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const { headers, decision } = outcome
  request.rateLimit = decision ?? null
  if (outcome.passes && outcome.settle !== undefined) settleAtEnd(request.raw, reply.raw, outcome.settle)
  if (isGone(request.raw, reply.raw)) reply.hijack()
  if (reply.sent) return
  putHeaders(headers, { set: (name, value) => reply.header(name, value), append: (name, value) => reply.header(name, value) })
  if (outcome.passes) done()
  else reply.code(outcome.status).send(outcome.body)
}

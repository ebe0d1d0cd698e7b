import type { Context, Env, MiddlewareHandler } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { putHeaders } from '../headers/header-pair.js'
import { checkAddressNeed, explained } from '../middleware/fetch-address.js'
import {
  addressTeller,
  FetchFacts,
  isAbandoned,
  remoteAddressOf,
  settleUntouched,
  settlingResponse,
  unread,
} from '../middleware/fetch-exchange.js'
import { type LimitArgument, optionsOf } from '../middleware/limit-argument.js'
import type { Answer, Pass } from '../middleware/middleware.js'
import { Gatekeeper } from '../middleware/middleware.js'
import type { GatekeeperOptions, LimitingOptions } from '../middleware/middleware-options.js'
import { isGone, type NodeRequest, type NodeResponse, settleAtEnd } from '../middleware/node-exchange.js'
import { settleQuietly } from '../middleware/settle.js'

export type * from '../middleware/option-types.js'

interface AddressOption<HonoContext> {
  /** The address of the socket, where the runtime is none of Node, Bun and Deno: `(c) => getConnInfo(c).remote.address`. */
  readonly remoteAddress?: (context: HonoContext) => string | undefined
}

type ContextOptions<HonoContext> = LimitingOptions<HonoContext> & AddressOption<HonoContext>

/** Options of {@link rateLimit}. */
export type RateLimitOptions<E extends Env = Env> = ContextOptions<Context<E>>

/** What Node has behind a request. */
interface NodeExchange {
  readonly incoming: NodeRequest
  readonly outgoing: NodeResponse
}

/**
 * Limits what comes to an app, a path or a route of Hono, on Node, Bun and Deno.
 *
 * Bun's server has to get through to Hono: `Bun.serve({ fetch: app.fetch })` does that. What the functions among the options throw goes to
 * `app.onError`.
 *
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * app.use(rateLimit(tokenBucket({ limit: 100, window: '1m' })))
 * app.post('/login', rateLimit({ policy: tokenBucket({ limit: 5, window: '1h' }), counts: 'failures' }), login)
 */
// biome-ignore lint/suspicious/noExplicitAny: variables of whatever app it is for, as Hono's own createMiddleware has it
export function rateLimit<E extends Env = any, HonoContext extends Context<any> = Context<E>>(
  options: ContextOptions<HonoContext>,
): MiddlewareHandler<E>
// biome-ignore lint/suspicious/noExplicitAny: the same
export function rateLimit<E extends Env = any, HonoContext extends Context<any> = Context<E>>(
  argument: LimitArgument<HonoContext> | ContextOptions<HonoContext>,
): MiddlewareHandler<E>
export function rateLimit<E extends Env>(argument: LimitArgument<Context<E>>, second?: unknown): MiddlewareHandler<E> {
  const { remoteAddress: given, ...options }: GatekeeperOptions<Context<E>> & AddressOption<Context<E>> = optionsOf(
    argument,
    'rateLimit',
    second,
  )
  const remoteAddress = addressTeller(given)
  checkAddressNeed(options, remoteAddress !== undefined)
  const gatekeeper = new Gatekeeper<Context<E>>(options)
  return async (context, next) => {
    const { raw } = context.req
    const node = nodeExchange(context.env)
    if (isLost(raw, node)) return unread()
    const address = remoteAddress === undefined ? remoteAddressOf(context.env, raw) : remoteAddress(context)
    const outcome = await explained(address, () => gatekeeper.decide(new HonoFacts(context, address, node), context))
    if (!outcome.passes) return answered(context, outcome)
    const { headers, settle } = outcome
    for (const [name, value] of headers) context.header(name, value)
    if (settle !== undefined && node !== undefined) settleAtEnd(node.incoming, node.outgoing, settle)
    if (isLost(raw, node)) {
      if (settle !== undefined) settleQuietly(settle, undefined)
      return unread()
    }
    try {
      await next()
      finish(context, outcome, node === undefined)
    } catch (error) {
      // Thrown by an error handler, or no Error: servers answer 500.
      if (settle !== undefined && node === undefined) settleQuietly(settle, 500)
      throw error
    }
    return undefined
  }
}

class HonoFacts extends FetchFacts {
  private readonly context: Context
  private readonly node: NodeExchange | undefined

  constructor(context: Context, remoteAddress: string | undefined, node: NodeExchange | undefined) {
    super(context.req.raw, remoteAddress, context.env)
    this.context = context
    this.node = node
  }

  override whenGone(tell: () => void): void {
    const { node } = this
    if (node === undefined) super.whenGone(tell)
    else settleAtEnd(node.incoming, node.outgoing, tell)
  }

  /**
   * The pattern of the handler: the first that matches and comes after this middleware, or stands with it on one route. One that ends in `*` is
   * a handler's only where nothing else matches and it is for one method: others are how middleware is mounted.
   */
  override get route(): string | undefined {
    const { matchedRoutes, routeIndex } = this.context.req
    const routes = [...matchedRoutes.slice(routeIndex + 1), ...matchedRoutes.slice(routeIndex, routeIndex + 1)]
    const exact = routes.filter(({ path }) => !path.endsWith('*'))
    const isOfOneMethod = ({ method }: { readonly method: string }): boolean => method !== 'ALL'
    return (exact.find(isOfOneMethod) ?? exact[0] ?? routes.find(isOfOneMethod))?.path
  }
}

/** Whether the client is gone. */
function isLost(request: Request, node: NodeExchange | undefined): boolean {
  return node === undefined ? isAbandoned(request) : isGone(node.incoming, node.outgoing)
}

/** Made by the context: of any other response Hono forgets the headers that were set before, or puts them over its own. */
function answered(context: Context, { status, headers, body }: Answer): Response {
  putHeaders(headers, {
    set: (name, value) => context.header(name, value),
    append: (name, value) => context.header(name, value, { append: true }),
  })
  return context.body(body, status as ContentfulStatusCode)
}

/** Responses that Hono did not make are without the headers that were set before, and may be closed to changes. */
function finish(context: Context, { headers, settle }: Pass, isStream: boolean): void {
  // A change of protocols is no response to touch.
  if (context.res.status < 200) {
    if (isStream && settle !== undefined) settleUntouched(settle, context.res)
    return
  }
  const [first] = headers
  if (first !== undefined && !context.res.headers.has(first[0])) {
    for (const [name, value] of headers) if (!context.res.headers.has(name)) context.header(name, value)
  }
  if (isStream && settle !== undefined) {
    const { res } = context
    const watched = settlingResponse(context.req.raw, res, settle)
    if (watched === res) return
    // The headers of the one would be merged into the other: they are the same.
    context.res = undefined
    context.res = watched
  }
}

function nodeExchange(environment: unknown): NodeExchange | undefined {
  const found = (environment ?? {}) as Partial<NodeExchange> & { readonly server?: Partial<NodeExchange> }
  const { incoming, outgoing } = found.server ?? found
  return incoming !== undefined && outgoing !== undefined ? { incoming, outgoing } : undefined
}

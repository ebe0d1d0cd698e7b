import type { Context, Env, MiddlewareHandler } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { putHeaders } from '../headers/header.js'
import type { DenialResponse } from '../middleware/denial-response.js'
import { abandonedResponse, addressedBy, FetchFacts, isAbandoned, settleUnchanged, settlingResponse } from '../middleware/fetch-exchange.js'
import { type LimitArgument, notCalledBy, optionsOf } from '../middleware/limit-argument.js'
import { Middleware, type MiddlewareResult, type Pass } from '../middleware/middleware.js'
import type { LimitingOptions, MiddlewareOptions } from '../middleware/middleware-options.js'
import { faultOf, isGone, type NodeRequest, type NodeResponse, settleAtEnd } from '../middleware/node-exchange.js'
import { settleQuietly } from '../middleware/settle.js'
import { asGiven } from '../options/option-checks.js'

export { holdOf } from '../holds/hold-of.js'
export type * from '../middleware/option-types.js'

interface AddressOption<HonoContext> {
  /**
   * The address of the socket, on other runtimes than Node.js, Bun and Deno. For Fetch it is a function of the request and of what the runtime passes
   * beside it; where that is nothing, use a key from a header that your platform sets.
   *
   * @defaultValue that of the runtime; for Fetch of Bun and Deno
   * @example rateLimit({ policy, remoteAddress: (c) => getConnInfo(c).remote.address })
   */
  readonly remoteAddress?: (context: HonoContext) => string | undefined
}

type ContextOptions<HonoContext> = LimitingOptions<HonoContext> & AddressOption<HonoContext>

/** Options of {@link rateLimit}. */
export type RateLimitOptions<E extends Env = Env> = ContextOptions<Context<E>>

/** The request and response of Node.js behind those of Hono. */
interface NodeExchange {
  readonly incoming: NodeRequest
  readonly outgoing: NodeResponse
}

/**
 * Rate limits an app, a path or a route of Hono, on Node.js, Bun and Deno.
 *
 * On Bun the server has to be passed to Hono, for the address of the client: `Bun.serve({ fetch: app.fetch })` does that. Errors of the functions
 * among the options go to `app.onError`.
 *
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * app.use(rateLimit(tokenBucket({ limit: 100, window: '1m' })))
 * app.post('/login', rateLimit({ policy: tokenBucket({ limit: 5, window: '1h' }), counts: 'failures' }), login)
 */
// biome-ignore lint/suspicious/noExplicitAny: the variables of any app, as in Hono's own createMiddleware
export function rateLimit<E extends Env = any, HonoContext extends Context<any> = Context<E>>(
  options: ContextOptions<HonoContext>,
): MiddlewareHandler<E>
// biome-ignore lint/suspicious/noExplicitAny: the same
export function rateLimit<E extends Env = any, HonoContext extends Context<any> = Context<E>>(
  argument: LimitArgument<HonoContext> | ContextOptions<HonoContext>,
): MiddlewareHandler<E>
export function rateLimit<E extends Env>(argument: LimitArgument<Context<E>>, second?: unknown): MiddlewareHandler<E> {
  const { remoteAddress: given, ...options }: MiddlewareOptions<Context<E>> & AddressOption<Context<E>> = asGiven(
    optionsOf(argument, 'rateLimit', second),
    ['remoteAddress'],
  )
  const addressed = addressedBy(given, options)
  const middleware = new Middleware<Context<E>>(options)
  return async (context, next) => {
    const raw = context.req?.raw
    if (raw === undefined) throw notCalledBy('hono', context)
    const node = nodeExchange(context.env)
    if (isLost(raw, node)) return abandonedResponse()
    let result: MiddlewareResult
    try {
      result = await addressed(raw, context.env, [context], (address) => middleware.handle(new HonoFacts(context, address, node), context))
    } catch (error) {
      // Hono calls `app.onError` for errors alone.
      throw faultOf(error)
    }
    if (!result.passes) return respond(context, result)
    const { headers, settle } = result
    for (const [name, value] of headers) context.header(name, value)
    if (settle !== undefined && node !== undefined) settleAtEnd(node.incoming, node.outgoing, settle)
    if (isLost(raw, node)) {
      if (settle !== undefined) settleQuietly(settle, undefined)
      return abandonedResponse()
    }
    try {
      await next()
      finish(context, result, node === undefined)
    } catch (error) {
      // Thrown by an error handler, or not an Error: servers answer 500.
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

  override whenGone(callback: () => void): void {
    const { node } = this
    if (node === undefined) super.whenGone(callback)
    else settleAtEnd(node.incoming, node.outgoing, callback)
  }

  /**
   * The pattern of the handler: the first match after this middleware, or on the same route. A pattern that ends in `*` is taken only if nothing else
   * matches and it is for one method: otherwise it belongs to middleware.
   */
  override get route(): string | undefined {
    const { matchedRoutes, routeIndex } = this.context.req
    const routes = [...matchedRoutes.slice(routeIndex + 1), ...matchedRoutes.slice(routeIndex, routeIndex + 1)]
    const exact = routes.filter(({ path }) => !path.endsWith('*'))
    const isOfOneMethod = ({ method }: { readonly method: string }): boolean => method !== 'ALL'
    return (exact.find(isOfOneMethod) ?? exact[0] ?? routes.find(isOfOneMethod))?.path
  }
}

/** Whether the client has disconnected. */
function isLost(request: Request, node: NodeExchange | undefined): boolean {
  return node === undefined ? isAbandoned(request) : isGone(node.incoming, node.outgoing)
}

/** Made by the context: with any other response Hono drops the headers that were set before, or overwrites its own with them. */
function respond(context: Context, { status, headers, body }: DenialResponse): Response {
  putHeaders(headers, {
    set: (name, value) => context.header(name, value),
    append: (name, value) => context.header(name, value, { append: true }),
  })
  return context.body(body, status as ContentfulStatusCode)
}

/** A response that Hono did not make lacks the headers that were set before, and may be immutable. */
function finish(context: Context, { headers, settle }: Pass, isStream: boolean): void {
  // A change of protocols: the response must not be changed.
  if (context.res.status < 200) {
    if (isStream && settle !== undefined) settleUnchanged(settle, context.res)
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
    // Assigned twice: otherwise Hono merges the headers of both, which are the same.
    context.res = undefined
    context.res = watched
  }
}

function nodeExchange(environment: unknown): NodeExchange | undefined {
  const found = (environment ?? {}) as Partial<NodeExchange> & { readonly server?: Partial<NodeExchange> }
  const { incoming, outgoing } = found.server ?? found
  return incoming !== undefined && outgoing !== undefined ? { incoming, outgoing } : undefined
}

import type { Context, Env, MiddlewareHandler } from 'hono'
import { answerResponse, FetchFacts, isAbandoned, remoteAddressOf, settlingResponse, unread } from './edge/fetch-exchange.js'
import { Gatekeeper } from './edge/gatekeeper.js'
import type { GatekeeperOptions } from './edge/gatekeeper-options.js'
import { type LimitArgument, optionsOf } from './edge/limit-argument.js'
import { isGone, type NodeRequest, type NodeResponse, settleAtEnd } from './edge/node-exchange.js'
import type { Pass } from './edge/outcome.js'
import { settleQuietly } from './edge/settling.js'

export type { Denial } from './edge/denial.js'
export type { EdgeLimiter } from './edge/edge-limiter.js'
export type { AnswerChange } from './edge/gatekeeper-options.js'

/** Options of {@link rateLimit}. */
export interface RateLimitOptions<E extends Env = Env> extends GatekeeperOptions<Context<E>> {
  /** The address of the socket, where the runtime is none of Node, Bun and Deno: `(c) => getConnInfo(c).remote.address`. */
  readonly remoteAddress?: (context: Context<E>) => string | undefined
}

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
export function rateLimit<E extends Env = Env>(argument: LimitArgument<Context<E>> | RateLimitOptions<E>): MiddlewareHandler<E> {
  const { remoteAddress, ...options }: RateLimitOptions<E> = optionsOf(argument)
  const gatekeeper = new Gatekeeper<Context<E>>(options)
  return async (context, next) => {
    const { raw } = context.req
    const node = nodeExchange(context.env)
    if (isLost(raw, node)) return unread()
    const address = remoteAddress === undefined ? remoteAddressOf(context.env, raw) : remoteAddress(context)
    const outcome = await gatekeeper.decide(new FetchFacts(raw, routeOf(context), address), context)
    if (!outcome.passes) return answerResponse(outcome)
    const { headers, settle } = outcome
    for (const [name, value] of headers) context.header(name, value)
    if (settle !== undefined && node !== undefined) settleAtEnd(node.incoming, node.outgoing, settle)
    if (isLost(raw, node)) {
      if (settle !== undefined) settleQuietly(settle, undefined)
      return unread()
    }
    await next()
    finish(context, outcome, node === undefined)
    return undefined
  }
}

/** Whether the client is gone. */
function isLost(request: Request, node: NodeExchange | undefined): boolean {
  return node === undefined ? isAbandoned(request) : isGone(node.incoming, node.outgoing)
}

/** Responses that Hono did not make are without the headers that were set before, and may be closed to changes. */
function finish(context: Context, { headers, settle }: Pass, isStream: boolean): void {
  // A change of protocols is no response to touch.
  if (context.res.status < 200) return
  for (const [name, value] of headers) if (!context.res.headers.has(name)) context.header(name, value)
  if (isStream && settle !== undefined) {
    const { res } = context
    const watched = settlingResponse(context.req.raw, res, settle)
    if (watched === res) return
    // The headers of the one would be merged into the other: they are the same.
    context.res = undefined
    context.res = watched
  }
}

/** The pattern of the handler, which is the last that matches. */
function routeOf({ req }: Context): string | undefined {
  const route = req.matchedRoutes.at(-1)
  return route === undefined || (route.method === 'ALL' && route.path.endsWith('*')) ? undefined : route.path
}

function nodeExchange(environment: unknown): NodeExchange | undefined {
  const found = (environment ?? {}) as Partial<NodeExchange> & { readonly server?: Partial<NodeExchange> }
  const { incoming, outgoing } = found.server ?? found
  return incoming !== undefined && outgoing !== undefined ? { incoming, outgoing } : undefined
}

import type { Context, Middleware } from 'koa'
import type { HeaderPair } from '../headers/header-pair.js'
import { putHeaders } from '../headers/header-pair.js'
import { type LimitArgument, optionsOf } from '../middleware/limit-argument.js'
import { Gatekeeper } from '../middleware/middleware.js'
import type { LimitingOptions } from '../middleware/middleware-options.js'
import { isGone, NodeFacts, routePattern, settleAtEnd } from '../middleware/node-exchange.js'

export type * from '../middleware/option-types.js'

/** Options of {@link rateLimit}. */
export type RateLimitOptions<KoaContext extends Context = Context> = LimitingOptions<KoaContext>

/**
 * Limits what comes to an app or a router of Koa.
 *
 * The route of a request, for `route()`, is known where a router runs the middleware: `router.get('/users/:id', rateLimit(...), handler)`. What
 * the functions among the options throw is thrown on.
 *
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * app.use(rateLimit(tokenBucket({ limit: 100, window: '1m' })))
 * router.post('/login', rateLimit({ policy: tokenBucket({ limit: 5, window: '1h' }), counts: 'failures' }), login)
 */
export function rateLimit<KoaContext extends Context = Context>(options: RateLimitOptions<KoaContext>): Middleware
export function rateLimit<KoaContext extends Context = Context>(argument: LimitArgument<KoaContext>): Middleware
export function rateLimit(argument: LimitArgument<Context>, second?: unknown): Middleware {
  const gatekeeper = new Gatekeeper<Context>(optionsOf(argument, 'rateLimit', second))
  return async (context, next) => {
    const { req, res } = context
    if (isGone(req, res)) return
    const outcome = await gatekeeper.decide(new KoaFacts(context), context)
    const { headers } = outcome
    if (!outcome.passes) {
      if (res.headersSent) return
      put(context, headers)
      context.status = outcome.status
      context.body = outcome.body
      return
    }
    put(context, headers)
    if (outcome.settle !== undefined) settleAtEnd(req, res, outcome.settle)
    if (isGone(req, res)) return
    try {
      await next()
    } finally {
      // Also where nothing was thrown: Koa 2 answers a stream that fails before its first byte.
      if (headers.length > 0) keepHeaders(context, headers)
    }
  }
}

function put(context: Context, headers: readonly HeaderPair[]): void {
  if (context.headerSent) return
  putHeaders(headers, { set: (name, value) => context.set(name, value), append: (name, value) => context.append(name, value) })
}

/**
 * Koa drops all headers before it answers an error, but for those that the error brings. It brings these for just as long: apps throw one
 * error object at many requests, and what is told of one is nothing for another.
 */
function keepHeaders(context: Context, headers: readonly HeaderPair[]): void {
  const { onerror, res } = context
  context.onerror = (thrown: unknown) => {
    // What Koa takes for no fault.
    if (thrown === undefined || thrown === null) return
    const error: Error & { readonly headers?: object } = asError(thrown)
    const own = Object.getOwnPropertyDescriptor(error, 'headers')
    // As they stand by now: a limit further in has set its own.
    const told = headers.map(([name]) => [name, res.getHeader(name)] as const).filter(([, value]) => value !== undefined)
    const value = { ...Object.fromEntries(told), ...error.headers }
    const brings = Reflect.defineProperty(error, 'headers', { value, configurable: true, enumerable: true, writable: true })
    try {
      onerror.call(context, error)
    } finally {
      if (brings && own !== undefined) Reflect.defineProperty(error, 'headers', own)
      else if (brings) Reflect.deleteProperty(error, 'headers')
    }
  }
}

/** As Koa puts what is no error, which could bring nothing. */
function asError(thrown: unknown): Error {
  if (thrown instanceof Error || Object.prototype.toString.call(thrown) === '[object Error]') return thrown as Error
  return new Error(`non-error thrown: ${jsonOf(thrown)}`, { cause: thrown })
}

function jsonOf(thrown: unknown): string {
  try {
    return JSON.stringify(thrown)
  } catch {
    return String(thrown)
  }
}

class KoaFacts extends NodeFacts {
  private readonly context: Context & { readonly _matchedRoute?: unknown }

  constructor(context: Context) {
    super(context.req, context.res)
    this.context = context
  }

  protected get url(): string {
    return this.context.originalUrl
  }

  /** The pattern, as @koa/router notes it. */
  get route(): string | undefined {
    return routePattern(this.context._matchedRoute)
  }
}

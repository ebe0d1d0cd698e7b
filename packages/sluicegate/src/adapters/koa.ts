import type { Context, Middleware as KoaMiddleware } from 'koa'
import { type HeaderPair, putHeaders } from '../headers/header.js'
import { type LimitArgument, notCalledBy, optionsOf } from '../middleware/limit-argument.js'
import { Middleware, type MiddlewareResult } from '../middleware/middleware.js'
import type { LimitingOptions } from '../middleware/middleware-options.js'
import { faultOf, isGone, NodeFacts, routePattern, settleAtEnd } from '../middleware/node-exchange.js'

export { holdOf } from '../holds/hold-of.js'
export type * from '../middleware/option-types.js'

/** Options of {@link rateLimit}. */
export type RateLimitOptions<KoaContext extends Context = Context> = LimitingOptions<KoaContext>

/**
 * Rate limits an app or a router of Koa.
 *
 * The route of a request, for `route()`, is known where a router runs the middleware: `router.get('/users/:id', rateLimit(...), handler)`. Errors
 * of the functions among the options are rethrown.
 *
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * app.use(rateLimit(tokenBucket({ limit: 100, window: '1m' })))
 * router.post('/login', rateLimit({ policy: tokenBucket({ limit: 5, window: '1h' }), counts: 'failures' }), login)
 */
export function rateLimit<KoaContext extends Context = Context>(options: RateLimitOptions<KoaContext>): KoaMiddleware
export function rateLimit<KoaContext extends Context = Context>(argument: LimitArgument<KoaContext>): KoaMiddleware
export function rateLimit(argument: LimitArgument<Context>, second?: unknown): KoaMiddleware {
  const middleware = new Middleware<Context>(optionsOf(argument, 'rateLimit', second))
  return async (context, next) => {
    if (context.onerror === undefined) throw notCalledBy('koa', context)
    const { req, res } = context
    if (isGone(req, res)) return
    let result: MiddlewareResult
    try {
      result = await middleware.handle(new KoaFacts(context), context)
    } catch (error) {
      // Koa never answers a request that failed with undefined or null.
      throw faultOf(error)
    }
    const { headers } = result
    if (!result.passes) {
      if (res.headersSent) return
      put(context, headers)
      context.status = result.status
      context.body = result.body
      return
    }
    put(context, headers)
    if (result.settle !== undefined) settleAtEnd(req, res, result.settle)
    if (isGone(req, res)) return
    try {
      await next()
    } finally {
      // Also where nothing was thrown: a stream may fail before its first byte, which Koa 2 answers with an error.
      if (headers.length > 0) keepHeaders(context, headers)
    }
  }
}

function put(context: Context, headers: readonly HeaderPair[]): void {
  if (context.headerSent) return
  putHeaders(headers, { set: (name, value) => context.set(name, value), append: (name, value) => context.append(name, value) })
}

/**
 * Before Koa answers an error it drops all headers but those of `error.headers`. The headers of the limit are put there only while Koa answers: apps
 * may throw one error object for many requests, and headers of one client must not reach another.
 */
function keepHeaders(context: Context, headers: readonly HeaderPair[]): void {
  const { onerror, res } = context
  context.onerror = (thrown: unknown) => {
    // Koa ignores these.
    if (thrown === undefined || thrown === null) return
    const error: Error & { readonly headers?: object } = asError(thrown)
    const own = Object.getOwnPropertyDescriptor(error, 'headers')
    // Their current values: a nested limit has set its own.
    const limitHeaders = headers.map(([name]) => [name, res.getHeader(name)] as const).filter(([, value]) => value !== undefined)
    const value = { ...Object.fromEntries(limitHeaders), ...error.headers }
    const isSet = Reflect.defineProperty(error, 'headers', { value, configurable: true, enumerable: true, writable: true })
    try {
      onerror.call(context, error)
    } finally {
      if (isSet && own !== undefined) Reflect.defineProperty(error, 'headers', own)
      else if (isSet) Reflect.deleteProperty(error, 'headers')
    }
  }
}

/** A thrown value as an error, with Koa's own message for other values. */
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

  /** The pattern, as @koa/router stores it. */
  get route(): string | undefined {
    return routePattern(this.context._matchedRoute)
  }
}

import {
  type ArgumentsHost,
  type CanActivate,
  Catch,
  type ExceptionFilter,
  type ExecutionContext,
  HttpException,
  HttpStatus,
  Inject,
} from '@nestjs/common'
import { type Awaitable, isPromise } from '../../awaitable.js'
import { PolicyError } from '../../errors.js'
import type { DenialResponse } from '../../middleware/denial-response.js'
import { type LimitArgument, namesLimit, optionsOf } from '../../middleware/limit-argument.js'
import type { LimitEnvironment } from '../../middleware/limits.js'
import { Middleware, type MiddlewareResult } from '../../middleware/middleware.js'
import { countsParts } from '../../middleware/misuse-watch.js'
import { isGone, settleAtEnd } from '../../middleware/node-exchange.js'
import { RouteMiddlewares } from '../../middleware/route-middlewares.js'
import { onceInProcess } from '../../once-in-process.js'
import { NestExchange, type NestRequest, type PlatformRequest, type PlatformResponse } from './nest-exchange.js'
import { ownLimitOf } from './rate-limit-decorator.js'

/** The limits of an app, shared by all guards of a module: Nest makes a guard for each controller that names the class. */
class RateLimits<Request = NestRequest> {
  private readonly ofAll: Middleware<Request> | undefined
  private readonly ofRoutes: RouteMiddlewares<Request>
  /** Marks requests that were limited. */
  private readonly limited = Symbol('sluicegate: rate limit')
  private readonly ofFields = new WeakMap<object, Awaitable<MiddlewareResult>>()

  /** @throws {PolicyError} on an option that is wrong. */
  constructor(argument: LimitArgument<Request>, { perRoute = false }: Pick<LimitEnvironment, 'perRoute'> = {}) {
    const all = optionsOf(argument)
    this.ofAll = namesLimit(all) ? new Middleware<Request>(all, { perRoute }) : undefined
    this.ofRoutes = new RouteMiddlewares<Request>(all)
  }

  /** Whether a guard sees the request for the first time: a global guard and one of the controller may both see it. */
  isFirst(request: { [mark: symbol]: unknown }): boolean {
    if (request[this.limited] === true) return false
    request[this.limited] = true
    return true
  }

  /**
   * Fields of one request share what the limit of all handlers decided; a field with a limit of its own is counted each time that it is called.
   *
   * @param call one call of a field, the same for all guards.
   */
  ofField(middleware: Middleware<Request>, { request, call }: FieldCall, decide: () => Awaitable<MiddlewareResult>) {
    if (middleware !== this.ofAll) countsParts(request)
    const counted = middleware === this.ofAll ? request : call
    const known = this.ofFields.get(counted)
    if (known !== undefined) return known
    const result = decide()
    this.ofFields.set(counted, isPromise(result) ? result.then(settledElsewhere) : settledElsewhere(result))
    return result
  }

  /** The middleware for a handler; undefined if it is not limited. */
  middlewareFor(handler: object, controller: object): Middleware<Request> | undefined {
    const own = ownLimitOf(handler, controller)
    if (own === undefined) return this.ofAll
    return own.limit === false ? undefined : this.ofRoutes.of(own.target, own.limit as LimitArgument<Request>)
  }
}

interface FieldCall {
  readonly request: object
  readonly call: object
}

/** The same for those that do not settle it. */
function settledElsewhere(result: MiddlewareResult): MiddlewareResult {
  return result.passes ? { ...result, settle: undefined } : result
}

/** One class for both forms of the package, so that `instanceof` agrees. */
const OnceRateLimits: typeof RateLimits = /* @__PURE__ */ onceInProcess('RateLimits', () => RateLimits)
type OnceRateLimits<Request = NestRequest> = RateLimits<Request>

export { OnceRateLimits as RateLimits }

/** The client does not receive it; nginx logs this status for clients that disconnected. */
const CLIENT_GONE = 499

/**
 * Limits requests before their handlers run; a denial throws a {@link RateLimitException}. A request of GraphQL counts once for the limit
 * of all handlers, and each call of a field for a limit of its own. Of messages, those of microservices pass, and others throw, as they have no request. If several guards of one module see a
 * request, the first one limits it.
 *
 * @example
 * app.useGlobalGuards(new RateLimitGuard(tokenBucket({ limit: 100, window: '1m' })))
 */
export class RateLimitGuard<Request = NestRequest> implements CanActivate {
  private readonly limits: RateLimits<Request>

  /**
   * @param argument the limit of all routes; without a policy only routes with a limit of their own are limited.
   * @throws {PolicyError} on an option that is wrong.
   */
  constructor(argument: LimitArgument<Request> | RateLimits<Request> = {}) {
    this.limits = argument instanceof RateLimits ? argument : new RateLimits(argument)
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    // Messages of other services, which have no client.
    if (context.getType() === 'rpc') return true
    const middleware = this.limits.middlewareFor(context.getHandler(), context.getClass())
    if (middleware === undefined) return true
    const { request, response } = exchanged(context)
    const isGraphql = context.getType<string>() === 'graphql'
    if (!isGraphql && !this.limits.isFirst(request)) return true
    const exchange = new NestExchange(request, response)
    refuseGone(exchange)
    const decide = () => middleware.handle(exchange.facts(), request as Request & PlatformRequest)
    const result = isGraphql ? this.limits.ofField(middleware, { request, call: context }, decide) : decide()
    return isPromise(result) ? result.then((later) => apply(later, exchange)) : apply(result, exchange)
  }
}

interface Exchanged {
  readonly request: PlatformRequest & { [mark: symbol]: unknown }
  readonly response: PlatformResponse
}

/** Where drivers of GraphQL put the request and the response of HTTP: Apollo on Express, on Fastify, Mercurius. */
interface GraphqlContext {
  readonly req?: Exchanged['request'] & { readonly res?: PlatformResponse }
  readonly request?: Exchanged['request']
  readonly res?: PlatformResponse
  readonly reply?: PlatformResponse
}

/** @throws {PolicyError} `OPTION_INVALID` where there is no request of HTTP: what passed without a word would not be limited. */
function exchanged(context: ExecutionContext): Exchanged {
  const kind: string = context.getType()
  if (kind === 'http') return { request: context.switchToHttp().getRequest(), response: context.switchToHttp().getResponse() }
  if (kind === 'graphql') {
    const { req, request = req, res = req?.res, reply = res } = (context.getArgByIndex(2) ?? {}) as GraphqlContext
    if (request !== undefined && reply !== undefined) return { request, response: reply }
  }
  const mend =
    kind === 'graphql'
      ? 'found no request in the context of GraphQL: say context: ({ req, res }) => ({ req, res }) in GraphQLModule.forRoot'
      : `limits requests of HTTP, and this handler is of kind '${kind}': take from createLimiter(policy) there, and say @SkipRateLimit()`
  throw new PolicyError('OPTION_INVALID', 'RateLimitGuard', kind, mend)
}

// The module's provider, for a guard that is named by its class.
Inject(RateLimits)(RateLimitGuard, undefined, 0)

function apply(result: MiddlewareResult, exchange: NestExchange): true {
  exchange.put(result.headers)
  if (!result.passes) throw new RateLimitException(result)
  if (result.settle !== undefined) settleAtEnd(exchange.request, exchange.response, result.settle)
  refuseGone(exchange)
  return true
}

function refuseGone({ request, response }: NestExchange): void {
  if (isGone(request, response)) throw new HttpException('the client is gone', CLIENT_GONE)
}

/** A denied request. Its headers are set already; `getResponse()` is the body, parsed if it is JSON. */
class RateLimitException extends HttpException {
  readonly answer: DenialResponse
  /** Of the error of a field, where GraphQL denies one: `{ code: 'TOO_MANY_REQUESTS' }`. */
  readonly extensions: { readonly code: string }

  constructor(answer: DenialResponse) {
    const content = contentOf(answer)
    super(content, answer.status)
    this.answer = answer
    const code = HttpStatus[answer.status] ?? 'TOO_MANY_REQUESTS'
    this.extensions = { code }
    const { title } = Object(content) as { readonly title?: unknown }
    this.message = typeof title === 'string' ? title : code
  }
}

/** One class for both forms of the package, so that `instanceof` agrees. */
const OnceRateLimitException: typeof RateLimitException = /* @__PURE__ */ onceInProcess('RateLimitException', () => RateLimitException)
type OnceRateLimitException = RateLimitException

export { OnceRateLimitException as RateLimitException }

function contentOf({ headers, body }: DenialResponse): string | Record<string, unknown> {
  const type = headers.findLast(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
  return (/[/+]json\b/.test(type) ? objectOf(body) : undefined) ?? body
}

/** An application's body may not match its media type. */
function objectOf(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Sends the body of the denial unchanged; Nest's own filter would make JSON of any body. */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch(exception: RateLimitException, host: ArgumentsHost): RateLimitException | undefined {
    // GraphQL writes its own body, and takes what is returned for the error of the field.
    if (host.getType<string>() !== 'http') return exception
    const { answer } = exception
    const http = host.switchToHttp()
    new NestExchange(http.getRequest(), http.getResponse()).send(answer.status, answer.body)
    return undefined
  }
}

Catch(RateLimitException)(RateLimitFilter)

import { type Awaitable, chained } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { needsResponse } from '../middleware/check-options.js'
import {
  abandonedResponse,
  addressedBy,
  denialResponse,
  FetchFacts,
  headersOf,
  isAbandoned,
  settleUnchanged,
  settlingResponse,
} from '../middleware/fetch-exchange.js'
import { type LimitArgument, notCalledBy, optionsOf } from '../middleware/limit-argument.js'
import { Middleware, type Pass } from '../middleware/middleware.js'
import type { LimitingOptions, MiddlewareOptions } from '../middleware/middleware-options.js'
import { settleQuietly } from '../middleware/settle.js'
import { asGiven } from '../options/option-checks.js'

export { holdOf } from '../holds/hold-of.js'
export type * from '../middleware/option-types.js'

const SWITCHING_PROTOCOLS = 101
const WRAP_INSTEAD = 'and permits of concurrency need to see the response: use limit.wrap(handler) instead of limit(request)'

interface AddressOption<FetchRequest extends Request> {
  /**
   * The address of the socket, from what the runtime passes beside the request. Runtimes that pass none: return it here, or use a key from a
   * header that your platform sets.
   *
   * @defaultValue that of Bun and Deno
   * @example rateLimit({ policy, remoteAddress: (request) => request.headers.get('x-nf-client-connection-ip') ?? undefined })
   */
  readonly remoteAddress?: (request: FetchRequest, environment: unknown) => string | undefined
}

/** Options of {@link rateLimit}. */
export type RateLimitOptions<FetchRequest extends Request = Request> = LimitingOptions<FetchRequest> & AddressOption<FetchRequest>

/** A handler of the Fetch standard, as servers take it. On Bun it returns undefined after upgrading the connection. */
type FetchHandler<FetchRequest extends Request, Rest extends readonly unknown[], Reply extends Response | undefined = Response> = (
  request: FetchRequest,
  ...rest: Rest
) => Awaitable<Reply>

/** What {@link rateLimit} returns. */
export interface FetchLimit<FetchRequest extends Request = Request> {
  /**
   * The response to a request that is denied; undefined if it passes: its response gets {@link headers}. Await it: with a remote limiter or an
   * asynchronous key it is a promise.
   *
   * @param environment what the runtime passes to a handler beside the request.
   * @throws {PolicyError} `OPTION_INVALID` where the end of the response has to be seen, which only {@link wrap} does; nothing is charged.
   */
  (request: FetchRequest, environment?: unknown): Awaitable<Response | undefined>
  /**
   * `RateLimit` headers for the response to a request that passed; none for a request that was not limited.
   *
   * @example
   * const denied = await limit(request)
   * return denied ?? Response.json(found, { headers: limit.headers(request) })
   */
  headers(request: FetchRequest): Headers
  /** The handler behind the limit: its responses get headers, requests that do not count are refunded after them, and permits are released. */
  wrap<Rest extends readonly unknown[], Reply extends Response | undefined = Response>(
    handler: FetchHandler<FetchRequest, Rest, Reply>,
  ): (request: FetchRequest, ...rest: Rest) => Promise<Reply | Response>
}

/**
 * Rate limits requests wherever there are `Request` and `Response`: servers of Bun and Deno, Next.js on its Node.js runtime. Edge functions have
 * no shared memory and need a remote limiter (docs/frameworks.md).
 *
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * const limit = rateLimit({ policy: tokenBucket({ limit: 100, window: '1m' }), key: apiKey() })
 * export const proxy = limit.wrap((request: NextRequest) => NextResponse.next())
 * Deno.serve(limit.wrap(handler))
 */
export function rateLimit<FetchRequest extends Request = Request>(options: RateLimitOptions<FetchRequest>): FetchLimit<FetchRequest>
export function rateLimit<FetchRequest extends Request = Request>(
  argument: LimitArgument<FetchRequest> | RateLimitOptions<FetchRequest>,
): FetchLimit<FetchRequest>
export function rateLimit<FetchRequest extends Request>(
  argument: LimitArgument<FetchRequest> | RateLimitOptions<FetchRequest>,
  second?: unknown,
): FetchLimit<FetchRequest> {
  const { remoteAddress: given, ...options }: MiddlewareOptions<FetchRequest> & AddressOption<FetchRequest> = asGiven(
    optionsOf(argument, 'rateLimit', second),
    ['remoteAddress'],
  )
  const addressed = addressedBy(given, options)
  const middleware = new Middleware<FetchRequest>(options)
  const seesTooLittle = needsResponse(options)
  const passed = new WeakMap<FetchRequest, Pass>()
  const decide = (request: FetchRequest, environment: unknown) => {
    if (request.clone === undefined) throw notCalledBy('fetch', request)
    return addressed(request, environment, [request, environment], (address) =>
      middleware.handle(new FetchFacts(request, address, environment), request),
    )
  }
  const limit = (request: FetchRequest, environment?: unknown): Awaitable<Response | undefined> => {
    if (seesTooLittle) throw new PolicyError('OPTION_INVALID', 'counts', options.counts, WRAP_INSTEAD)
    if (isAbandoned(request)) return abandonedResponse()
    return chained(decide(request, environment), (result) => {
      if (!result.passes) return denialResponse(result)
      if (result.settle === undefined) {
        passed.set(request, result)
        return undefined
      }
      // Only for a policy that was chosen for this request; others were refused above.
      settleQuietly(result.settle, undefined)
      throw new PolicyError('OPTION_INVALID', 'policy', options.policy, WRAP_INSTEAD)
    })
  }
  const wrap: FetchLimit<FetchRequest>['wrap'] =
    (handler) =>
    async (request, ...rest) => {
      if (isAbandoned(request)) return abandonedResponse()
      const result = await decide(request, rest[0])
      if (!result.passes) return denialResponse(result)
      const { settle } = result
      if (isAbandoned(request)) {
        if (settle !== undefined) settleQuietly(settle, undefined)
        return abandonedResponse()
      }
      try {
        return withHeaders(request, await handler(request, ...rest), result)
      } catch (error) {
        // Servers answer 500 to what handlers throw.
        if (settle !== undefined) settleQuietly(settle, 500)
        throw error
      }
    }
  const headers = (request: FetchRequest): Headers => headersOf(passed.get(request)?.headers ?? [])
  return Object.assign(limit, { wrap, headers })
}

function withHeaders<Reply extends Response | undefined>(request: Request, response: Reply, { headers, settle }: Pass): Reply | Response {
  // A change of protocols is no response to touch, and on Bun none at all.
  if (response === undefined || response.status < 200) {
    if (settle !== undefined) settleUnchanged(settle, response ?? { status: SWITCHING_PROTOCOLS })
    return response
  }
  if (headers.length === 0 && settle === undefined) return response
  // A copy: the headers of a response that was fetched are immutable.
  const copy = new Response(response.body, response)
  // A nested limit has set its own.
  for (const [name, value] of headers) if (!copy.headers.has(name)) copy.headers.set(name, value)
  return settle === undefined ? copy : settlingResponse(request, copy, settle)
}

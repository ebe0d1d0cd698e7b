import { type Awaitable, chained } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { needsResponse } from '../middleware/check-options.js'
import { checkAddressNeed, explained } from '../middleware/fetch-address.js'
import {
  addressTeller,
  answerResponse,
  FetchFacts,
  isAbandoned,
  remoteAddressOf,
  settleUntouched,
  settlingResponse,
  unread,
} from '../middleware/fetch-exchange.js'
import { type LimitArgument, optionsOf } from '../middleware/limit-argument.js'
import type { Pass } from '../middleware/middleware.js'
import { Gatekeeper } from '../middleware/middleware.js'
import type { GatekeeperOptions, LimitingOptions } from '../middleware/middleware-options.js'
import { settleQuietly } from '../middleware/settle.js'

export type * from '../middleware/option-types.js'

const SWITCHING_PROTOCOLS = 101
const WRAP_INSTEAD = 'and places of concurrency need to see the response: put limit.wrap(handler) in the place of limit(request)'

interface AddressOption<FetchRequest extends Request> {
  /**
   * The address of the socket, told by what the runtime gives beside the request; default that of Bun and Deno. Other runtimes tell none: name
   * it here, or take a key from the header that your platform sets.
   */
  readonly remoteAddress?: (request: FetchRequest, environment: unknown) => string | undefined
}

/** Options of {@link rateLimit}. */
export type RateLimitOptions<FetchRequest extends Request = Request> = LimitingOptions<FetchRequest> & AddressOption<FetchRequest>

/** A handler of the Fetch standard, as servers take it; on Bun without a response where it has upgraded the connection. */
export type FetchHandler<FetchRequest extends Request, Rest extends readonly unknown[], Reply extends Response | undefined = Response> = (
  request: FetchRequest,
  ...rest: Rest
) => Awaitable<Reply>

/** What {@link rateLimit} makes. */
export interface FetchLimit<FetchRequest extends Request = Request> {
  /**
   * The response to a request that does not pass; nothing, if it passes: of it no headers are told. Wait for it: a limiter that asks elsewhere, or a
   * key that comes later, makes it a promise, which is never nothing.
   *
   * @param environment what the runtime gives to a handler beside the request.
   * @throws {PolicyError} `OPTION_INVALID` where something is to come back after the response, which only {@link wrap} sees; nothing is taken.
   */
  (request: FetchRequest, environment?: unknown): Awaitable<Response | undefined>
  /** The handler behind the limit: its responses get headers, and what does not count comes back after them. */
  wrap<Rest extends readonly unknown[], Reply extends Response | undefined = Response>(
    handler: FetchHandler<FetchRequest, Rest, Reply>,
  ): (request: FetchRequest, ...rest: Rest) => Promise<Reply | Response>
}

/**
 * Limits requests wherever there are `Request` and `Response`: servers of Bun and Deno, Next.js on its Node.js runtime. Edge
 * functions have no shared memory: give a limiter that asks elsewhere (docs/frameworks.md).
 *
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * const limit = rateLimit({ policy: tokenBucket({ limit: 100, window: '1m' }), key: apiKey() })
 * export const middleware = async (request: NextRequest) => (await limit(request)) ?? NextResponse.next()
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
  const { remoteAddress: given, ...options }: GatekeeperOptions<FetchRequest> & AddressOption<FetchRequest> = optionsOf(
    argument,
    'rateLimit',
    second,
  )
  const remoteAddress = addressTeller(given)
  checkAddressNeed(options, remoteAddress !== undefined)
  const gatekeeper = new Gatekeeper<FetchRequest>(options)
  const seesTooLittle = needsResponse(options)
  const decide = (request: FetchRequest, environment: unknown) => {
    const address = remoteAddress === undefined ? remoteAddressOf(environment, request) : remoteAddress(request, environment)
    return explained(address, () => gatekeeper.decide(new FetchFacts(request, address, environment), request))
  }
  const limit = (request: FetchRequest, environment?: unknown): Awaitable<Response | undefined> => {
    if (seesTooLittle) throw new PolicyError('OPTION_INVALID', 'counts', options.counts, WRAP_INSTEAD)
    if (isAbandoned(request)) return unread()
    return chained(decide(request, environment), (outcome) => {
      if (!outcome.passes) return answerResponse(outcome)
      if (outcome.settle === undefined) return undefined
      // Of a policy that was chosen for this request.
      settleQuietly(outcome.settle, undefined)
      throw new PolicyError('OPTION_INVALID', 'policy', options.policy, WRAP_INSTEAD)
    })
  }
  const wrap: FetchLimit<FetchRequest>['wrap'] =
    (handler) =>
    async (request, ...rest) => {
      if (isAbandoned(request)) return unread()
      const outcome = await decide(request, rest[0])
      if (!outcome.passes) return answerResponse(outcome)
      const { settle } = outcome
      if (isAbandoned(request)) {
        if (settle !== undefined) settleQuietly(settle, undefined)
        return unread()
      }
      try {
        return told(request, await handler(request, ...rest), outcome)
      } catch (error) {
        // Servers answer 500 to what handlers throw.
        if (settle !== undefined) settleQuietly(settle, 500)
        throw error
      }
    }
  return Object.assign(limit, { wrap })
}

function told<Reply extends Response | undefined>(request: Request, response: Reply, { headers, settle }: Pass): Reply | Response {
  // A change of protocols is no response to touch, and on Bun none at all.
  if (response === undefined || response.status < 200) {
    if (settle !== undefined) settleUntouched(settle, response ?? { status: SWITCHING_PROTOCOLS })
    return response
  }
  if (headers.length === 0 && settle === undefined) return response
  // A copy: those of other servers are closed to changes.
  const copy = new Response(response.body, response)
  // A limit further in has told its own.
  for (const [name, value] of headers) if (!copy.headers.has(name)) copy.headers.set(name, value)
  return settle === undefined ? copy : settlingResponse(request, copy, settle)
}

import { type Awaitable, ignore } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { type HeaderPair, putHeaders } from '../headers/header.js'
import type { RequestFacts } from '../keys/key-reader.js'
import type { DenialResponse } from './denial-response.js'
import { socketAddress } from './key-source.js'
import type { MiddlewareOptions } from './middleware-options.js'
import { type Settle, settleQuietly } from './settle.js'

/** Sent to clients that have disconnected, as nginx logs them. */
const CLIENT_CLOSED_REQUEST = 499

/** The facts of a request of the Fetch standard. */
export class FetchFacts implements RequestFacts {
  readonly method: string
  readonly remoteAddress: string | undefined
  private readonly request: Request
  private readonly environment: unknown

  /** @param environment what the runtime passes beside the request. */
  constructor(request: Request, remoteAddress: string | undefined, environment?: unknown) {
    this.method = request.method
    this.environment = environment
    this.request = request
    this.remoteAddress = remoteAddress
  }

  /** The standard has no routes. */
  get route(): string | undefined {
    return undefined
  }

  /** Whether it came over a socket; if that is not known, it is taken for a request that a program made. */
  get isReceived(): boolean {
    const { incoming, ...others } = (this.environment ?? {}) as FetchEnvironment
    if (incoming !== undefined && incoming !== null) return (incoming.socket?.bytesRead ?? 0) > 0
    return Object.keys(others).length > 0 && remoteAddressOf(this.environment, this.request) !== undefined
  }

  /** For a warning about a request without a key. */
  get addressCure(): string | undefined {
    return this.remoteAddress === undefined ? CURE : undefined
  }

  get path(): string {
    return new URL(this.request.url).pathname
  }

  header(name: string): string | undefined {
    return this.request.headers.get(name) ?? undefined
  }

  whenGone(callback: () => void): void {
    const signal = signalOf(this.request)
    if (signal?.aborted) callback()
    else signal?.addEventListener('abort', callback, { once: true })
  }
}

/** Deno aborts the signal also after success, and warns when it is read; its server cancels the body for a client that has disconnected. */
function signalOf(request: Request): AbortSignal | undefined {
  return 'Deno' in globalThis ? undefined : request.signal
}

/** Whether the client has disconnected: such a request is neither counted nor served. */
export function isAbandoned(request: Request): boolean {
  return signalOf(request)?.aborted === true
}

/** The response for a client that has disconnected. */
export function abandonedResponse(): Response {
  return new Response(null, { status: CLIENT_CLOSED_REQUEST })
}

/** The response of a denial. */
export function denialResponse({ status, headers, body }: DenialResponse): Response {
  return new Response(body, { status, headers: headersOf(headers) })
}

export function headersOf(pairs: readonly HeaderPair[]): Headers {
  const headers = new Headers()
  putHeaders(pairs, { set: (name, value) => headers.set(name, value), append: (name, value) => headers.append(name, value) })
  return headers
}

/** Settles by a response that is not changed. What a server does with one without a status, such as `Response.error()`, is not known: it counts as never ended. */
export function settleUnchanged(settle: Settle, { status }: Pick<Response, 'status'>): void {
  settleQuietly(settle, status === 0 ? undefined : status)
}

/** The same response, which settles when its body has been sent to the end, or will not be. */
export function settlingResponse(request: Request, response: Response, settle: Settle): Response {
  const { body, status } = response
  // The body of a response to HEAD is not read.
  if (body === null || request.method === 'HEAD') {
    settleQuietly(settle, status)
    return response
  }
  if (isAbandoned(request)) {
    settleQuietly(settle, undefined)
    return response
  }
  // Not every server cancels a body that it cannot send.
  signalOf(request)?.addEventListener('abort', () => settleQuietly(settle, undefined), { once: true })
  const reader = body.getReader()
  const watched = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) {
            controller.enqueue(value)
            return
          }
          controller.close()
          settleQuietly(settle, status)
        } catch (error) {
          controller.error(error)
          settleQuietly(settle, undefined)
        }
      },
      async cancel(reason) {
        settleQuietly(settle, undefined)
        await reader.cancel(reason)
      },
    },
    // Nothing is read ahead of the reader.
    { highWaterMark: 0 },
  )
  return new Response(watched, response)
}

// The address of the client of a Fetch request, which the standard does not have: runtimes pass it beside the request, or not at all.

/** The second argument of a runtime's handler, as far as it has an address. */
interface FetchEnvironment {
  /** Node.js, by @hono/node-server. */
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string; readonly bytesRead?: number } } | null
  /** Deno. */
  readonly remoteAddr?: { readonly hostname?: string } | null
  /** Bun. */
  requestIP?(request: Request): { readonly address: string } | null
  /** One of these within another object. */
  readonly server?: FetchEnvironment
}

/** The address of the socket on Node.js, Deno and Bun; undefined on other runtimes. */
function remoteAddressOf(environment: unknown, request: Request): string | undefined {
  if (typeof environment !== 'object' || environment === null) return undefined
  const { server } = environment as FetchEnvironment
  const from = (server ?? environment) as FetchEnvironment
  const { incoming, remoteAddr } = from
  const ofBun = (): unknown => (typeof from.requestIP === 'function' ? from.requestIP(request)?.address : undefined)
  const address: unknown = incoming?.socket?.remoteAddress ?? remoteAddr?.hostname ?? ofBun()
  return typeof address === 'string' ? address : undefined
}

/** Handles a request with the address of its client. @param given what the option `remoteAddress` is called with. */
type Addressed<Given extends readonly unknown[]> = <Result>(
  request: Request,
  environment: unknown,
  given: Given,
  handle: (address: string | undefined) => Awaitable<Result>,
) => Awaitable<Result>

/**
 * Finds the address of a client: by the option `remoteAddress`, or as the runtime passes it.
 *
 * @throws {PolicyError} `OPTION_INVALID` when the option is no function, `KEY_MISSING` when no request has an address here
 */
export function addressedBy<Subject, Given extends readonly unknown[]>(
  option: ((...given: Given) => string | undefined) | undefined,
  options: MiddlewareOptions<Subject>,
): Addressed<Given> {
  const own = checkedRemoteAddress(option)
  checkAddressNeed(options, own !== undefined)
  return (request, environment, given, handle) => handle(own === undefined ? remoteAddressOf(environment, request) : own(...given))
}

/**
 * The option `remoteAddress`, checked; the function it becomes checks what the option returns.
 *
 * @throws {PolicyError} `OPTION_INVALID`, as does the function for other values than a string, null or undefined
 */
function checkedRemoteAddress<Given extends readonly unknown[]>(
  option: ((...given: Given) => string | undefined) | undefined,
): typeof option {
  if (option === undefined) return undefined
  if (typeof option !== 'function') throw new PolicyError('OPTION_INVALID', 'remoteAddress', option, 'must be a function of the request')
  return (...given) => {
    const address: unknown = option(...given)
    if (typeof address === 'string') return address
    if (address === undefined || address === null) return undefined
    ignore(address)
    throw new PolicyError(
      'OPTION_INVALID',
      'remoteAddress',
      address,
      'must return the address as a string, or undefined, and not a promise',
    )
  }
}

const CURE =
  "say remoteAddress, or a key that needs none: key: apiKey(), or the header of your platform, key: header('cf-connecting-ip') of sluicegate/keys"

/** Runtimes that pass no address to handlers. */
const WITHOUT_ADDRESS: readonly (readonly [name: string, isIt: () => boolean])[] = [
  [
    'Cloudflare Workers',
    () => (globalThis as { readonly navigator?: { readonly userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers',
  ],
  ['the edge runtime of Vercel', () => 'EdgeRuntime' in globalThis],
  ['Fastly Compute', () => 'fastly' in globalThis],
]

/**
 * Refuses keys that no request has in this runtime, when middleware is made.
 *
 * @param isGiven whether the option `remoteAddress` is given.
 * @throws {PolicyError} `KEY_MISSING`
 */
function checkAddressNeed<Request>(options: MiddlewareOptions<Request>, isGiven: boolean): void {
  const { limits = [options], key } = options
  if (isGiven || !limits.some((limit) => isSocketKey(limit.key ?? key ?? socketAddress))) return
  const runtime = WITHOUT_ADDRESS.find(([, isIt]) => isIt())?.[0]
  if (runtime !== undefined) {
    throw new PolicyError(
      'KEY_MISSING',
      'key',
      options.key,
      `would be the client's address, which ${runtime} does not pass to handlers: ${CURE}`,
    )
  }
}

/** Whether a key is the socket's address alone: readers of a trusted header, or with `otherwise`, may find a key without it. */
function isSocketKey(source: unknown): boolean {
  const { header = '', readers } = source as { readonly header?: string; readonly readers?: unknown }
  return typeof source === 'object' && source !== null && 'header' in source && readers === undefined && header === ''
}

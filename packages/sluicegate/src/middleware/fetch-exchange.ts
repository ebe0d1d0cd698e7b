import { ignore } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { putHeaders } from '../headers/header-pair.js'
import type { RequestFacts } from '../keys/key-reader.js'
import type { Answer } from './middleware.js'
import { type Settle, settleQuietly } from './settle.js'

/** The facts of a request of the Fetch standard. */
export class FetchFacts implements RequestFacts {
  readonly method: string
  readonly remoteAddress: string | undefined
  private readonly request: Request
  private readonly environment: unknown

  /** @param environment what the runtime gave beside the request. */
  constructor(request: Request, remoteAddress: string | undefined, environment?: unknown) {
    this.method = request.method
    this.environment = environment
    this.request = request
    this.remoteAddress = remoteAddress
  }

  /** The standard knows no routes. */
  get route(): string | undefined {
    return undefined
  }

  /** Whether it came over a socket; where that cannot be told it is taken to be one that a program made. */
  get isReceived(): boolean {
    const { incoming, ...others } = (this.environment ?? {}) as Environment
    if (incoming !== undefined && incoming !== null) return (incoming.socket?.bytesRead ?? 0) > 0
    return Object.keys(others).length > 0 && remoteAddressOf(this.environment, this.request) !== undefined
  }

  get path(): string {
    return new URL(this.request.url).pathname
  }

  header(name: string): string | undefined {
    return this.request.headers.get(name) ?? undefined
  }

  whenGone(tell: () => void): void {
    const signal = signalOf(this.request)
    if (signal?.aborted) tell()
    else signal?.addEventListener('abort', tell, { once: true })
  }
}

/** What runtimes give to a handler beside its request, as far as it leads to an address. */
interface Environment {
  /** Node, by @hono/node-server. */
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string; readonly bytesRead?: number } } | null
  /** Deno. */
  readonly remoteAddr?: { readonly hostname?: string } | null
  /** Bun. */
  requestIP?(request: Request): { readonly address: string } | null
  /** Either of these. */
  readonly server?: Environment
}

/** The address of the socket, from what the runtime gave to the handler: Node's, Deno's and Bun's. Others tell none. */
export function remoteAddressOf(environment: unknown, request: Request): string | undefined {
  if (typeof environment !== 'object' || environment === null) return undefined
  const { server } = environment as Environment
  const from = (server ?? environment) as Environment
  const { incoming, remoteAddr } = from
  const ofBun = (): unknown => (typeof from.requestIP === 'function' ? from.requestIP(request)?.address : undefined)
  const address: unknown = incoming?.socket?.remoteAddress ?? remoteAddr?.hostname ?? ofBun()
  return typeof address === 'string' ? address : undefined
}

/**
 * The option that names the address of the socket.
 *
 * @throws {PolicyError} `OPTION_INVALID`, as does what it makes of the option where that tells something else
 */
export function addressTeller<Given extends readonly unknown[]>(
  option: ((...given: Given) => string | undefined) | undefined,
): typeof option {
  if (option === undefined) return undefined
  if (typeof option !== 'function') throw new PolicyError('OPTION_INVALID', 'remoteAddress', option, 'must be a function of the request')
  return (...given) => {
    const address: unknown = option(...given)
    if (typeof address === 'string') return address
    if (address === undefined || address === null) return undefined
    ignore(address)
    throw new PolicyError('OPTION_INVALID', 'remoteAddress', address, 'must give the address as text, at once, or undefined')
  }
}

/** Deno's signal is also aborted when all went well, and it warns whoever looks; its server cancels the body of a client that is gone. */
function signalOf(request: Request): AbortSignal | undefined {
  return 'Deno' in globalThis ? undefined : request.signal
}

/** Whether its client is gone: such a request is neither counted nor served. */
export function isAbandoned(request: Request): boolean {
  return signalOf(request)?.aborted === true
}

/** What nobody will read. */
export function unread(): Response {
  return new Response(null, { status: 499 })
}

/** The response that an answer is. */
export function answerResponse({ status, headers: pairs, body }: Answer): Response {
  const headers = new Headers()
  putHeaders(pairs, { set: (name, value) => headers.set(name, value), append: (name, value) => headers.append(name, value) })
  return new Response(body, { status, headers })
}

/** What its server does with a response without a status, such as `Response.error()`, is not known: as if it never ended. */
export function settleUntouched(settle: Settle, { status }: Pick<Response, 'status'>): void {
  settleQuietly(settle, status === 0 ? undefined : status)
}

/** The same response, which tells when its body has been sent to the end, or will not be. */
export function settlingResponse(request: Request, response: Response, settle: Settle): Response {
  const { body, status } = response
  // Nobody reads the body of an answer to HEAD.
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
    // Nothing is read before it is asked for.
    { highWaterMark: 0 },
  )
  return new Response(watched, response)
}

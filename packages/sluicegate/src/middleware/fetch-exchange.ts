import { putHeaders } from '../headers/header-pair.js'
import type { RequestFacts } from '../keys/key-reader.js'
import type { DenialResponse } from './denial-response.js'
import { type FetchEnvironment, remoteAddressOf } from './fetch-address.js'
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
export function denialResponse({ status, headers: pairs, body }: DenialResponse): Response {
  const headers = new Headers()
  putHeaders(pairs, { set: (name, value) => headers.set(name, value), append: (name, value) => headers.append(name, value) })
  return new Response(body, { status, headers })
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

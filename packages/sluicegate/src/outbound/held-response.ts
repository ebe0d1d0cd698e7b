import type { HeaderSource } from '../headers/header-source.js'
import { type ByteStream, type SetTimer, WatchedBody } from './watched-body.js'

/** What is looked at of a response, whichever fetch it is from. */
export interface ResponseLike {
  readonly status: number
  readonly headers?: HeaderSource
  readonly url?: string
  readonly redirected?: boolean
  readonly body?: unknown
}

/**
 * The same response, of which is known when its body is through: then `onEnd` is called, once. Also when nobody reads from it for `stallMs`; it
 * stays readable. One without a body is at its end.
 */
export function heldResponse<Answer extends ResponseLike>(response: Answer, stallMs: number, after: SetTimer, onEnd: () => void): Answer {
  const { body } = response
  const Kind = response.constructor as typeof Response
  // Of a stand-in for a response nobody knows how to make another.
  const isKnown = isStream(body) && Kind.name === 'Response'
  const held = isKnown ? remade(response as unknown as Response, Kind, new WatchedBody(body, stallMs, after, onEnd)) : undefined
  if (held !== undefined) return held as unknown as Answer
  onEnd()
  return response
}

/** Drops a body that nobody will read: its connection is free again. */
export function drop(holder: { readonly body?: unknown } | undefined): void {
  const body = holder?.body
  if (isStream(body) && !body.locked) body.cancel().catch(() => undefined)
}

function isStream(body: unknown): body is ByteStream {
  return typeof body === 'object' && body !== null && typeof (body as ByteStream).getReader === 'function'
}

/** Undefined when it cannot be: then nobody has touched the original. */
function remade(original: Response, Kind: typeof Response, body: WatchedBody): Response | undefined {
  const { status, statusText, headers } = original
  // Servers send what nobody can construct: a status of 999, a reason in other letters than Latin.
  for (const init of [{ status, statusText, headers }, { headers }]) {
    try {
      const stream = body.open()
      const response = new Kind(stream, init)
      body.begin(stream)
      return likened(response, original)
    } catch {}
  }
  return undefined
}

/** What only fetch itself can set, or set to everything that it is told. */
function likened(response: Response, original: Response): Response {
  const clone = response.clone.bind(response)
  return Object.defineProperties(response, {
    status: { value: original.status },
    statusText: { value: original.statusText },
    ok: { value: original.ok },
    url: { value: original.url },
    redirected: { value: original.redirected },
    type: { value: original.type },
    clone: { value: () => likened(clone(), original) },
  })
}

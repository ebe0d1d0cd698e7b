import { PolicyError } from '../errors.js'
import { type HeaderSource, headerOf } from '../headers/header-source.js'
import type { DispatchOptions } from './dispatch-handler.js'
import type { OutboundOptions } from './outbound-options.js'
import type { SentRequest } from './outbound-request.js'
import { isRepeatable } from './sent-body.js'

/** Looks at what undici is asked to dispatch. @throws {TypeError} when it goes nowhere. @throws {PolicyError} `CLIENT_INVALID` */
export function dispatchRequest(
  { origin, path, method, headers, body }: DispatchOptions,
  signal: AbortSignal,
  priorityOf: OutboundOptions['priority'],
): SentRequest {
  const source = headerSource(headers)
  const request: SentRequest = {
    url: urlOf(origin, path, method),
    method: method.toUpperCase(),
    header: (name) => headerOf(source, name),
    isRepeatable: isRepeatable(body),
    signal,
    priority: 0,
  }
  return priorityOf === undefined ? request : { ...request, priority: priorityOf(request) }
}

function urlOf(origin: string | URL | undefined, path = '/', method = 'GET'): URL {
  // Who is to be reached through a proxy, be it by its host and port alone.
  if (method === 'CONNECT' && !path.startsWith('/')) return new URL(`https://${path}`)
  // A client of one host knows it, and does not tell.
  if (origin === undefined) {
    throw new PolicyError(
      'CLIENT_INVALID',
      'origin',
      origin,
      'must be given with each request of a Client or Pool of undici 7; an Agent is told it',
    )
  }
  // Put together as undici does it: a path that begins with two slashes is no host.
  return path.startsWith('/') ? new URL(new URL(origin).origin + path) : new URL(path, origin)
}

/** Headers as undici takes them: an object, pairs, or names and values in turn. */
function headerSource(headers: unknown): HeaderSource {
  if (headers === undefined || headers === null) return {}
  const pairs: [string, string][] = []
  if (Array.isArray(headers) && typeof headers[0] === 'string') {
    for (let i = 0; i + 1 < headers.length; i += 2) pairs.push([String(headers[i]).toLowerCase(), String(headers[i + 1])])
  } else {
    const entries = Symbol.iterator in Object(headers) ? (headers as Iterable<[string, string]>) : Object.entries(headers as object)
    for (const [name, value] of entries) pairs.push([String(name).toLowerCase(), String(value)])
  }
  return new Map(pairs)
}

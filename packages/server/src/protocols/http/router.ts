import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { PolicyError, StoreError, TooManyHeldError } from '../../engine/engine.js'
import { discardRest } from './body.js'
import { isGivenTwice } from './given-twice.js'
import type { Route } from './handler.js'
import { Problem } from './problem.js'
import { splitTarget } from './query.js'
import { replyProblem } from './reply.js'

/** A name, an IPv4 address or an IPv6 address in brackets, and a port (RFC 3986, section 3.2); it may be empty. */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i

/** Passes each request to the handler of its path and method; an error of a handler becomes a problem response. */
export function router(routes: ReadonlyMap<string, Route>): RequestListener {
  return (request, response) => {
    try {
      const done = dispatch(routes, request, response)
      done?.catch((error: unknown) => fail(response, error))
    } catch (error) {
      fail(response, error)
    }
  }
}

function dispatch(routes: ReadonlyMap<string, Route>, request: IncomingMessage, response: ServerResponse): void | Promise<void> {
  checkHost(request)
  const { path, query } = splitTarget(request.url ?? '/')
  const route = routes.get(path)
  if (route === undefined)
    throw new Problem(404, 'PATH_UNKNOWN', `this path does not exist; the paths are ${[...routes.keys()].join(', ')}`)
  const method = request.method ?? ''
  const handler = Object.hasOwn(route, method) ? route[method] : undefined
  if (handler === undefined) {
    const allowed = Object.keys(route).join(', ')
    throw new Problem(405, 'METHOD', `this path supports ${allowed}`, [['Allow', allowed]])
  }
  if (method !== 'POST' && announcesBody(request)) response.shouldKeepAlive = false
  return handler(request, response, query)
}

/**
 * Two proxies in a chain could use different ones of several Host fields.
 *
 * Source: RFC 9112, section 3.2.
 */
function checkHost({ rawHeaders, headers: { host }, httpVersion }: IncomingMessage): void {
  if (host === undefined) {
    if (httpVersion === '1.1') throw new Problem(400, 'REQUEST_INVALID', 'the Host header is missing')
    return
  }
  if (isGivenTwice(rawHeaders, 'host')) throw new Problem(400, 'REQUEST_INVALID', 'Host is given more than once: give it once')
  if (!HOST.test(host)) throw new Problem(400, 'REQUEST_INVALID', 'Host must be a name or an address, and a port where it needs one')
}

/**
 * A proxy may send a request without its client's body but with its Content-Length: its next request would be read as that
 * body. Closing the connection after the answer keeps the two apart.
 */
function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

function fail(response: ServerResponse, error: unknown): void {
  // The client has disconnected, or half an answer is sent: no response is possible any more.
  if (response.headersSent || response.destroyed) return void response.destroy()
  if (!response.req.complete) discardRest(response.req)
  replyProblem(response, asProblem(error))
}

function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (error instanceof PolicyError) return new Problem(400, error.code === 'COST_INVALID' ? 'COST_INVALID' : 'KEY_INVALID', error.message)
  if (error instanceof TooManyHeldError)
    return new Problem(503, 'TOO_MANY_HELD', `${error.message}: nothing was taken`, [['Retry-After', '1']])
  // An outage is not a denial: 503, and the caller decides whether to let the request pass.
  if (error instanceof StoreError) return new Problem(503, 'OUTAGE', `no decision could be made: ${error.code}`, [['Retry-After', '1']])
  console.error('sluicegate: a request failed:', error)
  return new Problem(500, 'INTERNAL', 'the service failed to answer; its log says more')
}

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { PolicyError, StoreError, TooManyHeldError } from '../../engine/engine.js'
import type { Guard } from '../guard.js'
import { discardRest } from './body.js'
import type { HeadHandler, Route, WholeResponse } from './handler.js'
import { checkHost } from './host.js'
import { Problem } from './problem.js'
import { splitTarget } from './query.js'
import { replyProblem } from './reply.js'

/** Passes each request to the handler of its path and method; an error of a handler becomes a problem response. */
export function router(routes: ReadonlyMap<string, Route>, guard: Guard): RequestListener {
  return (request, response) => {
    try {
      const done = dispatch(routes, request, response)
      done?.catch((error: unknown) => fail(response, error, guard))
    } catch (error) {
      fail(response, error, guard)
    }
  }
}

/** Answers a request with known headers if there is a handler for its path that needs no more; calls `begin` first. Returns whether there is one. */
export type AnswerKnown = (target: string, response: WholeResponse, begin: () => void) => boolean

/** Passes requests with known headers to the handlers of their paths, as {@link router} does. */
export function knownRouter(handlers: ReadonlyMap<string, HeadHandler>, guard: Guard): AnswerKnown {
  return (target, response, begin) => {
    const { path, query } = splitTarget(target)
    const handler = handlers.get(path)
    if (handler === undefined) return false
    begin()
    try {
      const done = handler(response.req, response, query)
      done?.catch((error: unknown) => failKnown(response, error, guard))
    } catch (error) {
      failKnown(response, error, guard)
    }
    return true
  }
}

function failKnown(response: WholeResponse, error: unknown, guard: Guard): void {
  try {
    if (response.headersSent) throw error
    replyProblem(response, asProblem(error, guard))
  } catch (fault) {
    guard.caught(fault, response)
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
 * A proxy may send a request without its client's body but with its Content-Length: its next request would be read as that
 * body. Closing the connection after the answer keeps the two apart.
 */
function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** Never throws: a promise that fails has no other handler. */
function fail(response: ServerResponse, error: unknown, guard: Guard): void {
  try {
    // The client has disconnected, or half an answer is sent: no response is possible any more.
    if (response.headersSent || response.destroyed) return void response.destroy()
    if (!response.req.complete) discardRest(response.req, guard)
    replyProblem(response, asProblem(error, guard))
  } catch (fault) {
    guard.caught(fault, response)
  }
}

function asProblem(error: unknown, guard: Guard): Problem {
  if (error instanceof Problem) return error
  if (error instanceof PolicyError) return new Problem(400, error.code === 'COST_INVALID' ? 'COST_INVALID' : 'KEY_INVALID', error.message)
  if (error instanceof TooManyHeldError)
    return new Problem(503, 'TOO_MANY_HELD', `${error.message}: nothing was taken`, [['Retry-After', '1']])
  // An outage is not a denial: 503, and the caller decides whether to let the request pass.
  if (error instanceof StoreError) return new Problem(503, 'OUTAGE', `no decision could be made: ${error.code}`, [['Retry-After', '1']])
  guard.caught(error)
  return new Problem(500, 'INTERNAL', 'the service failed to answer; its log says more')
}

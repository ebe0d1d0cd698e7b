import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { PolicyError, StoreError, TooManyHeldError } from '../../engine/engine.js'
import type { Guard } from '../guard.js'
import { discardRest } from './body.js'
import type { Handler, Routes, WholeHandler, WholeRequest, WholeResponse } from './handler.js'
import { checkHost } from './host.js'
import { Problem, type ProblemCode } from './problem.js'
import { splitTarget } from './query.js'
import { replyProblem } from './reply.js'

/** Passes requests to the handlers of their paths and methods, on both ways in; an error of a handler becomes a problem response. */
export interface Router {
  /** Answers a request of Node's parser. */
  readonly handle: RequestListener
  /** What answers a whole request; undefined where there is nothing, or nothing that is content with one. Then the parser reads the request. */
  wholeCall(method: string, target: string): WholeCall | undefined
  handleWhole(call: WholeCall, request: WholeRequest, response: WholeResponse): void
}

/** A handler, and the query string that it gets. */
interface WholeCall {
  readonly handler: WholeHandler
  readonly query: string
}

/** Both ways in have these routes. */
export function router(routes: Routes, guard: Guard): Router {
  return {
    handle(request, response) {
      try {
        const done = dispatch(routes, request, response)
        done?.catch((error: unknown) => fail(response, error, guard))
      } catch (error) {
        fail(response, error, guard)
      }
    },
    wholeCall(method, target) {
      const { path, query } = splitTarget(target)
      const endpoint = routes.get(path)?.[method]
      return endpoint !== undefined && 'whole' in endpoint ? { handler: endpoint.whole, query } : undefined
    },
    handleWhole({ handler, query }, request, response) {
      try {
        const done = handler(request, response, query)
        done?.catch((error: unknown) => failWhole(response, error, guard))
      } catch (error) {
        failWhole(response, error, guard)
      }
    },
  }
}

/** Never throws: a promise that fails has no other handler. */
function failWhole(response: WholeResponse, error: unknown, guard: Guard): void {
  try {
    if (response.headersSent) throw error
    replyProblem(response, asProblem(error, guard))
  } catch (fault) {
    guard.caught(fault, response)
  }
}

function dispatch(routes: Routes, request: IncomingMessage, response: ServerResponse): void | Promise<void> {
  checkHost(request)
  const { path, query } = splitTarget(request.url ?? '/')
  const route = routes.get(path)
  if (route === undefined)
    throw new Problem(404, 'PATH_UNKNOWN', `this path does not exist; the paths are ${[...routes.keys()].join(', ')}`)
  const method = request.method ?? ''
  const endpoint = Object.hasOwn(route, method) ? route[method] : undefined
  if (endpoint === undefined) {
    const allowed = Object.keys(route).join(', ')
    throw new Problem(405, 'METHOD', `this path supports ${allowed}`, [['Allow', allowed]])
  }
  if (method !== 'POST' && announcesBody(request)) response.shouldKeepAlive = false
  const handler: Handler = 'whole' in endpoint ? endpoint.whole : endpoint
  return handler(request, response, query)
}

/**
 * A proxy may send a request without its client's body but with its Content-Length: its next request would be read as that
 * body. Closing the connection after the answer keeps the two apart.
 */
function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** Never throws, likewise. */
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

const CODES: Partial<Record<PolicyError['code'], ProblemCode>> = {
  POLICY_INVALID: 'POLICY_UNSUITABLE',
  COST_INVALID: 'COST_INVALID',
  OPTION_INVALID: 'PARAMETER_INVALID',
}

function asProblem(error: unknown, guard: Guard): Problem {
  if (error instanceof Problem) return error
  if (error instanceof PolicyError) return new Problem(400, CODES[error.code] ?? 'KEY_INVALID', error.message)
  if (error instanceof TooManyHeldError)
    return new Problem(503, 'TOO_MANY_HELD', `${error.message}: nothing was taken`, [['Retry-After', '1']])
  // An outage is not a denial: 503, and the caller decides whether to let the request pass.
  if (error instanceof StoreError) return new Problem(503, 'OUTAGE', `no decision could be made: ${error.code}`, [['Retry-After', '1']])
  guard.caught(error)
  return new Problem(500, 'INTERNAL', 'the service failed to answer; its log says more')
}

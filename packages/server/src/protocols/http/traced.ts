import type { CallTracing } from '../call-tracing.js'
import type { HeadHandler, RequestHead, Route, WholeResponse } from './handler.js'

/** No call for a decision. */
const DOCUMENT = '/openapi.json'

/** `routes` whose requests are followed. */
export function traced(
  routes: readonly [path: string, route: Route][],
  tracing: CallTracing | undefined,
): readonly [path: string, route: Route][] {
  if (tracing === undefined) return routes
  return routes.map(([path, route]) => {
    if (path === DOCUMENT) return [path, route]
    const methods = Object.entries(route).map(([method, handler]) => [method, tracedHandler(method, path, handler, tracing)] as const)
    return [path, Object.fromEntries(methods)]
  })
}

/** `handlers` whose requests are followed. */
export function tracedHeads(
  handlers: readonly [path: string, handler: HeadHandler][],
  tracing: CallTracing | undefined,
): readonly [path: string, handler: HeadHandler][] {
  if (tracing === undefined) return handlers
  return handlers.map(([path, handler]) => [path, tracedHandler('GET', path, handler, tracing)])
}

type AnyHandler<Request, Response> = (request: Request, response: Response, query: string) => void | Promise<void>

function tracedHandler<Request extends RequestHead, Response extends Pick<WholeResponse, 'headersSent' | 'statusCode'>>(
  method: string,
  path: string,
  handler: AnyHandler<Request, Response>,
  tracing: CallTracing,
): AnyHandler<Request, Response> {
  const name = `${method} ${path}`
  const attributes = { 'http.request.method': method, 'http.route': path }
  return (request, response, query) => {
    // After an error the router answers, with a status that is not there yet.
    const endAttributes = () => (response.headersSent ? { 'http.response.status_code': response.statusCode } : {})
    return tracing.run({ name, attributes, headers: request.headers, endAttributes }, () => handler(request, response, query))
  }
}

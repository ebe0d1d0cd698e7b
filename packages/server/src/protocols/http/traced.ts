import type { CallTracing } from '../call-tracing.js'
import { type HandlerWrap, type Route, wrapped } from './handler.js'

/** No call for a decision. */
const DOCUMENT = '/openapi.json'

/** `routes` whose requests are followed. */
export function traced(
  routes: readonly [path: string, route: Route][],
  tracing: CallTracing | undefined,
): readonly [path: string, route: Route][] {
  if (tracing === undefined) return routes
  return routes.map(([path, route]) => [path, path === DOCUMENT ? route : wrapped(route, (method) => following(method, path, tracing))])
}

function following(method: string, path: string, tracing: CallTracing): HandlerWrap {
  const name = `${method} ${path}`
  const attributes = { 'http.request.method': method, 'http.route': path }
  return (handler) => (request, response, query) => {
    // After an error the router answers, with a status that is not there yet.
    const endAttributes = () => (response.headersSent ? { 'http.response.status_code': response.statusCode } : {})
    return tracing.run({ name, attributes, headers: request.headers, endAttributes }, () => handler(request, response, query))
  }
}

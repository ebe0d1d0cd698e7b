import type { CallTracing } from '../../telemetry/call-tracing.js'
import type { Handler, Route } from './handler.js'

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

function tracedHandler(method: string, path: string, handler: Handler, tracing: CallTracing): Handler {
  const name = `${method} ${path}`
  const attributes = { 'http.request.method': method, 'http.route': path }
  return (request, response, query) => {
    // After an error the router answers, with a status that is not there yet.
    const endAttributes = () => (response.headersSent ? { 'http.response.status_code': response.statusCode } : {})
    return tracing.run({ name, attributes, headers: request.headers, endAttributes }, () => handler(request, response, query))
  }
}

import type { Metrics } from '../../metrics.js'
import type { Handler, Route } from './handler.js'
import { reply } from './reply.js'

const TEXT = 'text/plain; charset=utf-8'

/** `/livez`: the process answers. */
export function livezRoute(): Route {
  return read((_, response) => reply(response, 200, TEXT, 'ok\n'))
}

/** `/readyz`: 200 while requests are welcome, 503 from the first signal to stop. */
export function readyzRoute(isReady: () => boolean): Route {
  return read((_, response) => (isReady() ? reply(response, 200, TEXT, 'ready\n') : reply(response, 503, TEXT, 'stopping\n')))
}

/** `/metrics`: for Prometheus. */
export function metricsRoute(metrics: Metrics): Route {
  return read(async (_, response) => reply(response, 200, metrics.contentType, await metrics.render()))
}

function read(handler: Handler): Route {
  return { GET: handler, HEAD: handler }
}

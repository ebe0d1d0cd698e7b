import { setTimeout as sleep } from 'node:timers/promises'
import { inLaterTurn } from '../../later-turns.js'
import type { Metrics } from '../../metrics.js'
import type { Phase } from '../../part.js'
import type { Guard } from '../guard.js'
import type { Handler, Route } from './handler.js'
import { Problem } from './problem.js'
import { reply } from './reply.js'

const MAX_METRICS_AT_ONCE = 16
/** Between two texts of the metrics. */
const RENDER_REST_MS = 10
const TEXT = 'text/plain; charset=utf-8'

/** `/livez`: the process answers. */
export function livezRoute(): Route {
  return read((_, response) => reply(response, 200, TEXT, 'ok\n'))
}

/**
 * `/readyz`: 200 while requests are welcome, 503 before the start is done and from the first signal to stop.
 *
 * @param note a line for people about what does not hold back requests; undefined when all is well.
 */
export function readyzRoute(phase: () => Phase, note: () => string | undefined): Route {
  return read((_, response) => {
    const isReady = phase() === 'ready'
    const line = isReady ? note() : undefined
    reply(response, isReady ? 200 : 503, TEXT, `${phase()}\n${line === undefined ? '' : `${line}\n`}`)
  })
}

/** `/startupz`: 200 from when the start is done; a restart is no remedy before. */
export function startupzRoute(phase: () => Phase): Route {
  return read((_, response) =>
    phase() === 'starting' ? reply(response, 503, TEXT, 'starting\n') : reply(response, 200, TEXT, 'started\n'),
  )
}

/** `/healthcheck`: as Envoy's ratelimit service answers it, for probes that were written for that. 500 from the first signal to stop. */
export function healthcheckRoute(phase: () => Phase): Route {
  return read((_, response) => (phase() === 'ready' ? reply(response, 200, TEXT, 'OK') : reply(response, 500, TEXT, '')))
}

/** `/metrics`: for Prometheus. With a thousand policies it is a megabyte, which many clients at once could leave unread. */
export function metricsRoute(metrics: Metrics, guard: Guard): Route {
  const text = rested(() => metrics.render())
  let open = 0
  return read(async (_, response) => {
    if (open >= MAX_METRICS_AT_ONCE)
      throw new Problem(503, 'BUSY', `${MAX_METRICS_AT_ONCE} clients read the metrics already: come back later`)
    open++
    guard.once(response, 'close', () => open--)
    const body = await text()
    // One after the other: a system takes megabytes from one write.
    inLaterTurn(guard.callback(response, () => reply(response, 200, metrics.contentType, body)))
  })
}

/**
 * One text for all requests of the same event-loop turn, and a rest between two: rendered for each request of many clients, it would delay all
 * other requests. A request within the rest waits for the next text.
 */
function rested(render: () => Promise<Buffer>): () => Promise<Buffer> {
  let rendering: Promise<Buffer> | undefined
  let restsUntilMs = 0
  const rendered = async (): Promise<Buffer> => {
    const waitMs = restsUntilMs - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    const text = await render()
    restsUntilMs = performance.now() + RENDER_REST_MS
    return text
  }
  return () => {
    rendering ??= rendered().finally(() => {
      setImmediate(() => {
        rendering = undefined
      })
    })
    return rendering
  }
}

function read(handler: Handler): Route {
  return { GET: handler, HEAD: handler }
}

import { isIPv6, Server as NetServer } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from 'sluicegate'
import { after } from './after.js'
import type { ClientBounds, Config, StopTimes } from './config/config.js'
import { dashboardRoutes } from './dashboard/routes.js'
import { Sampler } from './dashboard/sampler.js'
import { Stream } from './dashboard/stream.js'
import { Engine } from './engine/engine.js'
import { createMetrics } from './metrics.js'
import { authRoute } from './protocols/http/auth.js'
import type { Connections } from './protocols/http/connections.js'
import { peekRoute, takeRoute } from './protocols/http/decide.js'
import type { Route } from './protocols/http/handler.js'
import { createListener, listen } from './protocols/http/listener.js'
import { livezRoute, metricsRoute, readyzRoute } from './protocols/http/observe.js'
import { router } from './protocols/http/router.js'
import { VERSION } from './version.js'

/** A service that listens. */
export interface Service {
  /** Where, for example `http://127.0.0.1:8080`. */
  readonly url: string
  readonly engine: Engine
  readonly connections: Connections
  /**
   * Stops in order. For `drainMs` it answers on while `/readyz` says 503, each answer the last of its connection. Then the port and
   * connections without a request are closed, and requests in flight have `finishMs` to finish before they are cut off.
   */
  stop(times?: StopTimes): Promise<void>
}

/** Options for tests. */
export interface ServiceOptions {
  readonly clock?: Clock
  readonly clients?: Partial<ClientBounds>
  /** How often the page gets a sample; default 1,000. */
  readonly sampleMs?: number
}

/** How many keys the page can rank; the list behind it holds ten times as many, to be sure of the first ones. */
const HOT_KEYS_TRACKED = 100

/**
 * Starts the service that `config` describes.
 *
 * @throws the system's error when it cannot listen, for example with `code: 'EADDRINUSE'`.
 */
export async function startService(config: Config, { clock, clients, sampleMs = 1_000 }: ServiceOptions = {}): Promise<Service> {
  const pageServed = config.dashboard.keys !== 'off'
  const engine = new Engine(config.policies, { ...(clock && { clock }), hotKeys: pageServed ? HOT_KEYS_TRACKED : 0 })
  let stopped: Promise<void> | undefined
  const routes = new Map<string, Route>([
    ['/v1/take', takeRoute(engine)],
    ['/v1/peek', peekRoute(engine)],
    ['/v1/auth', authRoute(engine)],
    ['/livez', livezRoute()],
    ['/readyz', readyzRoute(() => stopped === undefined)],
  ])
  const stream = new Stream()
  const sampler = new Sampler(engine, config.dashboard.keys)
  if (pageServed) for (const [path, route] of dashboardRoutes(sampler, stream)) routes.set(path, route)

  const { server, connections } = createListener(router(routes), { ...config.clients, ...clients })
  routes.set('/metrics', metricsRoute(createMetrics(engine, connections, VERSION)))
  const { address, port } = await listen(server, config.listen.host, config.listen.port)
  const sampling = pageServed
    ? setInterval(() => (stream.isRead ? stream.send(sampler.sample()) : sampler.tick()), sampleMs).unref()
    : undefined

  const stopIn = async ({ drainMs, finishMs }: StopTimes): Promise<void> => {
    connections.leave()
    clearInterval(sampling)
    stream.end()
    await after(drainMs)
    // Node's own close for HTTP would close connections at once that look idle.
    const closed = new Promise<void>((resolve) => server.once('close', resolve))
    await connections.closeInQuiet(() => NetServer.prototype.close.call(server))
    await nextTurn()
    connections.closeResting()
    await Promise.race([closed, after(finishMs)])
    server.closeAllConnections()
    await closed
    server.close()
    engine.close()
  }
  return {
    url: `http://${isIPv6(address) ? `[${address}]` : address}:${port}`,
    engine,
    connections,
    stop(times = { drainMs: 0, finishMs: config.stop.finishMs }) {
      stopped ??= stopIn(times)
      return stopped
    },
  }
}

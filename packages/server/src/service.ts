import type { ServerResponse } from 'node:http'
import { isIPv6 } from 'node:net'
import type { Clock } from 'sluicegate'
import type { Config } from './config/config.js'
import { dashboardRoutes } from './dashboard/routes.js'
import { Sampler } from './dashboard/sampler.js'
import { Stream } from './dashboard/stream.js'
import { Engine } from './engine.js'
import { createMetrics } from './metrics.js'
import { authRoute } from './protocols/http/auth.js'
import { peekRoute, takeRoute } from './protocols/http/decide.js'
import type { Route } from './protocols/http/handler.js'
import { createListener, listen, type Patience } from './protocols/http/listener.js'
import { livezRoute, metricsRoute, readyzRoute } from './protocols/http/observe.js'
import { router } from './protocols/http/router.js'
import { VERSION } from './version.js'

/** A service that listens. */
export interface Service {
  /** Where, for example `http://127.0.0.1:8080`. */
  readonly url: string
  readonly engine: Engine
  /**
   * Stops in order: `/readyz` answers 503, requests in flight are finished, then the port is closed. Whoever takes longer
   * than `timeoutMs` (default 10,000) is cut off.
   */
  stop(timeoutMs?: number): Promise<void>
}

/** What tests set. */
export interface ServiceOptions {
  readonly clock?: Clock
  readonly patience?: Patience
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
export async function startService(config: Config, { clock, patience, sampleMs = 1_000 }: ServiceOptions = {}): Promise<Service> {
  const pageServed = config.dashboard.keys !== 'off'
  const engine = new Engine(config.policies, { ...(clock && { clock }), hotKeys: pageServed ? HOT_KEYS_TRACKED : 0 })
  let stopping = false
  const routes = new Map<string, Route>([
    ['/v1/take', takeRoute(engine)],
    ['/v1/peek', peekRoute(engine)],
    ['/v1/auth', authRoute(engine)],
    ['/livez', livezRoute()],
    ['/readyz', readyzRoute(() => !stopping)],
    ['/metrics', metricsRoute(createMetrics(engine, VERSION))],
  ])
  const stream = new Stream()
  const sampler = new Sampler(engine, config.dashboard.keys)
  if (pageServed) for (const [path, route] of dashboardRoutes(sampler, stream)) routes.set(path, route)

  const inFlight = new Set<ServerResponse>()
  const route = router(routes)
  const server = createListener((request, response) => {
    inFlight.add(response)
    response.once('close', () => inFlight.delete(response))
    if (stopping) response.shouldKeepAlive = false
    route(request, response)
  }, patience)
  const { address, port } = await listen(server, config.listen.host, config.listen.port)
  const sampling = pageServed
    ? setInterval(() => (stream.isRead ? stream.send(sampler.sample()) : sampler.tick()), sampleMs).unref()
    : undefined

  const stop = async (timeoutMs = 10_000): Promise<void> => {
    if (stopping) return
    stopping = true
    clearInterval(sampling)
    stream.end()
    const deadline = new Promise<void>((resolve) => setTimeout(resolve, timeoutMs).unref())
    // The port stays open for as long as these take, so that whoever balances the load can see /readyz change.
    await Promise.race([allClosed(inFlight), deadline])
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    await Promise.race([allClosed(inFlight), deadline])
    server.closeAllConnections()
    await closed
    engine.close()
  }
  return { url: `http://${isIPv6(address) ? `[${address}]` : address}:${port}`, engine, stop }
}

/** Resolves when each of the responses that are in flight now is done. */
async function allClosed(responses: ReadonlySet<ServerResponse>): Promise<void> {
  await Promise.all(Array.from(responses, (response) => new Promise((resolve) => response.once('close', resolve))))
}

import type { HeaderPair } from 'sluicegate/http'
import type { ClientBounds } from 'sluicegate-config/config.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import type { Access } from './access.js'
import type { Candidate } from './candidate/candidate.js'
import { PAGE_HTML, PAGE_ICON, PAGE_SCRIPT, PAGE_STYLE } from './dashboard/assets.gen.js'
import { diffRoute, keyRoute } from './dashboard/key-route.js'
import type { LivePage } from './dashboard/live-page.js'
import type { Sampler } from './dashboard/sampler.js'
import type { Stream } from './dashboard/stream.js'
import type { Engine } from './engine/engine.js'
import { homeNote } from './engine/shared-limiter.js'
import { storeNote } from './engine/store-reports.js'
import type { RateLimits } from './envoy/rate-limits.js'
import type { Guards, MakeServer } from './listeners.js'
import type { Log } from './log.js'
import type { Metrics } from './metrics.js'
import type { Phase } from './part.js'
import type { CallTracing } from './protocols/call-tracing.js'
import { adminSurface, httpSurface } from './protocols/http/access.js'
import { reloadRoute } from './protocols/http/change.js'
import { type Handler, type Route, traced } from './protocols/http/handler.js'
import { HttpServer } from './protocols/http/http-server.js'
import { healthcheckRoute, livezRoute, metricsRoute, readyzRoute, startupzRoute } from './protocols/http/observe.js'
import { ALWAYS, reply } from './protocols/http/reply.js'
import { router } from './protocols/http/router.js'
import { changeRoutes, decisionRoutes } from './protocols/http/verbs.js'
import { isConfigFault } from './reload.js'

/** What the HTTP and admin listeners are made with. */
export interface HttpContext {
  readonly engine: Engine
  readonly limits: RateLimits
  readonly access: Access
  readonly clients: ClientBounds
  readonly log: Log
  readonly guards: Guards
  readonly tracing: CallTracing | undefined
  readonly page: LivePage
  readonly metrics: Metrics
  readonly candidate: Candidate | undefined
  /** Undefined: nothing can be reloaded. */
  readonly reload: (() => void | Promise<void>) | undefined
  readonly phase: () => Phase
}

/** The two listeners of HTTP: the same routes behind different guards. */
export function httpServers(context: HttpContext): Pick<MakeServer, 'http' | 'admin'> {
  const { engine, limits, access, clients, log, guards, tracing, page, metrics, candidate, reload, phase } = context
  const probes: [string, Route][] = [
    ['/livez', livezRoute()],
    ['/readyz', readyzRoute(phase, () => storeNote(engine.storage) ?? homeNote(engine))],
    ['/startupz', startupzRoute(phase)],
    ['/healthcheck', healthcheckRoute(phase)],
  ]
  const routes: [string, Route][] = [
    ...traced(decisionRoutes(engine, limits, access), tracing),
    ['/metrics', metricsRoute(metrics, guards.http)],
  ]
  const changes = changeRoutes(engine)
  if (reload !== undefined) changes.push(['/v1/reload', reloadRoute(reload, isConfigFault)])
  if (candidate !== undefined) changes.push(['/v1/diff', diffRoute(candidate, engine)])

  const make =
    (name: 'http' | 'admin') =>
    (tls: Certificates | undefined): HttpServer => {
      const surface = name === 'admin' ? adminSurface : httpSurface
      const { sampler, stream } = page[name]
      const guard = guards[name]
      const all = page.isServed ? [...routes, ...dashboardRoutes(engine, sampler, stream)] : routes
      return new HttpServer({
        router: router(surface({ probes, routes: all, changes, access }), guard),
        bounds: clients,
        guard,
        tls,
        keepsAllFields: tracing !== undefined,
        onError: (error) => log.error({ listener: name, err: error }, 'a connection could not be taken'),
      })
    }
  return { http: make('http'), admin: make('admin') }
}

/** The page may load its own files and its own events, and nothing else: no inline script, no other host, no frame around it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const GUARDED: readonly HeaderPair[] = [
  ['Content-Security-Policy', CONTENT_SECURITY_POLICY],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Referrer-Policy', 'no-referrer'],
]

/** The live page, its files and its events, by path. */
function dashboardRoutes(engine: Engine, sampler: Sampler, stream: Stream): [path: string, route: Route][] {
  return [
    ['/', file('text/html; charset=utf-8', PAGE_HTML)],
    ['/page.js', file('text/javascript; charset=utf-8', PAGE_SCRIPT)],
    ['/page.css', file('text/css; charset=utf-8', PAGE_STYLE)],
    ['/icon.svg', file('image/svg+xml', PAGE_ICON)],
    ['/events', events(sampler, stream)],
    ['/key', keyRoute(engine)],
  ]
}

function file(type: string, content: string): Route {
  // As bytes, which any number of clients may leave unread: a text would be copied for each of them.
  const bytes = Buffer.from(content)
  const handler: Handler = (_, response) => reply(response, 200, type, bytes, GUARDED)
  return { GET: handler, HEAD: handler }
}

function events(sampler: Sampler, stream: Stream): Route {
  // A proxy that buffers would hold the events back.
  const pairs = [...ALWAYS, ...GUARDED, ['Content-Type', 'text/event-stream'], ['X-Accel-Buffering', 'no']]
  const headers = Object.fromEntries(pairs) as Record<string, string>
  return { GET: async (_, response) => stream.add(response, headers, await sampler.historyText()) }
}

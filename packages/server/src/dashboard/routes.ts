import type { HeaderPair } from 'sluicegate/http'
import type { Engine } from '../engine/engine.js'
import type { Handler, Route } from '../protocols/http/handler.js'
import { ALWAYS, reply } from '../protocols/http/reply.js'
import { PAGE_HTML, PAGE_ICON, PAGE_SCRIPT, PAGE_STYLE } from './assets.gen.js'
import { keyRoute } from './key-route.js'
import type { Sampler } from './sampler.js'
import type { Stream } from './stream.js'

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
export function dashboardRoutes(engine: Engine, sampler: Sampler, stream: Stream): [path: string, route: Route][] {
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

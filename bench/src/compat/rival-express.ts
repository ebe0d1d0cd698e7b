import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { requireRival } from '../rivals.js'

/** What is used here of a request and a response of Express. */
export interface SiteRequest {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly [property: string]: unknown
}

export interface SiteResponse {
  readonly statusCode: number
  status(code: number): SiteResponse
  send(body: unknown): void
}

/** Middleware of either library. */
export type Middleware = (request: never, response: never, next: (error?: unknown) => void) => unknown

type Handler = (request: SiteRequest, response: SiteResponse) => void

interface App extends RequestListener {
  use(...handlers: readonly unknown[]): void
  get(path: string, handler: Handler): void
  set(name: string, value: unknown): void
}

/** What came back to a request. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** An app behind middleware, on its own socket. */
export interface RivalSite {
  /** Messages of errors that reached the app. */
  readonly errors: readonly string[]
  ask(path: string, headers?: Readonly<Record<string, string>>): Promise<Reply>
  close(): Promise<void>
}

/** The Express that express-rate-limit is installed with. `/?status=404` answers with that status, `/?show=rateLimit` with that property. */
export async function siteBehind(...limits: readonly Middleware[]): Promise<RivalSite> {
  return siteWith({}, ...limits)
}

/** The same with settings of Express. */
export async function siteWith(settings: Readonly<Record<string, unknown>>, ...limits: readonly Middleware[]): Promise<RivalSite> {
  const express = requireRival('express') as () => App
  const errors: string[] = []
  const app = express()
  for (const [name, value] of Object.entries(settings)) app.set(name, value)
  for (const limit of limits) app.use(limit)
  app.get('/', ({ query, ...request }, response) => {
    const { resetTime, ...shown } = (request[query.show ?? ''] ?? {}) as { readonly resetTime?: Date }
    response.status(Number(query.status ?? 200)).send(query.show === undefined ? 'hello' : { ...shown, isDate: resetTime instanceof Date })
  })
  app.use((error: unknown, _request: SiteRequest, response: SiteResponse, _next: unknown) => {
    errors.push(String(error))
    response.status(500).send('error')
  })
  const server = createServer(app)
  const ending = new Set<Promise<unknown>>()
  server.on('request', (_, response) => {
    const ended = once(response, 'close').finally(() => ending.delete(ended))
    ending.add(ended)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    errors,
    ask: async (path, headers = {}) => {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
      const body = await response.text()
      // A limit gives back what did not count once the response has ended here: a client may know of it before that.
      await Promise.all(ending)
      await nextTurn()
      return { status: response.status, headers: Object.fromEntries(response.headers), body }
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

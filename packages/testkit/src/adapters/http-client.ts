import { Agent, request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders, type Server } from 'node:http'
import { connect } from 'node:net'
import { type HttpBindings, serve } from '@hono/node-server'
import type { MiddlewareResult } from '../../../sluicegate/dist/middleware/middleware.js'
import type { ReceivedFacts } from '../../../sluicegate/dist/middleware/misuse-watch.js'
import { closed, type RunningApp } from './harness.js'

export interface ClientReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Asking {
  readonly method?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string
  readonly agent?: Agent
}

/** One that keeps a single connection open. */
export function singleSocket(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 1 })
}

/** For a crowd: as many connections as a listening socket takes at once. */
export function crowded(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 250 })
}

/** A request over its own socket, unless an agent is given. */
export function ask(port: number, path: string, { method = 'GET', headers = {}, body, agent }: Asking = {}): Promise<ClientReply> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: '127.0.0.1', port, path, method, headers, agent: agent ?? false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** A request whose client can hang up: `begun` resolves with the first piece of its body. */
export interface OpenRequest {
  readonly begun: Promise<string>
  hangUp(): void
}

export function openRequest(port: number, path: string): OpenRequest {
  let hangUp = (): void => undefined
  const begun = new Promise<string>((resolve) => {
    const sent = httpRequest({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.once('data', (piece: Buffer) => resolve(piece.toString()))
      response.on('error', () => undefined)
    })
    sent.on('error', () => undefined)
    sent.end()
    hangUp = () => sent.destroy()
  })
  return { begun, hangUp: () => hangUp() }
}

/** Requests one after the other on one connection, none of which waits for the answers. Returns what hangs up. */
export function pipeline(port: number, path: string, times: number): () => void {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(times))
  return () => void socket.destroy()
}

/** A request as a framework might have it. */
export interface PlainRequest {
  readonly method?: string
  readonly path?: string
  readonly user?: string
  readonly address?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Whether it came over a socket. */
  readonly isReceived?: boolean
}

/** What an adapter would say of it. */
export function plainFacts({
  method = 'GET',
  path = '/',
  address = '192.0.2.1',
  headers = {},
  isReceived = false,
}: PlainRequest): ReceivedFacts {
  return { method, path, route: undefined, remoteAddress: address, isReceived, header: (name) => headers[name] }
}

/** The status of an outcome, 200 for one that passes. */
export function statusOf(outcome: MiddlewareResult): number {
  return outcome.passes ? 200 : outcome.status
}

/** One header of an outcome. */
export function headerOf(outcome: MiddlewareResult, name: string): string | undefined {
  return new Map(outcome.headers).get(name)
}

/** Serves a handler of the Fetch standard. */
export function serving(fetch: (request: Request, bindings: HttpBindings) => Response | Promise<Response>): Promise<RunningApp> {
  return new Promise((resolve) => {
    const server = serve({ fetch: fetch as never, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false }, ({ port }) =>
      resolve({ port, close: () => closed(server as Server) }),
    )
  })
}

/** What Deno gives to a handler, of a request that Node serves. */
export function asOnDeno({ incoming }: HttpBindings): { readonly remoteAddr: { readonly hostname: string } } {
  return { remoteAddr: { hostname: incoming.socket.remoteAddress ?? '' } }
}

/** What Deno's handlers return of a connection that they have upgraded: other runtimes do not make one. */
export function upgraded(): Response {
  return Object.defineProperty(new Response(null), 'status', { value: 101 })
}

/** A reply in pieces as the body of a response. */
export function bodyOf(pieces: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next()
      if (done) controller.close()
      else controller.enqueue(encoder.encode(value))
    },
  })
}

import type { Server } from 'node:http'
import { type HttpBindings, serve } from '@hono/node-server'
import { closed, type RunningApp } from './harness.js'

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

import { once } from 'node:events'
import { connect, createServer, type Http2Server, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { Controller, Get, Module, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { rateLimit as limitFastify } from '../../../sluicegate/dist/adapters/fastify.js'
import { rateLimit as limitHono } from '../../../sluicegate/dist/adapters/hono.js'
import { rateLimit as limitKoa } from '../../../sluicegate/dist/adapters/koa.js'
import { RateLimitModule } from '../../../sluicegate/dist/adapters/nest.js'
import type { LimitingOptions } from '../../../sluicegate/dist/middleware/middleware-options.js'
import type { RunningApp } from './harness.js'
import type { ClientReply } from './http-client.js'

/** Starts an app whose only route answers with 200 and what `reply` says, over HTTP/2 without TLS. */
type StartHttp2 = (options: LimitingOptions<unknown>, reply: () => Promise<string>) => Promise<RunningApp>

/** By the name of their framework; Express speaks HTTP/1 alone. */
export const HTTP2_APPS: Readonly<Record<string, StartHttp2>> = {
  async fastify(options, reply) {
    const app = fastify({ http2: true })
    app.register(limitFastify(options))
    app.get('/', (_request, response) => {
      response.code(200)
      return reply()
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
  },

  hono(options, reply) {
    const app = new Hono()
    app.use(limitHono(options))
    app.get('/', async (context) => context.text(await reply()))
    return listening(createAdaptorServer({ fetch: app.fetch, createServer, overrideGlobalObjects: false }) as Http2Server)
  },

  koa(options, reply) {
    const app = new Koa()
    app.use(limitKoa(options))
    app.use(async (context) => {
      context.status = 200
      context.body = await reply()
    })
    return listening(createServer(app.callback()))
  },

  async 'nest on fastify'(options, reply) {
    @Controller()
    class Only {
      @Get()
      get(response: { code(status: number): unknown }): Promise<string> {
        response.code(200)
        return reply()
      }
    }
    Res({ passthrough: true })(Only.prototype, 'get', 0)
    @Module({ imports: [RateLimitModule.forRoot(options)], controllers: [Only] })
    class OnlyModule {}
    const app = await NestFactory.create(OnlyModule, new FastifyAdapter({ http2: true }), { logger: false })
    await app.listen(0, '127.0.0.1')
    return { port: app.getHttpServer().address().port, close: () => app.close() }
  },
}

async function listening(server: Http2Server): Promise<RunningApp> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, close: async () => void server.close() }
}

/** A request over HTTP/2 without TLS, on its own connection. */
export async function askHttp2(port: number, path: string): Promise<ClientReply> {
  const session = connect(`http://127.0.0.1:${port}`)
  try {
    const stream = session.request({ ':path': path })
    stream.setEncoding('utf8')
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders & { readonly ':status'?: number }]
    let text = ''
    for await (const piece of stream) text += piece
    return { status: headers[':status'] ?? 0, headers, text }
  } finally {
    session.close()
  }
}

/** A request on its own connection whose client hangs up: resets the stream with a code, or without one destroys the connection. */
export function openHttp2(port: number, path: string): { hangUp(code: number | undefined): void } {
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  const stream = session.request({ ':path': path })
  stream.on('error', () => undefined)
  stream.on('close', () => session.destroy())
  return { hangUp: (code) => void (code === undefined ? session.destroy() : stream.close(code)) }
}

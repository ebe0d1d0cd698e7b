import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, constants, createServer, type Http2Server, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createAdaptorServer } from '@hono/node-server'
import { Controller, Get, Module, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { until } from 'sluicegate-testkit'
import type { RunningApp } from 'sluicegate-testkit/adapters/harness.js'
import type { ClientReply } from 'sluicegate-testkit/adapters/http-client.js'
import { rateLimit as limitFastify } from '../../dist/adapters/fastify.js'
import { rateLimit as limitHono } from '../../dist/adapters/hono.js'
import { rateLimit as limitKoa } from '../../dist/adapters/koa.js'
import { RateLimitModule } from '../../dist/adapters/nest.js'
import type { LimitingOptions } from '../../dist/middleware/middleware-options.js'
import { concurrency, createLimiter, fixedWindow } from '../index.js'

/** Starts an app whose only route answers with 200 and what `reply` says, over HTTP/2 without TLS. */
type StartHttp2 = (options: LimitingOptions<unknown>, reply: () => Promise<string>) => Promise<RunningApp>

/** By the name of their framework; Express speaks HTTP/1 alone. */
const HTTP2_APPS: Readonly<Record<string, StartHttp2>> = {
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
async function askHttp2(port: number, path: string): Promise<ClientReply> {
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
function openHttp2(port: number, path: string): { hangUp(code: number | undefined): void } {
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  const stream = session.request({ ':path': path })
  stream.on('error', () => undefined)
  stream.on('close', () => session.destroy())
  return { hangUp: (code) => void (code === undefined ? session.destroy() : stream.close(code)) }
}

const KEY = '127.0.0.1'

for (const [name, start] of Object.entries(HTTP2_APPS)) {
  test(`${name}: limits hold over HTTP/2 as well, and places come back`, async (t) => {
    const slots = createLimiter(concurrency({ name: 'slots', limit: 1 }))
    const policy = fixedWindow({ name: 'day', limit: 2, window: 'day' })
    const { port, close } = await start({ limits: [{ limiter: slots }, { policy }] }, async () => `${slots.peek(KEY).remaining} left`)
    t.after(close)
    for (const remaining of [1, 0]) {
      const { status, headers, text } = await askHttp2(port, '/')
      assert.deepEqual([status, text], [200, '0 left'])
      assert.match(String(headers.ratelimit), new RegExp(`"day";r=${remaining}`))
      await until('the place is back', () => slots.peek(KEY).remaining === 1)
    }
    const { status, headers, text } = await askHttp2(port, '/')
    assert.deepEqual([status, JSON.parse(text)['violated-policies']], [429, ['day']])
    assert.match(headers['content-type'] ?? '', /^application\/problem\+json/)
  })

  for (const [how, code] of [
    ['its stream was cancelled', constants.NGHTTP2_CANCEL],
    ['its stream was reset without an error', constants.NGHTTP2_NO_ERROR],
    ['its session was destroyed', undefined],
  ] as const) {
    test(`${name}: over HTTP/2 a request counts, whatever status it had by then, when ${how}`, async (t) => {
      const slots = createLimiter(concurrency({ name: 'slots', limit: 1 }))
      const failures = createLimiter(fixedWindow({ limit: 3, window: 'day' }))
      let begun = 0
      let goOn = (): void => undefined
      const gate = new Promise<void>((resolve) => {
        goOn = resolve
      })
      const reply = async (): Promise<string> => {
        if (++begun === 1) await gate
        return 'ok'
      }
      const { port, close } = await start({ limits: [{ limiter: slots }, { limiter: failures }], counts: 'failures' }, reply)
      t.after(close)
      const request = openHttp2(port, '/')
      await until('it has begun', () => begun === 1)
      assert.equal(slots.peek(KEY).remaining, 0)
      request.hangUp(code)
      await until('the place is back', () => slots.peek(KEY).remaining === 1)
      assert.equal(failures.peek(KEY).remaining, 2)
      goOn()
      assert.equal((await askHttp2(port, '/')).status, 200)
      await until('what succeeded does not count', () => failures.peek(KEY).remaining === 2)
    })
  }
}

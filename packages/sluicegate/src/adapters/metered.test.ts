import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { Controller, Get, Module, Req, Res } from '@nestjs/common'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { until } from 'sluicegate-testkit'
import { listening, type RunningApp } from 'sluicegate-testkit/adapters/harness.js'
import { ask, asOnDeno, bodyOf, openRequest, serving } from 'sluicegate-testkit/adapters/http-client.js'
import { nestApp } from 'sluicegate-testkit/adapters/nest-harness.js'
import { createLimiter, fixedWindow, type Limiter, manualClock } from '../index.js'
import { rateLimit as limitExpress } from './express.js'
import { rateLimit as limitFastify } from './fastify.js'
import { rateLimit as limitFetch } from './fetch.js'
import { rateLimit as limitHono } from './hono.js'
import { rateLimit as limitKoa } from './koa.js'
import { holdOf, RateLimitModule } from './nest.js'

const EXPECTED = 50
const LIMIT = 100

/** Pieces of an answer, each of which costs 1: three that end, two before an error, or one before the client hangs up. */
async function* answer(request: object, path: string): AsyncGenerator<string> {
  const hold = holdOf(request)
  assert.equal(hold?.held, EXPECTED)
  const pieces = path.endsWith('/ends') ? 3 : path.endsWith('/throws') ? 2 : 1
  for (let i = 0; i < pieces; i++) {
    assert.equal(await hold?.add(1), true)
    yield `${i}`
  }
  if (path.endsWith('/throws')) throw new Error('broken off')
  if (path.endsWith('/hangs')) await new Promise(() => undefined)
}

/** Before its first byte an error is the framework's to answer. */
async function whole(request: object, path: string): Promise<string> {
  let text = ''
  for await (const piece of answer(request, path)) text += piece
  return text
}

type Start = (limiter: Limiter, metered: { readonly limiter: Limiter; readonly cost: { readonly expect: number } }) => Promise<RunningApp>

function nest(platform: () => ExpressAdapter | FastifyAdapter): Start {
  return (_, options) => {
    @Controller()
    class Answers {
      @Get('ends')
      ends(request: object) {
        return whole(request, '/ends')
      }
      @Get('throws')
      throws(request: object) {
        return whole(request, '/throws')
      }
      @Get('hangs')
      async hangs(request: object, response: { readonly raw?: NodeJS.WritableStream } & NodeJS.WritableStream) {
        for await (const piece of answer(request, '/hangs')) (response.raw ?? response).write(piece)
      }
    }
    for (const name of ['ends', 'throws', 'hangs']) Req()(Answers.prototype, name, 0)
    Res()(Answers.prototype, 'hangs', 1)
    @Module({ imports: [RateLimitModule.forRoot({ ...options, key: () => 'ada' })], controllers: [Answers] })
    class App {}
    return nestApp(App, platform())
  }
}

const APPS: Readonly<Record<string, Start>> = {
  express(_, options) {
    const app = express()
    app.use(limitExpress({ ...options, key: () => 'ada' }))
    app.use((request, response, next) => {
      const { path } = request
      if (path !== '/hangs') return void whole(request, path).then((text) => response.send(text), next)
      void (async () => {
        for await (const piece of answer(request, path)) response.write(piece)
      })()
    })
    app.use(((_error, _request, response, _next) => void response.status(500).end()) as express.ErrorRequestHandler)
    return listening(createServer(app))
  },
  async fastify(_, options) {
    const app = fastify({ forceCloseConnections: true })
    app.register(limitFastify({ ...options, key: () => 'ada' }))
    app.get('/:mode', (request, reply) => {
      assert.equal(request.rateLimit, holdOf(request), 'the strictest decision is the hold')
      return request.url === '/hangs' ? reply.send(Readable.from(answer(request, request.url))) : whole(request, request.url)
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
  },
  koa(_, options) {
    const app = new Koa()
    app.silent = true
    app.use(limitKoa({ ...options, key: () => 'ada' }))
    app.use(async (context) => {
      context.body = context.path === '/hangs' ? Readable.from(answer(context, context.path)) : await whole(context, context.path)
    })
    return listening(createServer(app.callback()))
  },
  hono: honoApp((bindings) => bindings),
  'hono without the server of Node': honoApp(asOnDeno),
  fetch(_, options) {
    const limit = limitFetch({ ...options, key: () => 'ada' })
    const handler = limit.wrap(async (request: Request) => {
      const { pathname } = new URL(request.url)
      return new Response(pathname === '/hangs' ? bodyOf(answer(request, pathname)) : await whole(request, pathname))
    })
    return serving(async (request) => handler(request).catch(() => new Response(null, { status: 500 })))
  },
  'nest on express': nest(() => new ExpressAdapter()),
  'nest on fastify': nest(() => new FastifyAdapter()),
}

function honoApp(environment: (bindings: never) => object): Start {
  return (_, options) => {
    const app = new Hono()
    app.use(limitHono({ ...options, key: () => 'ada' }))
    app.get('/:mode', async (context) => {
      const { path } = context.req
      return path === '/hangs' ? new Response(bodyOf(answer(context, path))) : context.text(await whole(context, path))
    })
    app.onError((_error, context) => context.body(null, 500))
    return serving((request, bindings) => app.fetch(request, environment(bindings as never)))
  }
}

for (const [name, start] of Object.entries(APPS)) {
  test(`${name}: a metered request gives its handler a hold, which closes when the response ends, fails or is hung up on`, async (t) => {
    // Nothing ends by itself: only a close frees what is held.
    const limiter = createLimiter(fixedWindow({ limit: LIMIT, window: 'day' }), { clock: manualClock(1_789_000_020_000) })
    const { port, close } = await start(limiter, { limiter, cost: { expect: EXPECTED } })
    t.after(close)
    const left = (tokens: number) => until(`${tokens} are left`, () => limiter.peek('ada').remaining === tokens)

    assert.deepEqual(await ask(port, '/ends').then(({ status, text }) => [status, text]), [200, '012'])
    await left(97)
    assert.equal((await ask(port, '/throws')).status, 500)
    await left(95)
    const hung = openRequest(port, '/hangs')
    assert.equal(await hung.begun, '0')
    assert.equal(limiter.peek('ada').remaining, 95 - EXPECTED, 'it is held as long as the response is open')
    hung.hangUp()
    await left(94)

    assert.equal(limiter.take('ada', 50).allowed, true)
    assert.equal((await ask(port, '/ends')).status, 429, 'what it would hold is not there')
    assert.equal(limiter.peek('ada').remaining, 44)
  })
}

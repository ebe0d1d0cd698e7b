import assert from 'node:assert/strict'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import fastify from 'fastify'
import Koa from 'koa'
import { until } from 'sluicegate-testkit'
import { rateLimit as limitFastify } from './fastify.js'
import { concurrency, createLimiter, fixedWindow, type Limiter, type Policy } from './index.js'
import { rateLimit as limitKoa } from './koa.js'
import { askHttp2 } from './testing/adapters/http2-client.js'

const perDay = (limit: number): Policy => fixedWindow({ name: 'day', limit, window: 'day' })

/** Two pass, each with a place that comes back, and the third is denied. */
async function assertLimited(port: number, slots: Limiter): ReturnType<typeof askHttp2> {
  for (const remaining of [1, 0]) {
    const { status, headers, text } = await askHttp2(port, '/')
    assert.deepEqual([status, text], [200, '0 left'])
    assert.match(String(headers.ratelimit), new RegExp(`"day";r=${remaining}`))
    await until('the place is back', () => slots.peek('127.0.0.1').remaining === 1)
  }
  const denied = await askHttp2(port, '/')
  assert.deepEqual([denied.status, JSON.parse(denied.text)['violated-policies']], [429, ['day']])
  return denied
}

test('fastify: limits hold over HTTP/2 as well, and places come back', async (t) => {
  const slots = createLimiter(concurrency({ name: 'slots', limit: 1 }))
  const app = fastify({ http2: true })
  app.register(limitFastify({ limits: [{ limiter: slots }, { policy: perDay(2) }] }))
  app.get('/', async () => `${slots.peek('127.0.0.1').remaining} left`)
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.after(() => app.close())
  const { port } = app.server.address() as AddressInfo
  await assertLimited(port, slots)
})

test('koa: limits hold over HTTP/2 as well, and places come back', async (t) => {
  const slots = createLimiter(concurrency({ name: 'slots', limit: 1 }))
  const app = new Koa()
  app.use(limitKoa({ limits: [{ limiter: slots }, { policy: perDay(2) }] }))
  app.use((context) => {
    context.body = `${slots.peek('127.0.0.1').remaining} left`
  })
  const server = createHttp2Server(app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const denied = await assertLimited(port, slots)
  assert.match(denied.headers['content-type'] ?? '', /^application\/problem\+json/)
})

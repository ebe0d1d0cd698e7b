import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import fastify, { type FastifyInstance } from 'fastify'
import type { RunningApp } from 'sluicegate-testkit/adapters/harness.js'
import { ask } from 'sluicegate-testkit/adapters/http-client.js'
import { createLimiter, fixedWindow, type Policy } from '../index.js'
import { address, compose, route } from '../keys/index.js'
import { casStore } from '../store/index.js'
import { memoryStore } from '../store-testing/index.js'
import { rateLimit } from './fastify.js'

const perDay = (limit: number, name = 'day'): Policy => fixedWindow({ limit, window: 'day', name })

async function running(app: FastifyInstance): Promise<RunningApp> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}

test('fastify: routes of one path share no limit, unless they are GET and HEAD', async (t) => {
  const app = fastify()
  const config = { rateLimit: perDay(1) }
  await app.register(rateLimit())
  app.get('/items', { config }, async () => 'read')
  app.post('/items', { config }, async () => 'written')
  app.route({ method: ['PUT', 'PATCH'], url: '/items', config, handler: async () => 'changed' })
  app.route({ method: ['GET', 'DELETE'], url: '/both', config, handler: async () => 'both' })
  app.get('/items', { config, constraints: { host: 'other.example' } }, async () => 'of another host')
  const { port, close } = await running(app)
  t.after(close)
  const status = async (method: string, path: string, host?: string): Promise<number> =>
    (await ask(port, path, { method, ...(host !== undefined && { headers: { host } }) })).status
  assert.deepEqual([await status('HEAD', '/items'), await status('GET', '/items')], [200, 429])
  assert.deepEqual([await status('POST', '/items'), await status('POST', '/items')], [200, 429])
  assert.deepEqual([await status('PUT', '/items'), await status('PATCH', '/items')], [200, 429])
  assert.deepEqual([await status('HEAD', '/both'), await status('DELETE', '/both')], [200, 429])
  assert.deepEqual([await status('GET', '/items', 'other.example'), await status('GET', '/items', 'other.example')], [200, 429])
})

test('fastify: a route that is there before the plugin has a limit of its own as well', async (t) => {
  const app = fastify()
  const config = { rateLimit: perDay(1) }
  app.get('/items', { config }, async () => 'read')
  app.post('/items', { config }, async () => 'written')
  await app.register(rateLimit())
  const { port, close } = await running(app)
  t.after(close)
  const statuses = []
  for (const method of ['HEAD', 'GET', 'POST', 'POST']) statuses.push((await ask(port, '/items', { method })).status)
  assert.deepEqual(statuses, [200, 429, 200, 429])
})

test('fastify: registered again further in both limit, and a route of its own is limited by itself alone, once', async (t) => {
  const app = fastify()
  const own = createLimiter(perDay(4, 'own'))
  await app.register(rateLimit({ policy: perDay(4, 'all') }))
  await app.register(
    async (api) => {
      await api.register(rateLimit({ policy: perDay(2, 'api'), body: 'text' }))
      api.get('/', async () => 'api')
      api.get('/own', { config: { rateLimit: own } }, async () => 'own')
      api.get('/besides', { config: { rateLimit: false }, preHandler: api.rateLimit(perDay(1, 'besides')) }, async () => 'besides')
    },
    { prefix: '/api' },
  )
  app.get('/', async () => 'ok')
  const { port, close } = await running(app)
  t.after(close)
  const statuses = async (path: string, times: number): Promise<number[]> => {
    const asked = []
    for (let i = 0; i < times; i++) asked.push((await ask(port, path)).status)
    return asked
  }
  assert.deepEqual(await statuses('/api/', 3), [200, 200, 429])
  // What the inner one denied had been counted by the outer one.
  assert.deepEqual(await statuses('/', 2), [200, 429])
  assert.deepEqual(await statuses('/api/own', 3), [200, 200, 200])
  assert.equal(own.peek('127.0.0.1').remaining, 1)
  assert.equal((await ask(port, '/api/besides')).status, 200)
  const denied = await ask(port, '/api/besides')
  assert.match(denied.text, /^Quota exceeded\./, 'as the nearer plugin says it')
})

test('fastify: a hook without a policy is refused when it is made, with the reason', async () => {
  const app = fastify()
  await app.register(rateLimit(perDay(5)))
  for (const wrong of [{ key: () => 'all' }, { cost: 2 }, {}]) {
    const refused = { code: 'OPTION_INVALID', option: 'policy', message: /takes over how other limits count and answer/ }
    assert.throws(() => app.rateLimit(wrong), refused)
  }
})

test('fastify: registered twice on one instance both limit', async (t) => {
  const app = fastify()
  await app.register(rateLimit(perDay(5, 'first')))
  await app.register(rateLimit(perDay(1, 'second')))
  app.get('/', async (request) => request.rateLimit?.policy)
  const { port, close } = await running(app)
  t.after(close)
  const { text } = await ask(port, '/')
  assert.deepEqual([text, (await ask(port, '/')).status], ['second', 429])
})

test('fastify: the limit of a route without a policy is refused with the name of the route, when it is added, or at its first request if it is older than the plugin', async (t) => {
  const message = /^config\.rateLimit of GET \/export\/:id: must have a policy, a limiter or limits of its own/
  const app = fastify()
  await app.register(rateLimit(perDay(1)))
  for (const wrong of [{ cost: 5 }, { policy: undefined }, {}]) {
    assert.throws(() => app.get('/export/:id', { config: { rateLimit: wrong as never } }, async () => 'ok'), {
      code: 'OPTION_INVALID',
      message,
    })
  }
  const misspelt = { max: 5 } as never
  assert.throws(() => app.get('/export/:id', { config: { rateLimit: misspelt } }, async () => 'ok'), { code: 'OPTION_UNKNOWN' })
  await app.close()

  const before = fastify()
  before.get('/export/:id', { config: { rateLimit: { cost: 5 } } }, async () => 'ok')
  await before.register(rateLimit(perDay(1)))
  const { port, close } = await running(before)
  t.after(close)
  const { status, text } = await ask(port, '/export/1')
  assert.equal(status, 500)
  assert.match(JSON.parse(text).message, message)
})

test('fastify: the route is the pattern, wherever the limit is asked', async () => {
  const limiter = createLimiter(fixedWindow({ limit: 9, window: 'day' }))
  const limit = { limiter, key: compose(address(), route()) }
  const app = fastify()
  await app.register(rateLimit(limit))
  app.get('/users/:id', async () => 'user')
  app.get('/teams/:id', { config: { rateLimit: false }, preHandler: app.rateLimit(limit) }, async () => 'team')
  for (const path of ['/users/1', '/users/2', '/teams/1', '/none']) await app.inject(path)
  await app.close()
  const spent = (key: string): number => 9 - limiter.peek(`127.0.0.1|${key}`).remaining
  assert.deepEqual([spent('route:/users/:id'), spent('route:/teams/:id'), spent('route')], [2, 1, 1])
})

test('fastify: policies of routes share their budget over the store of the app, whatever the app limits', async () => {
  const store = casStore(memoryStore())
  const one = fixedWindow({ limit: 1, window: 'day', name: 'one' })
  const other = fixedWindow({ limit: 1, window: 'day', name: 'other' })
  const statuses: number[] = []
  for (const all of [{ store }, { store, policy: fixedWindow({ limit: 9, window: 'day', name: 'app' }) }]) {
    const app = fastify()
    await app.register(rateLimit(all))
    app.get('/one', { config: { rateLimit: one } }, async () => 'one')
    app.get('/both', { config: { rateLimit: { store: undefined, limits: [{ policy: other }] } } }, async () => 'both')
    app.get('/own', { config: { rateLimit: createLimiter(one) } }, async () => 'own')
    for (const path of ['/one', '/both', '/own']) statuses.push((await app.inject(path)).statusCode)
    await app.close()
  }
  assert.deepEqual(statuses, [200, 200, 200, 429, 429, 200])
})

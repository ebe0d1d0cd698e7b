import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { adapterSuite } from 'sluicegate-testkit/adapters/adapter-suite.js'
import type { Harness, RunningApp } from 'sluicegate-testkit/adapters/harness.js'
import { promisedLimiter, ROUTES, type Site } from 'sluicegate-testkit/adapters/harness.js'
import { ask } from 'sluicegate-testkit/adapters/http-client.js'
import { unhandledRejections } from 'sluicegate-testkit/unhandled-rejections.js'
import { concurrency, createLimiter, fixedWindow, type Policy } from '../index.js'
import type { LimitArgument } from '../middleware/limit-argument.js'
import { rateLimit } from './fastify.js'

const perDay = (limit: number, name = 'day'): Policy => fixedWindow({ limit, window: 'day', name })

async function send(site: Site, name: string, status: number | undefined, reply: FastifyReply): Promise<FastifyReply> {
  const { pieces, text, status: code } = await site.reply(name, status)
  return reply.code(code).send(pieces === undefined ? text : Readable.from(pieces, { objectMode: false }))
}

async function running(app: FastifyInstance): Promise<RunningApp> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return { port: (app.server.address() as AddressInfo).port, close: () => app.close() }
}

const harness: Harness<FastifyRequest> = {
  name: 'fastify',
  limitsUnknown: true,
  limitsOptions: true,
  seesNode: true,
  header: (request, name) => request.headers[name] as string | undefined,
  async start(site, { all, strict, before }) {
    const app = fastify({ forceCloseConnections: true })
    app.setErrorHandler((error, _request, reply) => reply.code(500).send(site.caught(error)))
    if (before !== undefined) app.addHook('onRequest', before)
    app.register(rateLimit(all))
    for (const path of ROUTES) {
      const config = path === 'strict' && strict !== undefined ? { rateLimit: strict } : {}
      app.get(`/${path}`, { config }, (_request, reply) => send(site, path, undefined, reply))
    }
    app.get<{ Params: { status: string } }>('/status/:status', (request, reply) =>
      send(site, 'status', Number(request.params.status), reply),
    )
    return running(app)
  },
}

adapterSuite(harness)

test('fastify: the plugin reaches the instance that it is registered with, and those inside, and no other', async (t) => {
  const app = fastify()
  app.register(async (limited) => {
    limited.register(rateLimit(perDay(1)))
    limited.get('/limited', async () => 'ok')
    limited.register(async (inside) => void inside.get('/inside', async () => 'ok'))
  })
  app.get('/other', async () => 'ok')
  const { port, close } = await running(app)
  t.after(close)
  const statuses = []
  for (const path of ['/limited', '/inside', '/other', '/other']) statuses.push((await ask(port, path)).status)
  assert.deepEqual(statuses, [200, 429, 200, 200])
})

test('fastify: a route may have no limit, and one with its own takes over other options', async (t) => {
  const app = fastify()
  await app.register(rateLimit({ policy: perDay(1, 'all'), key: (request) => request.headers['x-user'] as string, body: 'text' }))
  app.get('/free', { config: { rateLimit: false } }, async () => 'ok')
  app.get('/own', { config: { rateLimit: { policy: perDay(1, 'own') } } }, async () => 'ok')
  const { port, close } = await running(app)
  t.after(close)
  const as = (user: string, path: string) => ask(port, path, { headers: { 'x-user': user } })
  assert.deepEqual([(await as('ada', '/free')).status, (await as('ada', '/free')).status], [200, 200])
  assert.deepEqual([(await as('ada', '/own')).status, (await as('bob', '/own')).status], [200, 200])
  const denied = await as('ada', '/own')
  assert.match(denied.text, /^Quota exceeded\./)
  assert.match(String(denied.headers['ratelimit-policy']), /^"own"/)
})

test('fastify: GET and HEAD of one route share its limit, two routes with the same policy do not', async (t) => {
  const app = fastify()
  const config = { rateLimit: perDay(1) }
  await app.register(rateLimit())
  app.get('/a', { config }, async () => 'a')
  app.get('/b', { config }, async () => 'b')
  const { port, close } = await running(app)
  t.after(close)
  assert.equal((await ask(port, '/a', { method: 'HEAD' })).status, 200)
  assert.deepEqual([(await ask(port, '/a')).status, (await ask(port, '/b')).status], [429, 200])
})

test('fastify: the request has the strictest of its decisions, also where a later limit does not apply', async (t) => {
  const app = fastify()
  await app.register(rateLimit(perDay(2, 'all')))
  const handler = async (request: FastifyRequest): Promise<string> => `${request.rateLimit?.policy} ${request.rateLimit?.remaining}`
  app.get('/loose', { preHandler: app.rateLimit(perDay(50, 'route')) }, handler)
  app.get('/free', { preHandler: app.rateLimit({ policy: perDay(1, 'route'), cost: 0 }) }, handler)
  const { port, close } = await running(app)
  t.after(close)
  assert.deepEqual([(await ask(port, '/loose')).text, (await ask(port, '/free')).text], ['all 1', 'all 0'])
})

test('fastify: what goes wrong goes to the error handler, once, however late it came, and what is no error lets nothing pass', async (t) => {
  const limiter = createLimiter(perDay(50))
  const rejecting = (thrown: unknown) => ({ limiter, key: () => Promise.reject(thrown) })
  const throwing = (thrown: unknown) => ({
    limiter,
    key: (): never => {
      throw thrown
    },
  })
  const cases: [LimitArgument<FastifyRequest>, boolean][] = [
    [limiter, true],
    [promisedLimiter(limiter), true],
    ...[undefined, null, '', 'route'].flatMap((thrown): [LimitArgument<FastifyRequest>, boolean][] => [
      [rejecting(thrown), false],
      [throwing(thrown), false],
    ]),
  ]
  for (const [limit, isRefusing] of cases) {
    const app = fastify()
    const errors: unknown[] = []
    app.setErrorHandler((error, _request, reply) => {
      errors.push(error)
      return reply.code(500).send('caught')
    })
    app.addHook('onRequest', (_request, reply, next) => {
      const { header } = reply
      if (isRefusing) {
        reply.header = (name: string, value: unknown) => {
          if (name.startsWith('RateLimit')) throw new RangeError('no such header here')
          return header.call(reply, name as 'date', value as string)
        }
      }
      next()
    })
    await app.register(rateLimit(limit))
    app.get('/', async () => 'passed')
    const { port, close } = await running(app)
    t.after(close)
    const reasons = await unhandledRejections(async () => assert.equal((await ask(port, '/')).status, 500))
    assert.deepEqual([errors.length, reasons], [1, []])
  }
})

test('fastify: a limit may apply once the user is known, and the request has the decision', async (t) => {
  const app = fastify()
  const users = new WeakMap<FastifyRequest, string>()
  app.addHook('onRequest', async (request) => void users.set(request, String(request.headers['x-user'])))
  await app.register(rateLimit({ policy: perDay(2), hook: 'preHandler', key: (request) => users.get(request) }))
  app.get('/', async (request) => request.rateLimit?.remaining)
  const { port, close } = await running(app)
  t.after(close)
  const as = (user: string) => ask(port, '/', { headers: { 'x-user': user } })
  assert.deepEqual([(await as('ada')).text, (await as('ada')).text, (await as('ada')).status, (await as('bob')).text], ['1', '0', 429, '1'])
})

test('fastify: the decorator limits a route besides, and a handler of 404s', async (t) => {
  const app = fastify()
  await app.register(rateLimit(perDay(3, 'all')))
  app.setNotFoundHandler({ preHandler: app.rateLimit(perDay(1, 'unknown')) }, async (_request, reply) => reply.code(404).send('none'))
  app.get('/', { preHandler: app.rateLimit(perDay(1, 'route')) }, async () => 'ok')
  const { port, close } = await running(app)
  t.after(close)
  const statuses = []
  for (const path of ['/', '/none', '/none', '/']) statuses.push((await ask(port, path)).status)
  assert.deepEqual(statuses, [200, 404, 429, 429])
})

test('fastify: an invalid limit throws when it is made', async () => {
  assert.throws(() => rateLimit({ policy: perDay(1), hook: 'onSend' as never }), { option: 'hook' })
  const app = fastify()
  await app.register(rateLimit())
  assert.throws(() => app.get('/', { config: { rateLimit: { policy: perDay(1), keys: 1 } as never } }, async () => 'ok'), {
    option: 'keys',
  })
  await app.close()
})

test('fastify: what is injected is limited as well, and places come back', async () => {
  const limits = [{ policy: concurrency({ name: 'slots', limit: 1 }) }, { policy: perDay(2) }]
  const app = fastify()
  await app.register(rateLimit({ limits }))
  app.get('/', async () => 'ok')
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await app.inject('/')).statusCode)
  assert.deepEqual(statuses, [200, 200, 429])
  await app.close()
})

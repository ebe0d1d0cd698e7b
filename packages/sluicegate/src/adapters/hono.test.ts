import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HttpBindings } from '@hono/node-server'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { cors } from 'hono/cors'
import { requestId } from 'hono/request-id'
import { adapterSuite } from 'sluicegate-testkit/adapters/adapter-suite.js'
import type { Harness, Limits } from 'sluicegate-testkit/adapters/harness.js'
import { ROUTES, type Site } from 'sluicegate-testkit/adapters/harness.js'
import { asOnDeno, bodyOf, serving, upgraded } from 'sluicegate-testkit/adapters/http-client.js'
import { concurrency, createLimiter, fixedWindow, type Policy } from '../index.js'
import { address, compose, route } from '../keys/index.js'
import { rateLimit } from './hono.js'

const perDay = (limit: number, name = 'day'): Policy => fixedWindow({ limit, window: 'day', name })

async function send(site: Site, name: string, status?: number): Promise<Response> {
  const { pieces, text, status: code } = await site.reply(name, status)
  return new Response(pieces === undefined ? text : bodyOf(pieces), { status: code })
}

function appOf(site: Site, { all, strict, before }: Limits<Context>): Hono {
  const app = new Hono()
  if (before !== undefined) app.use((_context, next) => before().then(next))
  app.onError((error, context) => context.text(site.caught(error), 500))
  if (all !== undefined) app.use(rateLimit(all))
  if (strict !== undefined) app.use('/strict', rateLimit(strict))
  for (const path of ROUTES) app.get(`/${path}`, () => send(site, path))
  app.get('/status/:status', ({ req }) => send(site, 'status', Number(req.param('status'))))
  return app
}

function harness(name: string, seesNode: boolean, environment: (bindings: HttpBindings) => object): Harness<Context> {
  return {
    name,
    limitsUnknown: true,
    limitsOptions: true,
    seesNode,
    header: (context, header) => context.req.header(header),
    start(site, limits) {
      const app = appOf(site, limits)
      return serving((request, bindings) => app.fetch(request, environment(bindings)))
    },
  }
}

adapterSuite(harness('hono', true, (bindings) => bindings))
adapterSuite(harness('hono without the server of Node', false, asOnDeno), true)

const BUN = { requestIP: () => ({ address: '192.0.2.7' }) }

test('hono: the address comes from whatever runtime there is, or from a function', async () => {
  for (const [environment, remoteAddress] of [
    [{ remoteAddr: { hostname: '192.0.2.7' } }, undefined],
    [BUN, undefined],
    [{ server: BUN }, undefined],
    [{}, () => '192.0.2.7'],
  ] as const) {
    const limiter = createLimiter(perDay(1))
    const app = new Hono()
    app.use(rateLimit({ limiter, ...(remoteAddress && { remoteAddress }) }))
    await app.request('/', {}, environment)
    assert.equal(limiter.peek('192.0.2.7').remaining, 0)
  }
})

test('hono: the option remoteAddress is checked when the limit is made, and its result at each request', async () => {
  assert.throws(() => rateLimit({ policy: perDay(1), remoteAddress: 'x' as never }), { code: 'OPTION_INVALID', option: 'remoteAddress' })
  const app = new Hono()
  const errors: Error[] = []
  app.onError((error, context) => {
    errors.push(error)
    return context.text(error.message, 500)
  })
  app.use(rateLimit({ policy: perDay(1), remoteAddress: (async () => '192.0.2.7') as never }))
  assert.equal((await app.request('/')).status, 500)
  assert.match(errors[0]?.message ?? '', /^remoteAddress: must return the address as a string/)
})

test('hono: what a function of the limit fails with goes to onError, also where it is not an error', async () => {
  const app = new Hono()
  const errors: string[] = []
  app.onError((error, context) => {
    errors.push(error.message)
    return context.text('failed', 500)
  })
  app.use(rateLimit({ policy: fixedWindow({ limit: 1, window: 'day' }), key: () => Promise.reject(undefined) }))
  assert.equal((await app.request('/')).status, 500)
  assert.deepEqual(errors, ['a limit failed with a value that is not an error: undefined'])
})

test('hono: the route is the pattern of the handler', async () => {
  const limiter = createLimiter(perDay(5))
  const app = new Hono()
  app.use(rateLimit({ limiter, key: compose(address(), route()) }))
  app.get('/users/:id', (context) => context.text('user'))
  for (const path of ['/users/1', '/users/2', '/none']) await app.request(path, {}, BUN)
  assert.equal(limiter.peek('192.0.2.7|route:/users/:id').remaining, 3)
  assert.equal(limiter.peek('192.0.2.7|route').remaining, 4)
})

test('hono: the route is that of the handler, whatever matches before and after it', async () => {
  const found: (string | undefined)[] = []
  const limit = rateLimit({ policy: perDay(99), skip: (_context, { route }) => found.push(route) > 0 })
  const pass: MiddlewareHandler = (_context, next) => next()
  const text: MiddlewareHandler = async (context) => context.text('ok')
  const app = new Hono()
  app.use(limit)
  app.get('*', pass)
  app.use('/:section/*', pass)
  app.get('/users/:id', pass, text)
  app.get('/users/me', text)
  app.all('/both/:id', text)
  app.get('/files/*', text)
  app.all('/any/*', text)
  app.use('*', pass)
  app.get('/own', limit, text)
  app.route('/tenants/:tenant', new Hono().use('*', limit).get('/items/:id', text))
  app.get('*', text)
  const asked = {
    '/users/1': '/users/:id',
    '/users/me': '/users/:id',
    '/both/1': '/both/:id',
    '/own': '/own',
    '/tenants/1/items/2': '/tenants/:tenant/items/:id',
  }
  for (const [path, route] of Object.entries(asked)) {
    found.length = 0
    await app.request(path, {}, BUN)
    assert.deepEqual([...new Set(found)], [route], path)
  }
})

test('hono: a page for all that is not found elsewhere is a route, and middleware alone is none', async () => {
  const found: (string | undefined)[] = []
  const limit = rateLimit({ policy: perDay(99), skip: (_context, { route }) => found.push(route) > 0 })
  const pages = new Hono().use(limit).get('/*', (context) => context.text('page'))
  const nothing = new Hono().use(limit).use('/api/*', (_context, next) => next())
  const every = new Hono().use(limit).all('/any/*', (context) => context.text('any'))
  await pages.request('/about', {}, BUN)
  await nothing.request('/api/users', {}, BUN)
  await every.request('/any/thing', {}, BUN)
  assert.deepEqual(found, ['/*', undefined, undefined])
})

test('hono: headers get into responses that are closed to changes', async () => {
  const app = new Hono()
  app.use(rateLimit(perDay(5)))
  app.get('/', () => Response.redirect('https://example.com/', 302))
  const { status, headers } = await app.request('/', {}, BUN)
  assert.deepEqual([status, headers.get('location')], [302, 'https://example.com/'])
  assert.match(headers.get('ratelimit') ?? '', /r=4/)
})

const cachedForAll: MiddlewareHandler = (context, next) => {
  context.header('Cache-Control', 'public')
  return next()
}

for (const [before, middleware] of [
  ['by the context', [requestId(), cachedForAll]],
  ['in its response', [cors({ origin: 'https://example.com' }), requestId(), cachedForAll]],
] as const) {
  test(`hono: a denial keeps headers that were set ${before} before it, and has those of its own limit`, async () => {
    const app = new Hono()
    for (const each of middleware) app.use(each)
    app.use(rateLimit(perDay(5, 'outer')))
    app.use(
      rateLimit({
        policy: perDay(1, 'inner'),
        onDenied: () => ({
          headers: [
            ['Set-Cookie', 'a=1'],
            ['Set-Cookie', 'b=2'],
          ],
        }),
      }),
    )
    app.get('/', (context) => context.text('ok'))
    for (const status of [200, 429]) {
      const response = await app.request('/', { headers: { origin: 'https://example.com' } }, BUN)
      const { headers } = response
      assert.equal(response.status, status)
      assert.match(headers.get('x-request-id') ?? '', /^[\w-]{36}$/)
      assert.match(headers.get('ratelimit-policy') ?? '', /^"inner";q=1;w=86400$/)
      assert.match(headers.get('ratelimit') ?? '', /^"inner";r=0/)
      if (middleware.length > 2) assert.equal(headers.get('access-control-allow-origin'), 'https://example.com')
      if (status === 200) continue
      assert.equal(headers.get('cache-control'), 'no-store')
      assert.match(headers.get('content-type') ?? '', /^application\/problem\+json/)
      assert.deepEqual(headers.getSetCookie(), ['a=1', 'b=2'])
      assert.deepEqual(JSON.parse(await response.text())['violated-policies'], ['inner'])
    }
  })
}

test('hono: whatever comes of a request, places come back, and failures alone count', async () => {
  const slots = createLimiter(concurrency({ name: 'slots', limit: 1 }))
  const failures = createLimiter(perDay(9, 'failures'))
  const app = new Hono()
  app.use(rateLimit({ limits: [{ limiter: slots }, { limiter: failures }], counts: 'failures' }))
  app.onError((error) => {
    throw error
  })
  app.get('/upgrade', () => upgraded())
  app.get('/error', () => Response.error())
  app.get('/throw', () => Promise.reject(new Error('thrown')))
  app.get('/throw-text', () => Promise.reject('thrown'))
  for (const [path, left] of [
    ['/upgrade', 9],
    ['/error', 8],
    ['/throw', 7],
    ['/throw-text', 6],
  ] as const) {
    await Promise.resolve(app.request(path, {}, BUN)).catch((error) => assert.match(String(error), /thrown$/))
    assert.deepEqual([slots.peek('192.0.2.7').remaining, failures.peek('192.0.2.7').remaining], [1, left], path)
  }
})

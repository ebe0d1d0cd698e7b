import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { adapterSuite } from 'sluicegate-testkit/adapters/adapter-suite.js'
import { type Harness, listening, ROUTES, type Site } from 'sluicegate-testkit/adapters/harness.js'
import { ask } from 'sluicegate-testkit/adapters/http-client.js'
import { createLimiter, fixedWindow } from '../index.js'
import { address, compose, route } from '../keys/index.js'
import { rateLimit } from './koa.js'

async function send(site: Site, name: string, status: number | undefined, context: Context): Promise<void> {
  const { pieces, text, status: code } = await site.reply(name, status)
  context.status = code
  context.body = pieces === undefined ? text : Readable.from(pieces, { objectMode: false })
}

/** @param catches whether middleware of the app's own answers errors, instead of Koa. */
function harness(name: string, catches: boolean): Harness<Context> {
  return {
    name,
    limitsUnknown: true,
    limitsOptions: true,
    seesNode: true,
    header: (context, header) => context.get(header) || undefined,
    start(site, { all, strict, before }) {
      const app = new Koa()
      app.on('error', (error) => {
        // A client that hung up while its response was being sent.
        if (!['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET', 'EPIPE'].includes(error.code)) site.caught(error)
      })
      app.use(async (context, next) => {
        if (!catches) return next().catch((error) => Promise.reject(Object.assign(error, { expose: true, status: 500 })))
        try {
          await next()
        } catch (error) {
          context.status = 500
          context.body = site.caught(error)
        }
      })
      if (before !== undefined) app.use((_context, next) => before().then(next))
      if (all !== undefined) app.use(rateLimit(all))
      const router = new Router()
      if (strict !== undefined) router.use('/strict', rateLimit(strict))
      for (const path of ROUTES) router.get(`/${path}`, (context) => send(site, path, undefined, context))
      router.get('/status/:status', (context) => send(site, 'status', Number(context.params.status), context))
      app.use(router.routes())
      return listening(createServer(app.callback()))
    },
  }
}

adapterSuite(harness('koa', true))
adapterSuite(harness('koa answering errors itself', false), true)

test('koa: a request is answered when a function of the limit fails with undefined, which Koa ignores', { timeout: 10_000 }, async (t) => {
  for (const key of [() => Promise.reject(undefined), () => Promise.reject(null)]) {
    const app = new Koa()
    const errors: unknown[] = []
    app.on('error', (error) => errors.push(error))
    app.use(rateLimit({ policy: fixedWindow({ limit: 1, window: 'day' }), key }))
    const { port, close } = await listening(createServer(app.callback()))
    t.after(close)
    assert.equal((await ask(port, '/ok')).status, 500)
    assert.match(String(errors), /a limit failed with a value that is not an error/)
  }
})

test('koa: the route is the pattern that the router found', async (t) => {
  const app = new Koa()
  const router = new Router()
  const limit = rateLimit({ policy: fixedWindow({ limit: 2, window: 'day' }), key: compose(address(), route()) })
  router.get('/users/:id', limit, (context) => {
    context.body = 'user'
  })
  app.use(router.routes())
  const { port, close } = await listening(createServer(app.callback()))
  t.after(close)
  const statuses = []
  for (const id of [1, 2, 3]) statuses.push((await ask(port, `/users/${id}`)).status)
  assert.deepEqual(statuses, [200, 200, 429])
})

test('koa: routes of regular expressions are routes of their own, as each of several paths is', async (t) => {
  const limiter = createLimiter(fixedWindow({ limit: 9, window: 'day' }), { hotKeys: 9 })
  const limit = rateLimit({ limiter, key: route() })
  const app = new Koa()
  const router = new Router()
  const found = (context: Koa.Context): void => {
    context.body = 'found'
  }
  router.get(/^\/re/, limit, found)
  router.get(['/a', '/b'], limit, found)
  app.use(router.routes())
  const { port, close } = await listening(createServer(app.callback()))
  t.after(close)
  for (const path of ['/re5', '/a', '/b']) await ask(port, path)
  assert.deepEqual(
    limiter
      .hotKeys(9)
      .demand.map(({ key }) => key)
      .sort(),
    ['route:/a', 'route:/b', 'route:^\\\\/re'],
  )
})

test('koa: routers of an app with a state of its own take it as it is', () => {
  interface State {
    readonly user: string
  }
  const router = new Router<State>()
  const limit = rateLimit({ policy: fixedWindow({ limit: 1, window: 'day' }), key: (context) => context.state.user })
  router.use('/strict', limit)
  router.get('/users/:id', limit, (context) => {
    context.body = context.state.user
  })
  assert.equal(new Koa<State>().use(limit).use(router.routes()).middleware.length, 2)
})

test('koa: an error object that is thrown for many requests gets the headers of each, and stays unchanged', async (t) => {
  const policy = fixedWindow({ name: 'day', limit: 9, window: 'day' })
  const own = { 'X-Why': 'gone' }
  const explained = Object.assign(new Error('gone'), { status: 410, headers: own })
  const bare = Object.assign(new Error('gone'), { status: 410 })
  for (const [error, why] of [
    [explained, 'gone'],
    [bare, undefined],
  ] as const) {
    const app = new Koa()
    app.silent = true
    app.use(rateLimit({ policy, key: (context) => context.get('x-user') }))
    app.use(() => {
      throw error
    })
    const { port, close } = await listening(createServer(app.callback()))
    t.after(close)
    const seen = []
    for (const user of ['ada', 'ada', 'bob']) {
      const { status, headers } = await ask(port, '/', { headers: { 'x-user': user } })
      seen.push(`${status} ${/r=\d+/.exec(String(headers.ratelimit))} ${headers['x-why']}`)
    }
    assert.deepEqual(seen, [`410 r=8 ${why}`, `410 r=7 ${why}`, `410 r=8 ${why}`])
  }
  assert.equal(explained.headers, own)
  assert.deepEqual([own, 'headers' in bare], [{ 'X-Why': 'gone' }, false])
})

test('koa: of two limits on a path an error response has the headers of the inner one', async (t) => {
  const app = new Koa()
  app.silent = true
  app.use(async (_context, next) => {
    try {
      await next()
    } catch (cause) {
      throw new Error('another', { cause })
    }
  })
  app.use(rateLimit(fixedWindow({ name: 'outer', limit: 9, window: 'day' })))
  app.use(rateLimit(fixedWindow({ name: 'inner', limit: 5, window: 'day' })))
  app.use(() => Promise.reject(new Error('one')))
  const { port, close } = await listening(createServer(app.callback()))
  t.after(close)
  const { status, headers } = await ask(port, '/')
  assert.equal(status, 500)
  assert.match(String(headers.ratelimit), /^"inner";r=4/)
})

test('koa: headers stay whatever is thrown, also where Koa learns of an error later, as Koa 2 of a stream', async (t) => {
  const circular: { self?: object } = {}
  circular.self = circular
  const faults: unknown[] = []
  const app = new Koa()
  app.on('error', (error) => faults.push(error.message))
  app.use(rateLimit(fixedWindow({ name: 'day', limit: 9, window: 'day' })))
  app.use((context) => {
    if (context.path === '/text') throw 'text'
    if (context.path === '/object') throw { status: 400 }
    if (context.path === '/circular') throw circular
    context.respond = false
    setImmediate(() => context.onerror(new Error('later')))
  })
  const { port, close } = await listening(createServer(app.callback()))
  t.after(close)
  for (const path of ['/text', '/object', '/circular', '/later']) {
    const { status, headers } = await ask(port, path)
    assert.deepEqual([status, /"day";r=\d/.test(String(headers.ratelimit))], [500, true], path)
  }
  assert.deepEqual(faults, ['non-error thrown: "text"', 'non-error thrown: {"status":400}', 'non-error thrown: [object Object]', 'later'])
})

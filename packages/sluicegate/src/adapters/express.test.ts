import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, type TestContext, test } from 'node:test'
import express, { type NextFunction, type Request, type Response } from 'express'
import express4, { type Request as Request4 } from 'express4'
import { adapterSuite } from 'sluicegate-testkit/adapters/adapter-suite.js'
import { type Harness, listening, promisedLimiter, ROUTES, type Site } from 'sluicegate-testkit/adapters/harness.js'
import { ask } from 'sluicegate-testkit/adapters/http-client.js'
import { errorsOf } from 'sluicegate-testkit/adapters/rate-limit-site.js'
import { freshWarnings, unhandledRejections } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter, fixedWindow } from '../index.js'
import { address, compose, route } from '../keys/index.js'
import { rateLimit } from './express.js'

freshWarnings()

async function send(site: Site, name: string, status: number | undefined, response: Response): Promise<void> {
  const reply = await site.reply(name, status)
  response.status(reply.status)
  if (reply.pieces === undefined) {
    response.send(reply.text)
    return
  }
  for await (const piece of reply.pieces) response.write(piece)
  response.end()
}

function harness(name: string, framework: typeof express): Harness<Request> {
  return {
    name,
    limitsUnknown: true,
    limitsOptions: true,
    seesNode: true,
    header: (request, header) => request.get(header),
    start(site, { all, strict, before }) {
      const app = framework()
      if (before !== undefined) app.use((_request, _response, next) => void before().then(() => next()))
      if (all !== undefined) app.use(rateLimit(all))
      if (strict !== undefined) app.use('/strict', rateLimit(strict))
      for (const path of ROUTES) {
        app.get(`/${path}`, (_request, response, next) => send(site, path, undefined, response).catch(next))
      }
      app.get('/status/:status', (request, response, next) => send(site, 'status', Number(request.params.status), response).catch(next))
      app.use((error: unknown, _request: Request, response: Response, _next: NextFunction) => {
        response.status(500).send(site.caught(error))
      })
      return listening(createServer(app))
    },
  }
}

const warned: string[] = []
process.on('warning', ({ name, code }: Error & { code?: string }) => void (name === 'SluicegateWarning' && warned.push(String(code))))
after(() => assert.equal(warned.filter((code) => code === 'SLUICEGATE_PROXY_UNTRUSTED').length, 1, 'headers of proxies are warned of once'))

adapterSuite(harness('express 5', express))
adapterSuite(harness('express 4', express4 as unknown as typeof express), true)

test('the types of Express 4 fit as those of 5 do', () => {
  const options = { policy: fixedWindow({ limit: 1, window: 'day' }) }
  express4().use(rateLimit<Request4>({ ...options, key: (request) => request.ip }))
  express4().get('/', rateLimit<Request4>(options), (_request, response) => response.end())
  express().use('/api', rateLimit({ ...options, key: (request) => request.ip }))
  assert.throws(() =>
    express4().use(
      rateLimit<Request4>({
        ...options, // @ts-expect-error: no such option
        keys: 1,
      }),
    ),
  )
})

test('the route is the pattern of the route itself, and a mounted router gives clients no part of the key', async (t) => {
  const app = express()
  const router = express.Router()
  const limit = rateLimit({ policy: fixedWindow({ limit: 2, window: 'day' }), key: compose(address(), route()) })
  router.get('/users/:id', limit, (_request, response) => void response.send('user'))
  router.get('/teams/:id', limit, (_request, response) => void response.send('team'))
  app.use('/:tenant', router)
  const { port, close } = await listening(createServer(app))
  t.after(close)
  const statuses = []
  for (const path of ['/a/users/1', '/b/users/2', '/c/users/3', '/a/teams/1']) statuses.push((await ask(port, path)).status)
  assert.deepEqual(statuses, [200, 200, 429, 200])
})

for (const [name, framework] of [
  ['express 5', express],
  ['express 4', express4 as unknown as typeof express],
] as const) {
  test(`${name}: routes of several paths and of regular expressions are routes of their own`, async (t) => {
    const limiter = createLimiter(fixedWindow({ limit: 9, window: 'day' }), { hotKeys: 9 })
    const limit = rateLimit({ limiter, key: route() })
    const app = framework()
    const send = (_request: Request, response: Response): void => void response.send('found')
    app.get(['/login', '/signin'], limit, send)
    app.get(['/big', /^\/export/], limit, send)
    app.get(/^\/re\d+$/, limit, send)
    app.use(limit)
    const { port, close } = await listening(createServer(app))
    t.after(close)
    for (const path of ['/login', '/signin', '/big', '/export', '/re5', '/nowhere']) await ask(port, path)
    assert.deepEqual(
      limiter
        .hotKeys(9)
        .demand.map(({ key, count }) => `${key} ${count}`)
        .sort(),
      ['route 1', 'route:/big,^\\\\/export 2', 'route:/login,/signin 2', 'route:^\\\\/re\\\\d+$ 1'],
    )
  })
}

/** The statuses of requests to an app whose limit goes wrong, and how often it came to its error handler, with what. */
async function faulty(limit: express.RequestHandler, t: TestContext, before: express.RequestHandler[] = []): Promise<[number, unknown[]]> {
  const app = express()
  app.use(...before, limit)
  app.get('/', (_request, response) => void response.send('passed'))
  const errors = errorsOf(app)
  const { port, close } = await listening(createServer(app))
  t.after(close)
  return [(await ask(port, '/')).status, errors]
}

test('express: what goes wrong while an outcome is written goes to the error handler, once, however late it came', async (t) => {
  const limiter = createLimiter(fixedWindow({ limit: 5, window: 'day' }))
  const refusing: express.RequestHandler = (_request, response, next) => {
    const { setHeader } = response
    response.setHeader = (name, value) => {
      if (name.startsWith('RateLimit')) throw new RangeError('no such header here')
      return setHeader.call(response, name, value)
    }
    next()
  }
  for (const asked of [limiter, promisedLimiter(limiter)]) {
    const reasons = await unhandledRejections(async () => {
      const [status, errors] = await faulty(rateLimit(asked), t, [refusing])
      assert.deepEqual([status, errors.length], [500, 1])
      assert.ok(errors[0] instanceof RangeError)
    })
    assert.deepEqual(reasons, [])
  }
})

test('express: what is thrown and is no error lets nothing pass', async (t) => {
  for (const thrown of [undefined, null, '', 0, 'route', 'router']) {
    for (const key of [() => Promise.reject(thrown), () => throwing(thrown)]) {
      const [status, errors] = await faulty(rateLimit({ policy: fixedWindow({ limit: 5, window: 'day' }), key }), t)
      assert.deepEqual([status, errors.length], [500, 1])
      assert.ok(errors[0] instanceof Error && errors[0].cause === thrown)
    }
  }
  const given = { status: 401 }
  const [, errors] = await faulty(rateLimit({ policy: fixedWindow({ limit: 5, window: 'day' }), key: () => Promise.reject(given) }), t)
  assert.deepEqual(errors, [given])
})

function throwing(value: unknown): never {
  throw value
}

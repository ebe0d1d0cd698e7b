import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adapterSuite } from 'sluicegate-testkit/adapters/adapter-suite.js'
import type { Harness } from 'sluicegate-testkit/adapters/harness.js'
import { ROUTES, type Site } from 'sluicegate-testkit/adapters/harness.js'
import { asOnDeno, bodyOf, serving, upgraded } from 'sluicegate-testkit/adapters/http-client.js'
import { unhandledRejections } from 'sluicegate-testkit/unhandled-rejections.js'
import { concurrency, createLimiter, fixedWindow, type Policy } from '../index.js'
import { header } from '../keys/index.js'
import type { MiddlewareLimiter } from '../middleware/middleware-options.js'
import { rateLimit } from './fetch.js'

const perDay = (limit: number, name = 'day'): Policy => fixedWindow({ limit, window: 'day', name })

async function handle(site: Site, request: Request): Promise<Response> {
  const [, name = '', status] = new URL(request.url).pathname.split('/')
  if (!(ROUTES as readonly string[]).includes(name) && name !== 'status') return new Response('none', { status: 404 })
  try {
    const { pieces, text, status: code } = await site.reply(name, status === undefined ? 200 : Number(status))
    return new Response(pieces === undefined ? text : bodyOf(pieces), { status: code })
  } catch (error) {
    return new Response(site.caught(error), { status: 500 })
  }
}

const harness: Harness<Request> = {
  name: 'fetch',
  limitsUnknown: true,
  limitsOptions: true,
  seesNode: false,
  header: (request, name) => request.headers.get(name) ?? undefined,
  start(site, { all, strict, before }) {
    const own = (request: Request, _environment: unknown): Promise<Response> => handle(site, request)
    const strictly = strict === undefined ? own : rateLimit(strict).wrap(own)
    const routed = (request: Request, environment: unknown): Promise<Response> =>
      new URL(request.url).pathname === '/strict' ? strictly(request, environment) : own(request, environment)
    const limited = all === undefined ? routed : rateLimit(all).wrap(routed)
    return serving(async (request, bindings) => {
      try {
        await before?.()
        return await limited(request, asOnDeno(bindings))
      } catch (error) {
        return new Response(site.caught(error), { status: 500 })
      }
    })
  },
}

adapterSuite(harness)

const from = (user: string): Request => new Request('http://localhost/a?b=c', { headers: { 'x-user': user } })

test('fetch: a request in, a response out or nothing, at once where the limiter answers at once', () => {
  const limit = rateLimit({ policy: perDay(1), key: header('x-user') })
  assert.equal(limit(from('ada')), undefined)
  const response = limit(from('ada'))
  assert.ok(response instanceof Response)
  assert.equal(response.status, 429)
  assert.equal(limit(from('bob')), undefined)
})

test('fetch: a request that passed has headers for its response, one that was denied or never limited has none', async () => {
  const limit = rateLimit({ policy: perDay(2), key: async (request) => request.headers.get('x-user') ?? '' })
  const [first, second, denied] = [from('ada'), from('ada'), from('ada')]
  for (const request of [first, second, denied]) await limit(request)
  const shown = [first, second, denied, from('ada')].map((request) => limit.headers(request).get('ratelimit')?.split(';t=')[0])
  assert.deepEqual(shown, ['"day";r=1', '"day";r=0', undefined, undefined])
  assert.equal(limit.headers(first).get('ratelimit-policy'), '"day";q=2;w=86400')
})

test('fetch: what has to see the response is refused where none is shown, before anything is taken', () => {
  const slots = createLimiter(concurrency({ limit: 1, name: 'slots' }))
  const counted = createLimiter(perDay(1))
  let takes = 0
  const watched = (limiter: MiddlewareLimiter): MiddlewareLimiter => ({
    policy: limiter.policy,
    take: (...given) => {
      takes++
      return limiter.take(...given)
    },
    peek: (...given) => limiter.peek(...given),
    refund: (...given) => limiter.refund(...given),
  })
  const key = (): string => 'all'
  for (const options of [
    { limiter: watched(slots), key },
    { limits: [{ limiter: watched(counted) }, { limiter: watched(slots) }], key },
    { limiter: watched(counted), counts: 'failures', key },
  ] as const) {
    const limit = rateLimit(options)
    for (let i = 0; i < 2; i++) assert.throws(() => limit(from('ada')), { code: 'OPTION_INVALID', option: 'counts' })
  }
  assert.equal(takes, 0)
  assert.equal(rateLimit({ limiter: watched(counted), counts: 'all', key })(from('ada')), undefined)
  assert.equal(takes, 1)
})

test('fetch: a connection that is upgraded, and a response that is none, leave nothing held', async () => {
  const slots = createLimiter(concurrency({ name: 'slots', limit: 1 }))
  const failures = createLimiter(perDay(9, 'failures'))
  const limit = rateLimit({ limits: [{ limiter: slots }, { limiter: failures }], counts: 'failures', key: () => 'all' })
  // Bun's own upgrade leaves a handler without a response.
  const onBun: (request: Request) => Promise<Response | undefined> = limit.wrap((_request: Request) => undefined)
  assert.equal(await onBun(from('ada')), undefined)
  assert.deepEqual([slots.peek('all').remaining, failures.peek('all').remaining], [1, 9])
  assert.equal((await limit.wrap(() => upgraded())(from('ada'))).status, 101)
  assert.deepEqual([slots.peek('all').remaining, failures.peek('all').remaining], [1, 9])
  assert.equal((await limit.wrap(() => Response.error())(from('ada'))).type, 'error')
  assert.deepEqual([slots.peek('all').remaining, failures.peek('all').remaining], [1, 8])
})

test('fetch: wrapped handlers get all that the server gives, and their responses headers', async () => {
  const limit = rateLimit({ policy: perDay(2), key: header('x-user') })
  const handler = limit.wrap((request: Request, info: { readonly id: number }) => new Response(`${request.method} ${info.id}`))
  const response = await handler(from('ada'), { id: 7 })
  assert.deepEqual([await response.text(), response.headers.get('ratelimit')?.slice(0, 9)], ['GET 7', '"day";r=1'])
})

test('fetch: a handler that throws is a failure, and no success', async () => {
  const limiter = createLimiter(perDay(2))
  for (const [counts, left] of [
    ['successes', 2],
    ['failures', 1],
  ] as const) {
    const handler = rateLimit({ limiter, key: () => 'all', counts }).wrap(() => {
      throw new Error('no')
    })
    await assert.rejects(handler(from('ada')), /no/)
    assert.equal(limiter.peek('all').remaining, left)
  }
})

test('fetch: an answer to HEAD and one without a body end at once', async () => {
  const limiter = createLimiter(concurrency({ limit: 1 }))
  const handler = rateLimit({ limiter, key: () => 'all' }).wrap((request) => new Response(request.method === 'HEAD' ? 'text' : null))
  for (const method of ['HEAD', 'GET', 'HEAD']) {
    assert.equal((await handler(new Request('http://localhost/', { method }))).status, 200)
  }
  assert.equal(limiter.peek('all').remaining, 1)
})

test('fetch: the option remoteAddress is checked at once, and its result at each request', async () => {
  for (const remoteAddress of ['x-real-ip', 5, null]) {
    assert.throws(() => rateLimit({ policy: perDay(1), remoteAddress: remoteAddress as never }), {
      code: 'OPTION_INVALID',
      option: 'remoteAddress',
    })
  }
  const rejects = async (): Promise<never> => {
    throw new Error('unhandled')
  }
  const reasons = await unhandledRejections(async () => {
    for (const wrong of [() => 5, async () => '192.0.2.1', rejects, () => ({ address: '192.0.2.1' })]) {
      const limit = rateLimit({ policy: perDay(1), remoteAddress: wrong as never })
      await assert.rejects(async () => limit(from('ada')), { code: 'OPTION_INVALID', option: 'remoteAddress' })
    }
  })
  assert.deepEqual(reasons, [])
  for (const none of [() => undefined, () => null]) {
    const limit = rateLimit({ policy: perDay(1), remoteAddress: none as never })
    assert.equal((await limit(from('ada')))?.status, 400)
  }
})

test('fetch: what a server gives beside the request and has no address is no fault of its own', async () => {
  const limit = rateLimit(perDay(9))
  const without = [
    null,
    5,
    {},
    { remoteAddr: null },
    { incoming: null },
    { incoming: {} },
    { remoteAddr: { hostname: 5 } },
    { server: null },
  ]
  for (const environment of [...without, { requestIP: () => null }, { remoteAddr: { transport: 'unix', path: '/x' } }]) {
    assert.equal((await limit(from('ada'), environment))?.status, 400)
  }
})

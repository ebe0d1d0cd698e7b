import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Hono } from 'hono'
import { headerOf, type PlainRequest, plainFacts, statusOf as statusNow } from 'sluicegate-testkit/adapters/http-client.js'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { rateLimit as limitFetch } from '../adapters/fetch.js'
import { rateLimit as limitHono } from '../adapters/hono.js'
import type { Awaitable } from '../awaitable.js'
import { allOf, createLimiter, gcra, tokenBucket } from '../index.js'
import { address, apiKey, compose, method } from '../keys/index.js'
import type { Denial } from './denial.js'
import type { DenialResponse } from './denial-response.js'
import { type GivenKey, keyFinder } from './key-source.js'
import { Middleware, type MiddlewareResult } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

function asking(options: MiddlewareOptions<PlainRequest>): (request?: PlainRequest) => Awaitable<MiddlewareResult> {
  const middleware = new Middleware<PlainRequest>(options)
  return (request = {}) => middleware.handle(plainFacts(request), request)
}

const statusOf = (result: Awaitable<MiddlewareResult>): number => statusNow(result as MiddlewareResult)

test('a request without a key is denied, passes, or has another key, as onMissingKey says', async () => {
  const policy = gcra({ limit: 1, window: '1h', name: 'by-user' })
  const denied = (options: object): DenialResponse => asking({ policy, onMissingKey: 'deny', ...options } as never)() as DenialResponse
  const byFunction = denied({ key: ({ user }: PlainRequest) => user })
  assert.equal(byFunction.status, 400)
  assert.deepEqual(JSON.parse(byFunction.body), {
    type: 'about:blank',
    title: 'Bad Request',
    status: 400,
    detail: 'This request does not say whose it is.',
  })
  assert.equal(headerOf(byFunction, 'Content-Type'), 'application/problem+json')
  assert.equal(headerOf(byFunction, 'Retry-After'), undefined)
  const byKey = denied({ key: apiKey() })
  assert.deepEqual([byKey.status, headerOf(byKey, 'WWW-Authenticate')], [401, 'ApiKey'])
  assert.match(byKey.body, /This request has no valid header x-api-key/)
  assert.equal(headerOf(denied({ key: apiKey({ header: 'authorization' }) }), 'WWW-Authenticate'), 'Bearer')
  assert.equal(denied({ key: [() => 'a', () => null], policy: allOf([policy, gcra({ limit: 1, window: '1m' })]) }).status, 400)
  assert.equal(denied({ key: apiKey(), status: { keyless: 418 } }).status, 418)
  const kinds: unknown[] = []
  denied({ key: apiKey(), onDenied: ({ kind, key, missing }: Denial) => void kinds.push(kind, key, missing) })
  assert.deepEqual(kinds, ['keyless', '', 'apiKey(x-api-key)'])

  const skipping = asking({ policy, key: apiKey(), onMissingKey: 'skip' })
  assert.deepEqual(
    [1, 2, 3].map(() => statusOf(skipping())),
    [200, 200, 200],
  )
  const byAddress = asking({ policy, key: apiKey(), onMissingKey: address() })
  assert.deepEqual(
    ['192.0.2.1', '192.0.2.1', '192.0.2.2'].map((from) => statusOf(byAddress({ address: from }))),
    [200, 429, 200],
  )
  const shared = asking({ policy, key: apiKey(), onMissingKey: () => 'anonymous' })
  assert.deepEqual(
    ['192.0.2.1', '192.0.2.2'].map((from) => statusOf(shared({ address: from }))),
    [200, 429],
  )
  const none = asking({ policy, key: apiKey(), onMissingKey: async () => undefined })
  assert.equal(((await none()) as DenialResponse).status, 401)
  const later = asking({ policy, key: async () => undefined, onMissingKey: 'deny' })
  assert.equal(((await later()) as DenialResponse).status, 400)
  const shadow = asking({ policy, key: apiKey(), shadow: true })
  assert.equal(statusOf(shadow()), 200)
  for (const wrong of ['denny', 5, null, {}]) {
    assert.throws(() => asking({ policy, onMissingKey: wrong as never }), { code: 'OPTION_INVALID', option: 'onMissingKey' })
  }
})

test('a denial without a key names the own policy of the limiter, whatever the request before had', () => {
  const [free, pro] = [gcra({ limit: 1, window: '1h', name: 'free' }), gcra({ limit: 1, window: '1h', name: 'pro' })]
  using limiter = createLimiter(free, { policyFor: () => pro, policies: [pro] })
  const violated: unknown[] = []
  const onDenied = (denial: Denial): undefined => void violated.push(denial.violated)
  const ask = asking({ limiter, key: ({ user }) => user, onMissingKey: 'deny', onDenied })
  for (const request of [{ user: 'ada' }, { user: 'ada' }, {}]) ask(request)
  assert.deepEqual(violated, [['pro'], ['free']])
})

test('of several limits one without a key denies before any is charged, or is left out', () => {
  const counted = createLimiter(gcra({ limit: 1, window: '1h', name: 'all' }))
  const limits = [
    { limiter: counted, key: () => 'all' },
    { policy: gcra({ limit: 1, window: '1h', name: 'user' }), key: apiKey() },
  ]
  assert.equal((asking({ limits, onMissingKey: 'deny' })() as DenialResponse).status, 401)
  assert.equal(counted.peek('all').remaining, 1)
  assert.equal(statusOf(asking({ limits, onMissingKey: 'skip' })()), 200)
  assert.equal(counted.peek('all').remaining, 0)
})

const found = (given: unknown): Awaitable<unknown> => keyFinder(() => given as GivenKey)(plainFacts({}), {})

test('a function may give a number, which is one key with its text', () => {
  assert.deepEqual([7, '7', 7n].map(found), ['7', '7', '7'])
  assert.deepEqual(found([7, 'ada']), ['7', 'ada'])
})

test('no key is none, and what can be none is a fault', () => {
  for (const none of [undefined, null, '', [], ['ada', null]]) assert.equal(found(none), undefined)
  for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, true, {}, Symbol('ada'), ['ada', {}]]) {
    assert.throws(() => found(wrong), { code: 'KEY_INVALID', option: 'key' })
  }
})

describe('whole ipv6', () => {
  freshWarnings()

  test('a function that returns a whole IPv6 address is warned of, once', async () => {
    const codes: unknown[] = []
    const listen = (warning: Error & { code?: string }): void => void codes.push(warning.code)
    process.on('warning', listen)
    let key = ''
    const find = keyFinder(() => key)
    const keys = ['203.0.113.7', '::1', 'user:7', '2001:db8:0:4200::/56', '::ffff:203.0.113.7', '00:11:22:33:44:55:66:77']
    for (key of keys) assert.equal(find(plainFacts({}), {}), key)
    await new Promise(setImmediate)
    assert.deepEqual(codes, [])
    for (key of ['2001:db8:0:4217::1', '2001:db8:0:4217::2']) assert.equal(find(plainFacts({}), {}), key)
    await new Promise(setImmediate)
    process.off('warning', listen)
    assert.deepEqual(codes, ['SLUICEGATE_IPV6_WHOLE'])
  })
})

describe('fetch address', () => {
  freshWarnings()

  const limiter = createLimiter(tokenBucket({ limit: 5, window: '1m' }))
  const CURE = /say remoteAddress, or a key that needs none/

  /** Runs as if in a runtime that is known to tell no address. */
  function onTheEdge(run: () => void): void {
    Object.assign(globalThis, { EdgeRuntime: 'edge-runtime' })
    try {
      run()
    } finally {
      Reflect.deleteProperty(globalThis, 'EdgeRuntime')
    }
  }

  test('in a runtime without addresses a limit by address is refused when it is made, with a remedy', () => {
    onTheEdge(() => {
      for (const make of [limitFetch, limitHono] as ((options: object) => unknown)[]) {
        for (const options of [{ limiter }, { limiter, key: address() }, { limits: [{ limiter, key: apiKey() }, { limiter }] }]) {
          assert.throws(() => make(options), { code: 'KEY_MISSING', option: 'key', message: CURE })
        }
        const seen = { limiter, remoteAddress: () => '192.0.2.1' }
        const others = [address({ trustedHops: 1 }), apiKey(), apiKey({ otherwise: address() }), compose(apiKey(), method())]
        for (const options of [seen, { limiter, key: () => 'all' }, ...others.map((key) => ({ limiter, key }))]) assert.ok(make(options))
      }
    })
  })

  test('in other runtimes a request without an address is denied, and one warning has a remedy', async () => {
    const warned = new Promise<Error & { code?: string }>((resolve) => process.once('warning', resolve))
    const limit = limitFetch({ limiter })
    const late = limitHono({ limiter, cost: async () => 1 })
    const answers = [
      await limit(new Request('http://a/')),
      await limit.wrap(() => new Response())(new Request('http://a/')),
      await new Hono().use(limitHono({ limiter })).request('/'),
      await new Hono().use(late).request('/'),
    ]
    for (const response of answers) {
      assert.deepEqual([response?.status, response?.headers.get('content-type')], [400, 'application/problem+json'])
      assert.ok(!CURE.test((await response?.text()) ?? ''), 'the remedy is for the application')
    }
    const { code, message } = await warned
    assert.equal(code, 'SLUICEGATE_ADDRESS_MISSING')
    assert.match(message, CURE)
  })

  test('a warning about another missing key, once for a policy, does not mention addresses', async () => {
    const warnings: (Error & { code?: string })[] = []
    const listen = (warning: Error): void => void warnings.push(warning)
    process.on('warning', listen)
    const limit = limitFetch({ limiter, key: apiKey() })
    for (let i = 0; i < 3; i++) assert.equal((await limit(new Request('http://a/')))?.status, 401)
    await new Promise(setImmediate)
    process.off('warning', listen)
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['SLUICEGATE_KEY_MISSING'],
    )
    assert.match(warnings[0]?.message ?? '', /apiKey\(x-api-key\) found no key in a request, .* say onMissingKey: 'skip'/)
    assert.doesNotMatch(warnings[0]?.message ?? '', CURE)
  })
})

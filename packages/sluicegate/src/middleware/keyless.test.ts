import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headerOf, type PlainRequest, plainFacts, statusOf as statusNow } from 'sluicegate-testkit/adapters/http-client.js'
import type { Awaitable } from '../awaitable.js'
import { allOf, createLimiter, gcra } from '../index.js'
import { address, apiKey } from '../keys/index.js'
import type { Denial } from './denial.js'
import type { DenialResponse } from './denial-response.js'
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

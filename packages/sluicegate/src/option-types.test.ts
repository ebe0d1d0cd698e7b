// What the compiler refuses because it would be refused, or count for nothing, at run time; each comment that expects an error needs one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rateLimit as limitExpress } from './adapters/express.js'
import { rateLimit as limitFastify } from './adapters/fastify.js'
import { rateLimit as limitFetch } from './adapters/fetch.js'
import { rateLimit as limitHono } from './adapters/hono.js'
import { rateLimit as limitKoa } from './adapters/koa.js'
import { RateLimit, RateLimitGuard, RateLimitModule } from './adapters/nest.js'
import { allOf, createLimiter, type Policy, PolicyError, tokenBucket } from './index.js'
import { address } from './keys/index.js'

const policy = tokenBucket({ limit: 5, window: '1m' })
const limiter = createLimiter(policy)
const key = address()

/** Options beside a spread policy, which counted for nothing: all clients shared one budget, that of their address. */
const REFUSED: Readonly<Record<string, () => unknown>> = {
  // @ts-expect-error: a copy of a policy is neither a policy nor options
  express: () => limitExpress({ ...policy, key, skip: () => true, status: 503 }),
  // @ts-expect-error
  fastify: () => limitFastify({ ...policy, key, skip: () => true, status: 503 }),
  // @ts-expect-error
  fetch: () => limitFetch({ ...policy, key, skip: () => true, status: 503 }),
  // @ts-expect-error
  hono: () => limitHono({ ...policy, key, skip: () => true, status: 503 }),
  // @ts-expect-error
  koa: () => limitKoa({ ...policy, key, skip: () => true, status: 503 }),
  // @ts-expect-error
  'RateLimitModule.forRoot': () => RateLimitModule.forRoot({ ...policy, key, skip: () => true, status: 503 }),
  // @ts-expect-error
  RateLimitGuard: () => new RateLimitGuard({ ...policy, key, skip: () => true, status: 503 }),
  // @ts-expect-error
  '@RateLimit': () => RateLimit({ ...policy, key, skip: () => true, status: 503 }),
}

for (const [name, make] of Object.entries(REFUSED)) {
  test(`${name}: options beside a spread policy are refused, with what to write instead`, () => {
    assert.throws(make, (error) => {
      assert.ok(error instanceof PolicyError)
      assert.deepEqual([error.code, error.option], ['OPTION_UNKNOWN', 'key'])
      assert.match(error.message, /\(\{ policy: tokenBucket\(\{\.\.\.\}\), key, skip, status \}\)/)
      return true
    })
  })
}

test('createLimiter, allOf and update refuse what stands beside the numbers of a policy', () => {
  // @ts-expect-error: a copy of a policy is none
  const misspelt = (): unknown => createLimiter({ ...policy, shadow: true, lmit: 5 })
  assert.throws(misspelt, { code: 'OPTION_UNKNOWN', option: 'shadow', message: /createLimiter\(policy, \{ shadow, lmit \}\)/ })
  // @ts-expect-error: nor an element
  assert.throws(() => allOf([{ ...policy, shadow: true }]), { code: 'OPTION_UNKNOWN', option: 'shadow' })
  // @ts-expect-error
  assert.throws(() => limiter.update({ ...policy, maxKeys: 5 }), { code: 'OPTION_UNKNOWN', option: 'maxKeys' })
  assert.deepEqual(limiter.policy, policy)
  // A structured clone, and one with another name, are what they look like.
  assert.deepEqual(createLimiter(structuredClone(policy)).policy, policy)
  assert.equal(createLimiter({ ...policy, name: 'other' } as Policy).policy.name, 'other')
})

test('a limit has a policy or a limiter; of several each has a cost of its own', () => {
  // @ts-expect-error: both
  assert.throws(() => limitExpress({ policy, limiter }), { option: 'policy' })
  // @ts-expect-error: both
  assert.throws(() => limitKoa({ limits: [{ policy, limiter }] }), { option: 'policy' })
  // @ts-expect-error: one limit and several
  assert.throws(() => limitHono({ policy, limits: [{ policy }] }), { option: 'policy' })
  // @ts-expect-error: whose cost
  assert.throws(() => limitFastify({ limits: [{ policy }], cost: 2 }), { option: 'cost' })
  // @ts-expect-error: whose unit
  assert.throws(() => limitFetch({ limits: [{ policy }], unit: 'requests' }), { option: 'unit' })
  // @ts-expect-error: numbers of a policy are no options
  assert.throws(() => limitExpress({ policy, limit: 5 }), { option: 'limit' })
  // @ts-expect-error: neither is its name
  assert.throws(() => limitKoa({ policy, name: 'login' }), { option: 'name' })
  // @ts-expect-error: no such option
  assert.throws(() => limitKoa({ policy, kye: key }), { option: 'kye' })
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { promisedLimiter } from 'sluicegate-testkit/adapters/harness.js'
import { headerOf, type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { unhandledRejections } from 'sluicegate-testkit/unhandled-rejections.js'
import { isPromise } from '../awaitable.js'
import { allOf, createLimiter, gcra, type Limiter, type ManualClock, manualClock, type Policy, PolicyError, tokenBucket } from '../index.js'
import { address } from '../keys/address.js'
import type { DenialResponse } from './denial-response.js'
import { Middleware, type MiddlewareResult } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

type Options = MiddlewareOptions<PlainRequest>

const TWO = tokenBucket({ name: 'two', limit: 2, window: '10s' })

/** Asks at once: whatever is a promise is a fault here. */
function asking(options: Options): (request?: PlainRequest) => MiddlewareResult {
  const middleware = new Middleware<PlainRequest>(options)
  return (request = {}) => {
    const outcome = middleware.handle(plainFacts(request), request)
    assert.ok(!isPromise(outcome), 'it answers at once')
    return outcome
  }
}

function limited(policy: Policy = TWO, clock: ManualClock = manualClock()): Limiter {
  return createLimiter(policy, { clock, maxKeys: 10 })
}

test('a request within the limit passes with the headers of draft 11', () => {
  const outcome = asking({ limiter: limited() })()
  assert.ok(outcome.passes)
  assert.deepEqual(outcome.headers, [
    ['RateLimit-Policy', '"two";q=2;w=10'],
    ['RateLimit', '"two";r=1;t=5'],
  ])
  assert.deepEqual([outcome.decision?.remaining, outcome.settle], [1, undefined])
})

test('a request above it is answered with 429, Retry-After and a problem', () => {
  const ask = asking({ limiter: limited() })
  const outcome = [ask(), ask(), ask()][2] as DenialResponse
  assert.deepEqual(
    [outcome.passes, outcome.status, headerOf(outcome, 'Retry-After'), headerOf(outcome, 'Content-Type')],
    [false, 429, '5', 'application/problem+json'],
  )
  assert.deepEqual(JSON.parse(outcome.body), {
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    title: 'Quota exceeded',
    status: 429,
    detail: 'Try again in 5 seconds.',
    'violated-policies': ['two'],
  })
  assert.equal(headerOf(outcome, 'Cache-Control'), 'no-store')
})

test('a request passes after the time in Retry-After', () => {
  const clock = manualClock()
  const ask = asking({ limiter: limited(TWO, clock) })
  const denied = [ask(), ask(), ask()][2] as DenialResponse
  clock.advance(Number(headerOf(denied, 'Retry-After')) * 1000 - 1)
  assert.equal(statusOf(ask()), 429)
  clock.advance(1)
  assert.equal(statusOf(ask()), 200)
})

test('without a key each address is counted by itself', () => {
  const ask = asking({ policy: gcra({ limit: 1, window: '1h' }) })
  const statuses = ['192.0.2.1', '192.0.2.1', '192.0.2.2', '::ffff:192.0.2.2'].map((from) => statusOf(ask({ address: from })))
  assert.deepEqual(statuses, [200, 429, 200, 429])
})

test('a key is a reader of the request’s facts, or a function of the framework’s request', () => {
  const byReader = asking({ policy: gcra({ limit: 1, window: '1h' }), key: address({ trustedHops: 1 }) })
  const from = (client: string): number => statusOf(byReader({ headers: { 'x-forwarded-for': client } }))
  assert.deepEqual([from('198.51.100.1'), from('198.51.100.1'), from('198.51.100.2')], [200, 429, 200])
  const byFunction = asking({ policy: gcra({ limit: 1, window: '1h' }), key: ({ user }) => user })
  assert.deepEqual(
    ['ada', 'ada', 'bob'].map((user) => statusOf(byFunction({ user }))),
    [200, 429, 200],
  )
})

test('a key of any length is taken, and stays apart from those like it', () => {
  const ask = asking({ policy: gcra({ limit: 1, window: '1h' }), key: ({ user }) => user })
  const long = 'x'.repeat(1_000_000)
  assert.deepEqual(
    [`${long}a`, `${long}b`, `${long}a`].map((user) => statusOf(ask({ user }))),
    [200, 200, 429],
  )
})

test('several keys are for the policies of allOf', () => {
  const both = allOf([gcra({ name: 'user', limit: 1, window: '1h' }), gcra({ name: 'all', limit: 2, window: '1h', burst: 2 })])
  const ask = asking({ limiter: limited(both), key: [({ user }) => user, () => 'everybody'] })
  assert.deepEqual(
    ['ada', 'ada', 'bob', 'cyd'].map((user) => statusOf(ask({ user }))),
    [200, 429, 200, 429],
  )
  const byFunction = asking({ limiter: limited(both), key: ({ user = '' }) => [user, 'everybody'] })
  assert.deepEqual(
    ['ada', 'ada', 'bob', 'cyd'].map((user) => statusOf(byFunction({ user }))),
    [200, 429, 200, 429],
  )
})

test('a cost is a number or a function of the request, and 0 passes uncounted', () => {
  const two = asking({ limiter: limited(), cost: 2 })
  assert.deepEqual([statusOf(two()), statusOf(two())], [200, 429])
  const ask = asking({ limiter: limited(), cost: ({ path = '' }) => path.length })
  assert.deepEqual(
    ['', 'ab', '', 'a'].map((path) => statusOf(ask({ path }))),
    [200, 200, 200, 429],
  )
  const free = ask({ path: '' })
  assert.deepEqual([free.headers, free.decision], [[], undefined])
  assert.throws(() => asking({ limiter: limited(), cost: () => 1.5 })(), PolicyError)
})

test('what skip names passes uncounted', () => {
  const limiter = limited()
  const ask = asking({ limiter, skip: ({ path }, { method }) => path === '/health' && method === 'GET' })
  for (let i = 0; i < 5; i++) assert.equal(statusOf(ask({ path: '/health' })), 200)
  assert.equal(limiter.peek('192.0.2.1').remaining, 2)
})

test('an impossible cost, a listed key and an outage differ from a denial', () => {
  const impossible = asking({ limiter: limited(), cost: 3 })() as DenialResponse
  assert.deepEqual([impossible.status, headerOf(impossible, 'Retry-After')], [422, undefined])
  assert.match(impossible.body, /#quota-exceeded.*ever allows/)
  const listed = asking({ limiter: createLimiter(TWO, { deny: ['192.0.2.1'] }) })() as DenialResponse
  assert.deepEqual([listed.status, headerOf(listed, 'Retry-After')], [403, undefined])
  assert.match(listed.body, /#abnormal-usage-detected/)
  const limiter = limited()
  const ask = asking({ limiter })
  limiter.close()
  const outage = ask() as DenialResponse
  assert.deepEqual([outage.status, headerOf(outage, 'Retry-After')], [503, '1'])
  assert.match(outage.body, /#temporary-reduced-capacity/)
})

test('a listed key is reported as such whatever its request costs', () => {
  const listed = asking({ limiter: createLimiter(TWO, { deny: ['192.0.2.1'] }), cost: 3 })() as DenialResponse
  assert.equal(listed.status, 403)
  const clock = manualClock()
  const spent = createLimiter(TWO, { clock })
  spent.take('192.0.2.1', 2)
  assert.equal(statusOf(asking({ limiter: spent, cost: 3 })()), 422)
})

test('a shadow limiter reports what kind of denial it would be', () => {
  const kinds = (limiter: Limiter, cost = 1): string[] => {
    const seen: string[] = []
    const onDenied: Options['onDenied'] = ({ kind, shadow, decision }) => void seen.push(`${kind} ${shadow} ${decision.allowed}`)
    const ask = asking({ limiter, cost, onDenied })
    assert.deepEqual([statusOf(ask()), statusOf(ask()), statusOf(ask())], [200, 200, 200])
    assert.equal(headerOf(ask(), 'RateLimit-Policy'), undefined)
    return seen.slice(0, 3)
  }
  const shadow = (more: object = {}): Limiter => createLimiter(TWO, { clock: manualClock(), shadow: true, ...more })
  assert.deepEqual(kinds(shadow()), ['denied true false', 'denied true false'])
  assert.deepEqual(kinds(shadow(), 3), Array(3).fill('impossible true false'))
  assert.deepEqual(kinds(shadow({ deny: ['192.0.2.1'] })), Array(3).fill('listed true false'))
})

test('headers of a key with a policy of its own describe that policy, also through lists and in layers', () => {
  const gold = tokenBucket({ name: 'gold', limit: 100, window: '10s', burst: 200 })
  const limiter = createLimiter(TWO, { policyFor: (key) => (key === 'ada' ? gold : undefined), allow: ['root'] })
  const ask = asking({ limiter, key: ({ user }) => user })
  assert.equal(headerOf(ask({ user: 'ada' }), 'RateLimit-Policy'), '"gold";q=200;w=20')
  assert.equal(headerOf(ask({ user: 'bob' }), 'RateLimit-Policy'), '"two";q=2;w=10')
})

test('headers of a policy that was changed describe the new one', () => {
  const limiter = limited()
  const ask = asking({ limiter })
  ask()
  limiter.update(tokenBucket({ name: 'two', limit: 20, window: '10s' }))
  assert.equal(headerOf(ask(), 'RateLimit-Policy'), '"two";q=20;w=10')
})

test('with a limiter, keys, costs, bodies and hooks that take their time the outcome is the same', async () => {
  const later: Options = {
    limiter: promisedLimiter(limited()),
    key: async () => 'key',
    cost: async () => 2,
    skip: async ({ path }) => path === '/health',
    body: async () => 'later',
    onDenied: async () => ({ status: 499 }),
  }
  const middleware = new Middleware<PlainRequest>(later)
  const first = middleware.handle(plainFacts({}), {})
  assert.ok(isPromise(first))
  assert.equal(statusOf(await first), 200)
  const denied = await middleware.handle(plainFacts({}), {})
  assert.deepEqual([statusOf(denied), (denied as DenialResponse).body], [499, 'later'])
  assert.equal(statusOf(await middleware.handle(plainFacts({}), { path: '/health' })), 200)
})

describe('failing functions', () => {
  const TWO = tokenBucket({ name: 'two', limit: 2, window: '10s' })

  test('when several functions of a request fail, one error is reported, and no rejection is unhandled', async () => {
    const rejects = async (): Promise<never> => {
      throw new Error('seen')
    }
    const throws = (): never => {
      throw new Error('seen')
    }
    const one = gcra({ name: 'one', limit: 1, window: '1h' })
    const faults: MiddlewareOptions<PlainRequest>[] = [
      { policy: TWO, cost: rejects, key: throws },
      { policy: TWO, cost: rejects, key: rejects },
      { policy: allOf([TWO, one]), key: [rejects, throws] },
      { policy: allOf([TWO, one]), key: [rejects, rejects, throws] },
      {
        limits: [
          { policy: TWO, key: rejects },
          { policy: one, key: throws },
        ],
      },
      {
        limits: [
          { policy: TWO, cost: rejects },
          { policy: one, cost: rejects, key: throws },
        ],
      },
    ]
    const reasons = await unhandledRejections(async () => {
      for (const options of faults) {
        const middleware = new Middleware<PlainRequest>(options)
        await assert.rejects(async () => middleware.handle(plainFacts({}), {}), /seen/)
      }
    })
    assert.deepEqual(reasons, [])
  })

  test('what costs nothing needs no key, whenever the cost is known', async () => {
    for (const cost of [() => 0, async () => 0]) {
      const middleware = new Middleware<PlainRequest>({ policy: TWO, cost, key: () => undefined })
      assert.equal(statusOf(await middleware.handle(plainFacts({}), {})), 200)
    }
  })
})

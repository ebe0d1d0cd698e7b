import assert from 'node:assert/strict'
import { test } from 'node:test'
import { misledLimiter, promisedLimiter } from 'sluicegate-testkit/adapters/harness.js'
import { headerOf, type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { unhandledRejections } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision/decision.js'
import { PolicyError } from '../errors.js'
import type { Limiter } from '../limiter.js'
import { allOf } from '../policy/all-of.js'
import { concurrency, fixedWindow, gcra, tokenBucket } from '../policy/single-policy.js'
import { casStore } from '../store/cas.js'
import { memoryStore } from '../store-testing/index.js'
import { manualClock } from '../time/clock.js'
import type { DenialResponse } from './denial-response.js'
import { Middleware, type MiddlewareResult } from './middleware.js'
import type { MiddlewareLimiter, MiddlewareOptions } from './middleware-options.js'

interface Gate {
  readonly user: Limiter
  readonly global: Limiter
  ask(user?: string): Promise<MiddlewareResult>
}

/** A user may take 5, all together 7; answers at once or later. */
function gate(isLater: boolean, more: Partial<MiddlewareOptions<PlainRequest>> = {}): Gate {
  const clock = manualClock()
  const user = createLimiter(tokenBucket({ name: 'user', limit: 5, window: '50s' }), { clock })
  const global = createLimiter(fixedWindow({ name: 'global', limit: 7, window: '1h' }), { clock })
  const asked = (limiter: Limiter): MiddlewareLimiter => (isLater ? promisedLimiter(limiter) : limiter)
  const middleware = new Middleware<PlainRequest>({
    limits: [
      { limiter: asked(user), key: (request) => request.user },
      { limiter: asked(global), key: () => 'all' },
    ],
    ...more,
  })
  return {
    user,
    global,
    async ask(name = 'ada') {
      const request = { user: name }
      const outcome = middleware.handle(plainFacts(request), request)
      assert.equal(outcome instanceof Promise, isLater, 'at once where everything is')
      return outcome
    },
  }
}

for (const isLater of [false, true]) {
  const how = isLater ? 'that answer later' : 'that answer at once'

  test(`of several limits ${how} the headers list all, and the strictest decides`, async () => {
    const { ask } = gate(isLater)
    const outcome = await ask()
    assert.equal(headerOf(outcome, 'RateLimit-Policy'), '"user";q=5;w=50, "global";q=7;w=3600')
    assert.equal(headerOf(outcome, 'RateLimit'), '"user";r=4;t=40, "global";r=6;t=3600')
    assert.equal(outcome.decision?.policy, 'user')
  })

  test(`of several limits ${how} one that denies costs the others nothing`, async () => {
    const { ask, user, global } = gate(isLater)
    for (let i = 0; i < 5; i++) assert.equal(statusOf(await ask()), 200)
    for (let i = 0; i < 50; i++) {
      const denied = (await ask()) as DenialResponse
      assert.equal(denied.status, 429)
      assert.deepEqual(JSON.parse(denied.body)['violated-policies'], ['user'])
      assert.equal(headerOf(denied, 'Retry-After'), '10')
    }
    assert.equal(global.peek('all').remaining, 2)
    assert.deepEqual([statusOf(await ask('bob')), statusOf(await ask('bob')), statusOf(await ask('bob'))], [200, 200, 429])
    assert.equal(user.peek('bob').remaining, 3)
  })

  test(`of several limits ${how} the response describes ${isLater ? 'the first that denies' : 'all that deny'}, and Retry-After is the longest`, async () => {
    const { ask } = gate(isLater)
    for (let i = 0; i < 5; i++) await ask()
    for (let i = 0; i < 2; i++) await ask('bob')
    const denied = (await ask()) as DenialResponse
    assert.deepEqual(JSON.parse(denied.body)['violated-policies'], isLater ? ['user'] : ['user', 'global'])
    assert.equal(headerOf(denied, 'Retry-After'), isLater ? '10' : '3600')
    assert.equal(denied.decision.policy, isLater ? 'user' : 'global')
  })

  test(`of several limits ${how}, what was taken goes back when one fails with an error`, async () => {
    const clock = manualClock()
    const slots = createLimiter(concurrency({ name: 'slots', limit: 2 }), { clock })
    const user = createLimiter(tokenBucket({ name: 'user', limit: 5, window: '50s' }), { clock })
    const fault = new Error('a fault')
    const decided: Decision = { ...user.peek('none'), policy: 'broken' }
    const fails = (): never => {
      throw fault
    }
    const broken: MiddlewareLimiter = {
      policy: gcra({ name: 'broken', limit: 1, window: '1h' }),
      peek: isLater ? async () => decided : () => decided,
      take: isLater ? async () => fails() : fails,
      refund: () => decided,
    }
    const without: MiddlewareLimiter = { ...broken, take: () => ({ ...decided, source: 'outage' }) }
    const misled: MiddlewareLimiter = { ...broken, take: () => decided, policyOf: fails }
    const asked = (limiter: Limiter): MiddlewareLimiter => (isLater ? promisedLimiter(limiter) : limiter)
    for (const limiter of [broken, without, misled]) {
      const limits = [{ limiter: asked(slots) }, { limiter: asked(user) }, { limiter }]
      const middleware = new Middleware<PlainRequest>({ limits, onOutage: fails })
      const reasons = await unhandledRejections(async () => {
        for (let i = 0; i < 10; i++) await assert.rejects(async () => middleware.handle(plainFacts({}), {}), fault)
      })
      assert.deepEqual([slots.peek('192.0.2.1').remaining, user.peek('192.0.2.1').remaining, reasons], [2, 5, []])
    }
  })

  test(`of several limits ${how}, what was taken goes back when another thread was quicker`, async () => {
    const clock = manualClock()
    const user = createLimiter(tokenBucket({ name: 'user', limit: 5, window: '50s' }), { clock })
    const slots = createLimiter(concurrency({ name: 'slots', limit: 2 }), { clock })
    const global = createLimiter(fixedWindow({ name: 'global', limit: 1, window: '1h' }), { clock })
    // Peeks still see what is gone when it is taken.
    const quick = misledLimiter(global, { allowed: true, retryAfterMs: 0 })
    global.take('192.0.2.1')
    const asked = (limiter: Limiter): MiddlewareLimiter => (isLater ? promisedLimiter(limiter) : limiter)
    const middleware = new Middleware<PlainRequest>({ limits: [{ limiter: asked(user) }, { limiter: slots }, { limiter: quick }] })
    for (let i = 0; i < 20; i++) assert.equal(statusOf(await middleware.handle(plainFacts({}), {})), 429)
    await undefined
    assert.deepEqual([user.peek('192.0.2.1').remaining, slots.peek('192.0.2.1').remaining], [5, 2])
  })
}

test('a thousand requests at once get exactly what all limits allow', async () => {
  const { ask, global } = gate(true)
  const users = Array.from({ length: 1_000 }, (_, i) => `user ${i % 100}`)
  const outcomes = await Promise.all(users.map((user) => ask(user)))
  assert.equal(outcomes.filter(({ passes }) => passes).length, 7)
  assert.equal(global.peek('all').remaining, 0)
})

test('a denial is published where the limiter publishes denials, once', async () => {
  const seen: Decision[] = []
  const clock = manualClock()
  const limiter = createLimiter(gcra({ name: 'one', limit: 1, window: '1h' }), { clock, hotKeys: 5 })
  const other = createLimiter(gcra({ name: 'two', limit: 9, window: '1h', burst: 9 }), { clock, hotKeys: 5 })
  const middleware = new Middleware<PlainRequest>({
    limits: [{ limiter }, { limiter: other }],
    onDenied: ({ decision }) => void seen.push(decision),
  })
  for (let i = 0; i < 4; i++) await middleware.handle(plainFacts({}), {})
  assert.deepEqual(
    [limiter, other].map((each) => each.hotKeys().denials.map(({ count }) => count)),
    [[3], []],
  )
  assert.equal(seen.length, 3)
})

test('a limit in shadow mode neither denies, nor appears in headers, nor keeps others from counting', async () => {
  const clock = manualClock()
  const real = createLimiter(gcra({ name: 'real', limit: 3, window: '1h', burst: 3 }), { clock })
  const dark = createLimiter(gcra({ name: 'dark', limit: 1, window: '1h' }), { clock })
  const shadows: boolean[] = []
  const middleware = new Middleware<PlainRequest>({
    limits: [{ limiter: dark, shadow: true }, { limiter: real }],
    onDenied: ({ shadow, violated }) => void shadows.push(shadow === (violated[0] === 'dark')),
  })
  const outcomes = await Promise.all([1, 2, 3, 4].map(() => middleware.handle(plainFacts({}), {})))
  assert.deepEqual(outcomes.map(statusOf), [200, 200, 200, 429])
  for (const outcome of outcomes) assert.equal(headerOf(outcome, 'RateLimit-Policy'), '"real";q=3;w=3600')
  // The last one is denied by the other limit as well.
  assert.deepEqual(shadows, [true, true, true, true])
})

test('limits that cost nothing this time are left out', async () => {
  const clock = manualClock()
  const reads = createLimiter(gcra({ name: 'reads', limit: 1, window: '1h' }), { clock })
  const writes = createLimiter(gcra({ name: 'writes', limit: 1, window: '1h' }), { clock })
  const middleware = new Middleware<PlainRequest>({
    limits: [
      { limiter: reads, cost: ({ method }) => (method === 'GET' ? 1 : 0) },
      { limiter: writes, cost: ({ method }) => (method === 'POST' ? 1 : 0) },
    ],
  })
  const status = async (method: string): Promise<number> => statusOf(await middleware.handle(plainFacts({ method }), { method }))
  assert.deepEqual([await status('GET'), await status('POST'), await status('GET'), await status('PUT')], [200, 200, 429, 200])
})

test('several limits need distinct names', () => {
  const policy = gcra({ limit: 1, window: '1h' })
  const isIt = (error: unknown): boolean => error instanceof PolicyError && error.code === 'NAME_INVALID'
  assert.throws(() => new Middleware({ limits: [{ policy }, { policy }] }), isIt)
})

test('a denial by one of two parts with one name identifies the part', async () => {
  const policy = allOf([tokenBucket({ limit: 10, window: '1m' }), tokenBucket({ limit: 10, window: '1m', burst: 1 })])
  const limiter = createLimiter(policy, { clock: manualClock() })
  const middleware = new Middleware<PlainRequest>({ limiter, key: ({ user }) => [user ?? '', 'site'] })
  const ask = async (user: string): Promise<MiddlewareResult> => middleware.handle(plainFacts({ user }), { user })
  await ask('ada')
  const { body } = (await ask('bob')) as DenialResponse
  assert.deepEqual(JSON.parse(body)['violated-policies'], ['token-bucket-10-1m 2'])
})

test('a store that none of several limits takes over is refused', () => {
  const own = createLimiter(tokenBucket({ name: 'own', limit: 5, window: '1s' }))
  const store = casStore(memoryStore())
  assert.throws(() => new Middleware({ limits: [{ limiter: own }], store }), { code: 'OPTION_INVALID', option: 'store' })
  new Middleware({ limits: [{ limiter: own }, { policy: tokenBucket({ name: 'shared', limit: 5, window: '1s' }) }], store })
})

test('a cost that one limit refuses is charged to none', () => {
  const clock = manualClock()
  const limiter = createLimiter(gcra({ name: 'one', limit: 9, window: '1h', burst: 9 }), { clock })
  const middleware = new Middleware<PlainRequest>({ limits: [{ limiter }, { policy: gcra({ limit: 1, window: '1h' }), cost: () => 0.5 }] })
  assert.throws(() => middleware.handle(plainFacts({}), {}), PolicyError)
  assert.equal(limiter.peek('192.0.2.1').remaining, 9)
})

/** A limiter as that of a fleet: peeks are calls, and what was leased is taken at once, whatever the store knows. */
function leasing(
  limiter: Limiter,
  inHand: number,
): MiddlewareLimiter & { readonly calls: { peeks: number; takes: number; refunds: number } } {
  const calls = { peeks: 0, takes: 0, refunds: 0 }
  const later = promisedLimiter(limiter)
  let held = inHand
  return {
    calls,
    policy: limiter.policy,
    peek: (key, cost) => {
      calls.peeks++
      return later.peek(key, cost)
    },
    take: (key, cost) => {
      calls.takes++
      const decision = limiter.take(key, cost)
      return held-- > 0 ? { ...decision, allowed: true, retryAfterMs: 0, source: 'lease' } : { ...decision, source: 'lease' }
    },
    refund: (key, tokens) => {
      calls.refunds++
      return later.refund(key, tokens)
    },
  }
}

test('a limit of a fleet is not looked at before it is asked, and tokens in hand are spent whatever the store knows', () => {
  const clock = manualClock()
  const store = createLimiter(fixedWindow({ name: 'fleet', limit: 10, window: '1h' }), { clock })
  // All of it is lent to this process.
  store.take('192.0.2.1', 10)
  const fleet = leasing(store, 10)
  const own = createLimiter(fixedWindow({ name: 'own', limit: 100, window: '1h' }), { clock, hotKeys: 1 })
  const middleware = new Middleware<PlainRequest>({ limits: [{ limiter: own }, { limiter: fleet }] })
  const statuses = Array.from({ length: 12 }, () => statusOf(middleware.handle(plainFacts({}), {}) as MiddlewareResult))
  assert.deepEqual(statuses, [...Array(10).fill(200), 429, 429])
  assert.ok(fleet.calls.peeks <= 1, 'once it is found out that this asks elsewhere')
  assert.equal(fleet.calls.refunds, 0)
  // What the fleet denied cost this process nothing, and nothing had to come back.
  assert.deepEqual([own.peek('192.0.2.1').remaining, own.hotKeys().demand[0]?.count], [90, 10])
})

test('what a limit of this process denies is not asked of a fleet', () => {
  const clock = manualClock()
  const fleet = leasing(createLimiter(fixedWindow({ name: 'fleet', limit: 100, window: '1h' }), { clock }), 0)
  const own = createLimiter(fixedWindow({ name: 'own', limit: 2, window: '1h' }), { clock })
  const middleware = new Middleware<PlainRequest>({ limits: [{ limiter: fleet }, { limiter: own }] })
  const statuses = Array.from({ length: 5 }, () => statusOf(middleware.handle(plainFacts({}), {}) as MiddlewareResult))
  assert.deepEqual([statuses, fleet.calls.takes], [[200, 200, 429, 429, 429], 2])
})

test('what one limit of a fleet denies is taken of none behind it, and given back by those before it', () => {
  const clock = manualClock()
  const limiters = ['first', 'second', 'third'].map((name) => {
    const limit = name === 'second' ? 1 : 5
    return createLimiter(fixedWindow({ name, limit, window: '1h' }), { clock })
  })
  const middleware = new Middleware<PlainRequest>({ limits: limiters.map((limiter) => ({ limiter: leasing(limiter, 0) })) })
  const statuses = Array.from({ length: 3 }, () => statusOf(middleware.handle(plainFacts({}), {}) as MiddlewareResult))
  assert.deepEqual(statuses, [200, 429, 429])
  assert.deepEqual(
    limiters.map((limiter) => limiter.peek('192.0.2.1').remaining),
    [4, 0, 4],
  )
})

test('what a limit took goes back when its own functions fail afterwards', () => {
  const policy = fixedWindow({ name: 'own', limit: 5, window: '1h' })
  let asked = 0
  const policyFor = (): undefined => {
    // By the take, and then for the headers.
    if (++asked === 2) throw new RangeError('a fault')
  }
  const limiter = createLimiter(policy, { clock: manualClock(), policyFor })
  const middleware = new Middleware<PlainRequest>({ limiter, counts: 'failures' })
  assert.throws(() => middleware.handle(plainFacts({}), {}), RangeError)
  assert.equal(limiter.peek('192.0.2.1').remaining, 5)
})

test('a request that another process lets pass between preview and take passes', () => {
  const clock = manualClock()
  const own = createLimiter(fixedWindow({ name: 'own', limit: 5, window: '1h' }), { clock })
  const late = createLimiter(fixedWindow({ name: 'late', limit: 1, window: '1h' }), { clock })
  const seesTooMuch = misledLimiter(late, { allowed: false, retryAfterMs: 1 })
  const middleware = new Middleware<PlainRequest>({ limits: [{ limiter: own }, { limiter: seesTooMuch }] })
  const statuses = Array.from({ length: 2 }, () => statusOf(middleware.handle(plainFacts({}), {}) as MiddlewareResult))
  assert.deepEqual([statuses, own.peek('192.0.2.1').remaining, late.peek('192.0.2.1').remaining], [[200, 429], 4, 0])
})

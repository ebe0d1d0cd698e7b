import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { everyNth, longTest, shortOrLong } from 'sluicegate-testkit'
import { headerOf, type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { limitersOfTest } from 'sluicegate-testkit/redis/own-redis.js'
import { concurrency, fixedWindow, type Policy, type SharedLimiter, slidingWindow, tokenBucket } from '../index.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { Middleware, type MiddlewareResult } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

async function store(t: TestContext) {
  const { server, limiter } = await limitersOfTest(t)
  return {
    server,
    limiter: (policy: Policy, options?: Partial<SharedOptions>): SharedLimiter => limiter(policy, { outage: 'closed', ...options }),
  }
}

function asking(options: MiddlewareOptions<PlainRequest>): (user: string) => Promise<MiddlewareResult> {
  const middleware = new Middleware<PlainRequest>({ key: ({ user }) => user, ...options })
  return async (user) => middleware.handle(plainFacts({}), { user })
}

for (const mode of ['exact', 'leased'] as const) {
  test(`over a real store, ${mode}, hundreds of requests at once get exactly what both limits allow`, async (t) => {
    const { limiter } = await store(t)
    // On a busy machine a lease of the default length may be void before it is spent, and its tokens are lost.
    const options = { mode, lease: 10_000 }
    const ask = asking({
      limits: [
        { limiter: limiter(fixedWindow({ name: 'user', limit: 40, window: '1h' }), options) },
        { limiter: limiter(fixedWindow({ name: 'all', limit: 100, window: '1h' }), options), key: () => 'all' },
      ],
    })
    const outcomes = await Promise.all(Array.from({ length: shortOrLong(300, 1_000) }, (_, i) => ask(`user ${i % 10}`)))
    assert.ok(
      outcomes.every(({ decision }) => decision?.source !== 'outage'),
      'the store answered in time',
    )
    const passed = outcomes.filter(({ passes }) => passes).length
    assert.ok(passed <= 100, `${passed} passed`)
    // Those who raced may have been denied while others held what came back.
    let more = 0
    for (let i = 0; i < 200; i++) if ((await ask(`user ${i % 10}`)).passes) more++
    assert.equal(passed + more, 100)
  })
}

test('over a real store, leased, several limits ask it for leases and for nothing else', async (t) => {
  const { limiter } = await store(t)
  const limiters = [
    tokenBucket({ name: 'user', limit: 100_000, window: '1s' }),
    tokenBucket({ name: 'all', limit: 200_000, window: '1s' }),
  ].map((policy) => limiter(policy, { mode: 'leased' }))
  const ask = asking({ limits: limiters.map((each) => ({ limiter: each })) })
  for (let i = 0; i < 1_000; i++) assert.ok((await ask('ada')).passes)
  for (const each of limiters) {
    const { storeCalls, localDecisions } = each.stats()
    assert.ok(storeCalls < 500 && localDecisions > 500, `${storeCalls} calls, ${localDecisions} decisions of leases`)
  }
})

test('over a real store what does not count comes back, and places do', async (t) => {
  const { limiter } = await store(t)
  const tokens = limiter(fixedWindow({ name: 'tokens', limit: 3, window: '1h' }))
  const slots = limiter(concurrency({ name: 'slots', limit: 1 }))
  const ask = asking({ limits: [{ limiter: tokens }, { limiter: slots }], counts: 'failures' })
  for (const status of [200, 200, 500, 200]) {
    const outcome = await ask('ada')
    assert.ok(outcome.passes)
    assert.equal(statusOf(await ask('ada')), 429, 'the place is held')
    outcome.settle?.(status)
    // In the order in which they were sent: the next answer comes after those to the giving back.
    await Promise.all([slots.peek('ada'), tokens.peek('ada')])
  }
  assert.equal((await tokens.peek('ada')).remaining, 2)
})

for (const [i, policy] of [
  fixedWindow({ name: 'window', limit: 50, window: '24h' }),
  slidingWindow({ name: 'sliding window', limit: 50, window: '24h' }),
  tokenBucket({ name: 'bucket', limit: 60, window: '1h', burst: 50 }),
].entries()) {
  everyNth(i + 1, 3)(`over a real store, of what is leased under a ${policy.name} everything comes back that does not count`, async (t) => {
    const { limiter } = await store(t)
    const leased = limiter(policy)
    const ask = asking({ limiter: leased, counts: 'failures' })
    for (let i = 0; i < 80; i++) {
      const outcome = await ask('ada')
      assert.ok(outcome.passes, `request ${i}`)
      outcome.settle?.(200)
      await leased.peek('ada')
    }
    leased.close()
    assert.ok((await limiter(policy, { mode: 'exact' }).peek('ada')).remaining >= 49)
  })
}

longTest('when a real store stops, the limiter decides, and onOutage may overrule it', async (t) => {
  const { server, limiter } = await store(t)
  const policy = tokenBucket({ name: 'p', limit: 50, window: '1s' })
  const one = (outage: 'closed' | 'open', onOutage?: 'open' | 'closed'): ((user: string) => Promise<MiddlewareResult>) =>
    asking({ limiter: limiter(policy, { mode: 'exact', outage, timeout: 300 }), ...(onOutage && { onOutage }) })
  const [shut, open, overruled] = [one('closed'), one('open'), one('closed', 'open')]
  assert.equal(headerOf(await shut('ada'), 'RateLimit-Policy'), '"p";q=50;w=1')
  await server.stop()
  const closed = await shut('ada')
  assert.equal(statusOf(closed), 503)
  assert.match(headerOf(closed, 'Retry-After') ?? '', /^[1-9]\d*$/)
  assert.deepEqual([statusOf(await open('ada')), statusOf(await overruled('ada'))], [200, 200])
})

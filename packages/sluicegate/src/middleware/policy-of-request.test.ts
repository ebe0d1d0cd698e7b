import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { longTest, RedisProcess } from 'sluicegate-testkit'
import { headerOf, type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { channelPair } from 'sluicegate-testkit/cluster/channel-pair.js'
import { type OpenClient, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { rateLimit } from '../adapters/fetch.js'
import { primary } from '../cluster/primary.js'
import { serveLimiter } from '../cluster/serve-limiter.js'
import { allOf, concurrency, createLimiter, fixedWindow, type Policy, tokenBucket } from '../index.js'
import { redis } from '../redis/redis.js'
import { Middleware, type MiddlewareResult } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

const window = '365d'
const FREE = fixedWindow({ limit: 30, window, name: 'free' })
const PRO = fixedWindow({ limit: 60, window, name: 'pro' })
const planOf = ({ user = '' }: PlainRequest): Policy => (user.startsWith('pro') ? PRO : FREE)

function asking(options: MiddlewareOptions<PlainRequest>): (user: string) => Promise<MiddlewareResult> {
  const middleware = new Middleware<PlainRequest>({ key: ({ user }) => user, ...options })
  return async (user) => middleware.handle(plainFacts({}), { user })
}

let server: RedisProcess
let open: OpenClient
before(async () => {
  server = await RedisProcess.start()
  open = await (SERVER_CLIENTS[0] as (typeof SERVER_CLIENTS)[0]).open([server])
})
after(async () => {
  await open[Symbol.asyncDispose]()
  await server.stop()
})

/** What makes the limiters of each policy. */
const MAKERS: readonly (readonly [string, () => MiddlewareOptions<PlainRequest>])[] = [
  ['memory', () => ({ policy: planOf })],
  [
    'Redis, exact',
    () => ({
      policy: async (request) => planOf(request),
      limiter: (policy) => createLimiter(policy, { store: redis(open.client), mode: 'exact' }),
    }),
  ],
  [
    'Redis, leased',
    () => ({ policy: planOf, limiter: (policy) => createLimiter(policy, { store: redis(open.client, { prefix: 'leased' }) }) }),
  ],
  [
    'node:cluster',
    () => {
      const { worker, parent } = channelPair()
      for (const policy of [FREE, PRO]) serveLimiter(policy).serve(worker)
      return { policy: planOf, limiter: (policy) => createLimiter(policy, { store: primary({ process: parent }) }) }
    },
  ],
]

for (const [name, options] of MAKERS) {
  test(`${name}: each request is limited by the policy of its plan, which its headers describe`, async () => {
    const ask = asking(options())
    for (const [user, limit] of [
      ['ada', 30],
      ['pro bob', 60],
    ] as const) {
      const outcomes = []
      for (let i = 0; i < limit + 5; i++) outcomes.push(await ask(user))
      assert.equal(outcomes.filter((outcome) => statusOf(outcome) === 200).length, limit)
      const last = outcomes.at(-1) as MiddlewareResult
      assert.match(headerOf(last, 'RateLimit-Policy') ?? '', limit === 30 ? /^"free"/ : /^"pro"/)
    }
  })
}

test('policies made anew for each request leak nothing and grant no fresh budget', async () => {
  let made = 0
  const ask = asking({
    policy: () => JSON.parse(JSON.stringify(FREE)) as Policy,
    limiter: (policy) => {
      made++
      return createLimiter(policy)
    },
  })
  let passed = 0
  for (let i = 0; i < 2_000; i++) if ((await ask('ada')).passes) passed++
  assert.deepEqual([passed, made], [30, 1])
})

longTest('the thousand and first policy is refused, and those before go on', async () => {
  let limit = 0
  const ask = asking({ policy: () => tokenBucket({ limit, window: '1h' }), limiter: (policy) => createLimiter(policy, { maxKeys: 1 }) })
  for (limit = 1; limit <= 1_000; limit++) assert.equal((await ask('ada')).passes, true)
  await assert.rejects(ask('ada'), { name: 'PolicyError', code: 'POLICY_INVALID', option: 'policy', message: /1000 different/ })
  limit = 500
  assert.equal((await ask('ada')).passes, true)
})

test('misuse is refused at once where it is known at once', () => {
  const limiter = createLimiter(FREE)
  const cases: readonly (readonly [object, string])[] = [
    [{ policy: planOf, limiter }, 'policy'],
    [{ limiter: () => limiter }, 'policy'],
    [{ policy: FREE, limiter: () => undefined }, 'limiter'],
    [{ policy: FREE, limiter: async () => limiter }, 'limiter'],
    [{ limits: [{ policy: planOf }, {}] }, 'policy'],
  ]
  for (const [options, option] of cases) {
    assert.throws(() => new Middleware(options), { name: 'PolicyError', code: 'OPTION_INVALID', option })
  }
  assert.equal(asking({ policy: FREE, limiter: createLimiter }) instanceof Function, true)
})

test('a function that makes no limiter fails the request', async () => {
  for (const wrong of [undefined, {}, Promise.resolve(createLimiter(FREE))]) {
    await assert.rejects(asking({ policy: planOf, limiter: () => wrong as never })('ada'), { code: 'OPTION_INVALID', option: 'limiter' })
  }
  for (const wrong of [5, 'free', { limit: 5 }]) {
    await assert.rejects(asking({ policy: () => wrong as never })('ada'), { code: 'POLICY_INVALID', option: 'policy' })
  }
})

test('a request for which there is no policy is denied, or passes uncounted, as one without a key does', async () => {
  const none = () => undefined as unknown as Policy
  for (const policy of [none, async () => none()]) {
    const denied = await asking({ policy, onMissingKey: 'deny' })('ann')
    assert.ok(!denied.passes)
    assert.equal(denied.status, 400)
    assert.match(denied.body, /no limit under which/)
    const both = await asking({ limits: [{ policy: planOf }, { policy, key: () => 'all', onMissingKey: 'deny' }] })('ann')
    assert.equal(both.passes, false)
  }
  for (const policy of [none, async () => none()]) {
    const result = await asking({ policy, onMissingKey: 'skip' })('ann')
    assert.deepEqual([result.passes, 'decision' in result && result.decision], [true, undefined])
  }
})

test('among several limits a chosen policy has a name of its own', async () => {
  const all = fixedWindow({ limit: 40, window, name: 'all' })
  const ask = asking({ limits: [{ policy: planOf }, { policy: all, key: () => 'all' }] })
  let passed = 0
  for (let i = 0; i < 100; i++) if ((await ask(i % 2 === 0 ? 'ada' : 'pro bob')).passes) passed++
  assert.equal(passed, 40)
  const clash = asking({ limits: [{ policy: planOf }, { policy: fixedWindow({ limit: 4, window, name: 'pro' }), key: () => 'all' }] })
  assert.equal((await clash('ada')).passes, true)
  await assert.rejects(clash('pro bob'), { code: 'NAME_INVALID' })
})

test('what does not count comes back under the policy that it was taken under', async () => {
  const ask = asking({ policy: planOf, counts: 'failures' })
  for (let i = 0; i < 100; i++) {
    const outcome = await ask('ada')
    assert.ok(outcome.passes)
    await outcome.settle?.(200)
  }
  const both = asking({ policy: () => allOf([FREE, PRO]), counts: 'failures' })
  for (let i = 0; i < 100; i++) {
    const outcome = await both('ada')
    assert.ok(outcome.passes)
    await outcome.settle?.(200)
  }
})

test('a permit of a policy chosen by request is not lost where the response is not seen', async () => {
  const slots = concurrency({ limit: 1, name: 'slots' })
  const limiter = createLimiter(slots)
  const limit = rateLimit({ policy: () => slots, limiter: () => limiter, key: () => 'all' })
  await assert.rejects(async () => limit(new Request('http://localhost/')), { code: 'OPTION_INVALID', message: /limit\.wrap/ })
  assert.equal(limiter.peek('all').remaining, 1)
  assert.equal((await limit.wrap(() => new Response('done'))(new Request('http://localhost/'))).status, 200)
})

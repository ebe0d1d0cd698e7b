import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { type RateLimiterMemory, RateLimiterRedis, RateLimiterRes, RLWrapperBlackAndWhite } from 'sluicegate/rate-limiter-flexible'
import { RedisProcess } from 'sluicegate-testkit'
import { requireRival } from '../rivals.js'
import { RIVAL_CLIENTS, type RivalClient, redisPair } from './flexible-redis.js'
import { type FlexibleLimiter, FlexibleTwins } from './flexible-twins.js'

const theirs = requireRival('rate-limiter-flexible') as {
  readonly RLWrapperBlackAndWhite: new (options: object) => FlexibleLimiter
  readonly RateLimiterRedis: new (options: object) => FlexibleLimiter
  readonly RateLimiterMemory: new (options: object) => FlexibleLimiter
}

let server: RedisProcess
before(async () => {
  server = await RedisProcess.start()
})
after(() => server.stop())

function twins(t: TestContext, options: { points?: number; blockDuration?: number } = {}): FlexibleTwins {
  const both = new FlexibleTwins({ points: 5, duration: 10, ...options })
  t.after(() => both.stop())
  return both
}

async function connected(use: (client: RivalClient) => Promise<void>, port = server.port): Promise<void> {
  const client = await (RIVAL_CLIENTS['node-redis'] as (port: number) => Promise<RivalClient>)(port)
  try {
    await use(client)
  } finally {
    client.close()
  }
}

/** What a call came to, as text that both write alike. */
async function outcomeOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    (answer) => JSON.stringify(answer),
    (reason) => (reason instanceof Error ? 'error' : `denied ${JSON.stringify(reason)}`),
  )
}

type Verb = (limiter: FlexibleLimiter) => Promise<unknown>

/** Each call of both in turn has to end alike. */
async function alike([a, b]: readonly FlexibleLimiter[], calls: readonly Verb[], plain = (text: string): string => text): Promise<void> {
  for (const [i, call] of calls.entries()) {
    const [expected, actual] = [await outcomeOf(call(a as FlexibleLimiter)), await outcomeOf(call(b as FlexibleLimiter))]
    assert.equal(plain(actual), plain(expected), `call ${i + 1}: ${call}`)
  }
}

/** Windows begin elsewhere in Redis. */
const timeless = (text: string): string => text.replace(/"msBeforeNext":[1-9][0-9]*/, '"msBeforeNext":n')

const MARKS: readonly Verb[] = [
  (limiter) => limiter.penalty('ada', 3),
  (limiter) => limiter.penalty('ada', 2),
  (limiter) => limiter.penalty('ada', 4),
  (limiter) => limiter.reward('ada', 2),
  (limiter) => limiter.penalty('ada', 30),
  (limiter) => limiter.reward('ada', 32),
  (limiter) => limiter.penalty('ada'),
  (limiter) => limiter.reward('ada', 6),
]

test('penalties and rewards tell what is consumed, to the point and beyond all points', async (t) => {
  const { theirs: a, ours: b } = twins(t)
  await alike([a, b], MARKS.slice(0, -1))
})

test('penalties and rewards in Redis tell what is consumed', (t) =>
  connected(async (client) => {
    const pair = redisPair(t, client, { points: 5, duration: 86_400, keyPrefix: 'marks' })
    await alike(pair, MARKS.slice(0, -1), timeless)
  }))

test('a lockout that is built on penalties comes at the same one', async (t) => {
  for (const most of [4, 5, 6, 12]) {
    const both = twins(t)
    const lockedAt = []
    for (const limiter of [both.theirs, both.ours]) {
      let count = 1
      while ((await limiter.penalty('ada')).consumedPoints < most) count++
      lockedAt.push(count)
    }
    assert.deepEqual(lockedAt, [most, most])
    both.stop()
  }
})

test('a block for ever is -1, in the answer to block, get and consume', async (t) => {
  const both = twins(t)
  const forEver: readonly Verb[] = [(limiter) => limiter.block('ada', 0), (limiter) => limiter.get('ada')]
  await alike([both.theirs, both.ours], forEver)
  both.advance(86_400_000)
  for (const limiter of [both.theirs, both.ours]) assert.match(await outcomeOf(limiter.consume('ada')), /^denied .*"msBeforeNext":-1/)
})

test('points may be digits, as in Redis there; other text is an error of both', (t) =>
  connected(async (client) => {
    const pair = redisPair(t, client, { points: 5, duration: 86_400, keyPrefix: 'digits' })
    const points = ['2', '3', '1', 'two', '1.5', '', '-1', '0', 1.5, Number.NaN] as `${number}`[]
    await alike(
      pair,
      points.map((each) => (limiter) => limiter.consume('ada', each)),
      (text) => timeless(text).replace(/"isFirstInDuration":\w+/, ''),
    )
  }))

const LISTS = {
  whiteList: ['white', 'both'],
  blackList: ['black', 'both'],
  isWhiteListed: (key: string) => key.startsWith('w'),
  isBlackListed: (key: string) => key.endsWith('!'),
}

const LISTED: readonly Verb[] = ['white', 'black', 'both', 'w!', 'bad!', 'ada'].flatMap((key): Verb[] => [
  (limiter) => limiter.consume(key, 2),
  (limiter) => limiter.get(key),
  (limiter) => limiter.penalty(key),
  (limiter) => limiter.reward(key),
  (limiter) => limiter.block(key, 5),
  (limiter) => limiter.get(key),
  (limiter) => limiter.delete(key),
])

for (const runActionAnyway of [false, true]) {
  test(`lists decide alike, the white one first, ${runActionAnyway ? 'also counting' : 'without counting'} who is on one`, async (t) => {
    const both = twins(t)
    const options = { ...LISTS, runActionAnyway }
    const a = new theirs.RLWrapperBlackAndWhite({ ...options, limiter: both.theirs })
    const b = new RLWrapperBlackAndWhite({ ...options, limiter: both.ours as RateLimiterMemory } as never) as never as FlexibleLimiter
    await alike([a, b], LISTED)
  })

  test(`lists decide alike over Redis, ${runActionAnyway ? 'also counting' : 'without counting'} who is on one`, (t) =>
    connected(async (client) => {
      const [inner, own] = redisPair(t, client, { points: 5, duration: 86_400, keyPrefix: `lists-${runActionAnyway}` })
      const options = { ...LISTS, runActionAnyway }
      const a = new theirs.RLWrapperBlackAndWhite({ ...options, limiter: inner })
      const b = new RLWrapperBlackAndWhite({ ...options, limiter: own } as never) as never as FlexibleLimiter
      // What is asked anyway is on its way while the next call is made.
      const calls = runActionAnyway ? LISTED.filter((_, i) => i % 7 === 0) : LISTED
      await alike([a, b], calls, timeless)
    }))
}

test('who is on a list is counted by runActionAnyway, in Redis too', (t) =>
  connected(async (client) => {
    const [inner, own] = redisPair(t, client, { points: 5, duration: 86_400, keyPrefix: 'anyway' })
    const options = { whiteList: ['ada'], runActionAnyway: true }
    const wrapped = [
      new theirs.RLWrapperBlackAndWhite({ ...options, limiter: inner }),
      new RLWrapperBlackAndWhite({ ...options, limiter: own }) as never as FlexibleLimiter,
    ]
    for (const limiter of wrapped) {
      await limiter.consume('ada', 3)
      while (((await limiter.get('ada'))?.consumedPoints ?? 0) < 3) await new Promise(setImmediate)
    }
    await alike(wrapped, [(limiter) => limiter.get('ada')], timeless)
  }))

test('in an outage the points are those of the limiter that decides: the insurance there, the share here', async (t) => {
  const gone = await RedisProcess.start()
  await connected(async ({ client }) => {
    await gone.stop()
    while ((client as { readonly isReady: boolean }).isReady) await new Promise(setImmediate)
    const options = { points: 50, duration: 86_400, keyPrefix: 'gone' }
    const insuranceLimiter = new theirs.RateLimiterMemory({ ...options, points: 5 })
    const a = new theirs.RateLimiterRedis({
      ...options,
      storeClient: client,
      useRedisPackage: true,
      rejectIfRedisNotReady: true,
      insuranceLimiter,
    })
    const b = new RateLimiterRedis({ ...options, storeClient: client as never, timeoutMs: 100 })
    t.after(() => b.close())
    const calls: Verb[] = [
      (limiter) => limiter.get('ada'),
      (limiter) => limiter.consume('ada', 2),
      (limiter) => limiter.get('ada'),
      (limiter) => limiter.consume('ada'),
      (limiter) => limiter.consume('bob'),
    ]
    await alike([a, b], calls, timeless)
    // A difference: verbs that change something by hand are for the insurance there, and reject here.
    assert.deepEqual([await outcomeOf(a.delete('ada')), await outcomeOf(b.delete('ada'))], ['true', 'error'])
    const open = new RateLimiterRedis({ ...options, storeClient: client as never, timeoutMs: 100, outage: 'open' })
    t.after(() => open.close())
    // Nothing is counted, and nothing is said to be.
    assert.deepEqual(await open.consume('ada', 2), new RateLimiterRes(0, 0, 0, false))
  }, gone.port)
})

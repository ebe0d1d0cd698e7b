import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { RateLimiterRes } from 'sluicegate/rate-limiter-flexible'
import { RedisProcess } from 'sluicegate-testkit'
import { requireRival } from '../rivals.js'
import { RIVAL_CLIENTS, type RivalClient, redisPair } from './flexible-redis.js'
import { type FlexibleLimiter, outcome } from './flexible-twins.js'

const DAY_S = 86_400
/** What may pass between two calls. */
const MOST_MS_APART = 10_000

const { RateLimiterRes: TheirRes } = requireRival('rate-limiter-flexible') as { readonly RateLimiterRes: new () => RateLimiterRes }

let server: RedisProcess
before(async () => {
  server = await RedisProcess.start()
})
after(() => server.stop())

/** How a call ended, in the terms of both. */
async function outcomeOf(call: Promise<RateLimiterRes | boolean | null>): Promise<{ how: string; res: RateLimiterRes | boolean | null }> {
  const ended = await outcome(call, TheirRes, RateLimiterRes)
  return 'denied' in ended ? { how: 'denied', res: ended.denied } : { how: 'passed', res: ended.passed }
}

type Call = (limiter: FlexibleLimiter) => Promise<RateLimiterRes | boolean | null>

/** Asks both in turn. @param blockMs what both say of the time, where that is no window, which begins elsewhere in ours. */
async function alike(
  [theirs, ours]: readonly FlexibleLimiter[],
  points: number,
  name: string,
  call: Call,
  blockMs?: number,
): Promise<void> {
  const [a, b] = [await outcomeOf(call(theirs as FlexibleLimiter)), await outcomeOf(call(ours as FlexibleLimiter))]
  assert.equal(b.how, a.how, name)
  if (a.res === null || b.res === null || typeof a.res === 'boolean' || typeof b.res === 'boolean') {
    assert.equal(b.res, a.res, name)
    return
  }
  assert.equal(b.res.remainingPoints, a.res.remainingPoints, name)
  if (a.res.consumedPoints > points) assert.ok(b.res.consumedPoints > points, name)
  else assert.equal(b.res.consumedPoints, a.res.consumedPoints, name)
  if (name.startsWith('consume') && a.how === 'passed') assert.equal(b.res.isFirstInDuration, a.res.isFirstInDuration, name)
  for (const { msBeforeNext } of [a.res, b.res]) {
    if (blockMs === undefined) assert.ok(msBeforeNext > 0 && msBeforeNext <= DAY_S * 1000, `${name}: ${msBeforeNext}`)
    else assert.ok(msBeforeNext <= blockMs && msBeforeNext > blockMs - MOST_MS_APART, `${name}: ${msBeforeNext}`)
  }
}

async function connected(name: string, use: (client: RivalClient) => Promise<void>): Promise<void> {
  const client = await (RIVAL_CLIENTS[name] as (port: number) => Promise<RivalClient>)(server.port)
  try {
    await use(client)
  } finally {
    client.close()
  }
}

for (const name of Object.keys(RIVAL_CLIENTS)) {
  test(`RateLimiterRedis and ours answer alike on one server, by ${name}`, (t) =>
    connected(name, async (client) => {
      const points = 5
      const pair = redisPair(t, client, { points, duration: DAY_S, keyPrefix: `verbs-${name}` })
      const both = (verb: string, call: Call, blockMs?: number): Promise<void> => alike(pair, points, verb, call, blockMs)
      await both('get of an unknown key', (limiter) => limiter.get('ada'))
      await both('delete of an unknown key', (limiter) => limiter.delete('ada'))
      await both('consume first', (limiter) => limiter.consume('ada', 2))
      await both('get', (limiter) => limiter.get('ada'))
      await both('penalty', (limiter) => limiter.penalty('ada', 2))
      await both('reward', (limiter) => limiter.reward('ada'))
      await both('consume the rest', (limiter) => limiter.consume('ada', 2))
      await both('consume too much', (limiter) => limiter.consume('ada'))
      await both('get of who was denied', (limiter) => limiter.get('ada'))
      await both('delete', (limiter) => limiter.delete('ada'))
      await both('consume anew', (limiter) => limiter.consume('ada', 5))
      await both('block', (limiter) => limiter.block('bob', 600), 600_000)
      await both('consume under a block', (limiter) => limiter.consume('bob'), 600_000)
      await both('get under a block', (limiter) => limiter.get('bob'), 600_000)
      await both('delete of a block', (limiter) => limiter.delete('bob'))
      await both('consume after a block', (limiter) => limiter.consume('bob'))
    }))

  test(`RateLimiterRedis and ours block at the first denial, and not longer for asking again, by ${name}`, (t) =>
    connected(name, async (client) => {
      const blockMs = 2 * DAY_S * 1000
      const pair = redisPair(t, client, { points: 2, duration: DAY_S, blockDuration: 2 * DAY_S, keyPrefix: `blocks-${name}` })
      const both = (verb: string, call: Call, ms?: number): Promise<void> => alike(pair, 2, verb, call, ms)
      await both('consume', (limiter) => limiter.consume('ada', 2))
      await both('consume too much', (limiter) => limiter.consume('ada'), blockMs)
      for (const limiter of pair) {
        let leftMs = blockMs
        while (leftMs === blockMs) leftMs = ((await outcomeOf(limiter.consume('ada'))).res as RateLimiterRes).msBeforeNext
        assert.ok(leftMs < blockMs && leftMs > blockMs - MOST_MS_APART)
      }
      // Of a denial that was under way when the key was blocked theirs tells the end of the window, and ours the block.
      for (const [side, limiter] of pair.entries()) {
        const crowd = await Promise.all([1, 2, 3, 4].map(async () => outcomeOf(limiter.consume('bob', 1))))
        assert.deepEqual(
          crowd.map(({ how }) => how),
          ['passed', 'passed', 'denied', 'denied'],
        )
        const [first, second] = crowd.slice(2).map(({ res }) => (res as RateLimiterRes).msBeforeNext)
        assert.equal(first, blockMs)
        assert.equal((second as number) <= DAY_S * 1000, side === 0, `${second}`)
      }
    }))
}

test('who is blocked by one process is not blocked longer for asking another, and is blocked anew after a delete() elsewhere', (t) =>
  connected('node-redis', async (client) => {
    const options = { points: 1, duration: DAY_S, blockDuration: 600, keyPrefix: 'each' }
    const blockMs = 600_000
    const [one, other] = [redisPair(t, client, options), redisPair(t, client, options)]
    for (const side of [0, 1] as const) {
      for (let i = 0; i < 2; i++) {
        await one[side].consume('ada')
        let leftMs = await deniedMs(one[side])
        assert.equal(leftMs, blockMs)
        while (leftMs === blockMs) leftMs = await deniedMs(one[side])
        assert.ok((await deniedMs(other[side])) < blockMs)
        assert.equal(await other[side].delete('ada'), true)
      }
    }
  }))

test('a difference: what the one has consumed in Redis is not known to the other', (t) =>
  connected('node-redis', async (client) => {
    const [theirs, ours] = redisPair(t, client, { points: 1, duration: DAY_S, keyPrefix: 'names' })
    await theirs.consume('ada')
    assert.equal(await ours.get('ada'), null)
    assert.equal((await ours.consume('ada')).consumedPoints, 1)
  }))

async function deniedMs(limiter: FlexibleLimiter): Promise<number> {
  const { how, res } = await outcomeOf(limiter.consume('ada'))
  assert.equal(how, 'denied')
  return (res as RateLimiterRes).msBeforeNext
}

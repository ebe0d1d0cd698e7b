import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { exactLimiter, type TimedLimiter } from 'sluicegate-testkit/twins/fleet-replay.js'
import { createLimiter } from '../create-limiter.js'
import { concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow } from '../index.js'
import { changedPolicy } from '../policy/policy.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { scriptedStore } from './redis.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'

// A block and what was spent are kept in one place, and know nothing of each other.

const START_MS = 1_789_000_000_000
const POLICIES: readonly Policy[] = [
  gcra({ limit: 10, window: '1m', burst: 10, name: 'policy' }),
  fixedWindow({ limit: 10, window: '1d', name: 'policy' }),
  fixedWindow({ limit: 10, window: 'month', name: 'policy' }),
  slidingWindow({ limit: 10, window: '1d', name: 'policy' }),
  slidingLog({ limit: 10, window: '1m', name: 'policy' }),
  concurrency({ limit: 10, ttl: '1m', name: 'policy' }),
]

const redis = await ownRedis()
after(() => redis.stop())
beforeEach(() => redis.send('FLUSHALL'))

function real(policy: Policy): SharedLimiter {
  return createLimiter(policy, {
    store: scriptedStore(new RedisScripts(redis.runner, new RedisKeys('blocks'))),
    mode: 'exact',
    outage: 'closed',
    timeout: 60_000,
  })
}

function timed(policy: Policy, prefix = 'timed'): TimedLimiter {
  return exactLimiter(redis.runner, prefix, policy, START_MS)
}

async function keys(): Promise<readonly string[]> {
  return (await redis.send('KEYS', '*')) as readonly string[]
}

async function leftMs(): Promise<number> {
  const names = await keys()
  assert.equal(names.length, 1)
  return Number(await redis.send('PTTL', names[0] as string))
}

for (const policy of POLICIES) {
  const { name: _, algorithm, windowMs } = policy
  const about = `${algorithm} of ${windowMs} ms`

  test(`${about}: a block has no name of its own: the one key lasts as long as the longer of both, and goes when nothing is left`, async () => {
    const limiter = real(policy)
    await limiter.block('k', '60d')
    assert.ok((await leftMs()) > 59 * 86_400_000)
    await limiter.block('k', 0)
    assert.deepEqual(await keys(), [])
    await limiter.take('k')
    const spentMs = await leftMs()
    await limiter.block('k', 1)
    const shortMs = await leftMs()
    assert.ok(shortMs > 0 && shortMs <= spentMs + 2, `${shortMs} of ${spentMs}`)
    await limiter.block('k', '60d')
    assert.ok((await leftMs()) > 59 * 86_400_000)
    await limiter.block('k', 0)
    const liftedMs = await leftMs()
    assert.ok(liftedMs > 0 && liftedMs <= spentMs + 2, `${liftedMs} of ${spentMs}`)
    await limiter.block('k', '60d')
    await limiter.reset('k')
    assert.deepEqual(await keys(), [])
  })

  test(`${about}: a block changes nothing of what was spent, nor the other way round`, async () => {
    const { limiter, set } = timed(policy)
    await limiter.take('k', 4)
    const { remaining } = await limiter.block('k', 5000)
    assert.equal(remaining, 6)
    const booked = await limiter.reserve('k', 1)
    assert.equal(booked.allowed, false)
    for (const [verb, tokens, left] of [
      ['penalize', 2, 4],
      ['refund', 1, 5],
      ['refund', 10, 10],
      ['penalize', 3, 7],
    ] as const) {
      const answer = await limiter[verb]('k', tokens)
      assert.deepEqual([answer.allowed, answer.remaining, answer.retryAfterMs], [false, left, 5000], `${verb} ${tokens}`)
    }
    assert.equal((await limiter.block('k', 3000)).retryAfterMs, 5000)
    set(START_MS + 4999)
    assert.deepEqual([(await limiter.take('k')).allowed, (await limiter.peek('k')).retryAfterMs], [false, 1])
    set(START_MS + 5000)
    const { allowed, remaining: left } = await limiter.take('k')
    assert.ok(allowed && left >= 6, `${left}`)
  })

  test(`${about}: a block of a key where nothing was spent leaves nothing spent when the clock steps back`, async () => {
    const { limiter, set } = timed(policy)
    await limiter.block('k', 5000)
    set(START_MS - 200)
    assert.equal((await limiter.peek('k')).retryAfterMs, 5000)
    assert.equal((await limiter.block('k', 0)).remaining, 10)
    assert.equal((await limiter.take('k', 10)).allowed, true)
  })

  test(`${about}: a block holds for every version of a policy, and outlasts what was spent under any of them`, async () => {
    const versions = [policy, changedPolicy(policy, { limit: 20, burst: 20 }), changedPolicy(policy, { limit: 5, burst: 5 })].map((each) =>
      timed(each, 'versions'),
    )
    await versions[0]?.limiter.take('spent', 2)
    for (const key of ['spent', 'new']) await versions[0]?.limiter.block(key, '60d')
    for (const dayMs of [0, 1, 2, 59.9].map((days) => days * 86_400_000)) {
      for (const { limiter, set } of versions) {
        set(START_MS + dayMs)
        for (const key of ['spent', 'new']) {
          assert.equal((await limiter.take(key)).allowed, false)
          await limiter.penalize(key, 1)
          await limiter.refund(key, 1)
          assert.equal((await limiter.peek(key)).retryAfterMs, 60 * 86_400_000 - dayMs, `day ${dayMs / 86_400_000}`)
        }
      }
    }
  })
}

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { exactLimiter, type TimedLimiter } from 'sluicegate-testkit/twins/fleet-replay.js'
import { createLimiter } from '../create-limiter.js'
import type { Permit } from '../decision/permit.js'
import { allOf, concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { scriptedStore } from './redis.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'

// Faults that other limiters over a store have had, of the server's own time, names and scripts; those of any store are in the suite of all stores.

const START_MS = 1_789_000_000_000
const DAY_MS = 86_400_000

const redis = await ownRedis()
after(() => redis.stop())
let limiters = 0

function timed(policy: Policy): TimedLimiter {
  return exactLimiter(redis.runner, `traps ${++limiters}`, policy, START_MS)
}

/** At the server's own time; several of them with one prefix are as many processes. */
function real(policy: Policy, prefix = `traps ${++limiters}`): SharedLimiter {
  return createLimiter(policy, {
    store: scriptedStore(new RedisScripts(redis.runner, new RedisKeys(prefix))),
    mode: 'exact',
    outage: 'closed',
    timeout: 60_000,
  })
}

async function admitted(limiter: SharedLimiter, times: number, cost = 1): Promise<number> {
  const answers = await Promise.all(Array.from({ length: times }, () => limiter.take('k', cost)))
  return answers.filter(({ allowed }) => allowed).length
}

test('a key of a window of 30 days, more than 2^31 ms, ends with it', async () => {
  const limiter = real(tokenBucket({ limit: 1, window: '30d', name: 'month' }), 'month')
  await limiter.take('k')
  const leftMs = Number(await redis.send('PTTL', 'month:rate:month:{k}'))
  assert.ok(leftMs > 29.9 * DAY_MS && leftMs <= 30 * DAY_MS + 2, `${leftMs}`)
})

test('counters do not run over: 65,535 and more, and penalties on top, are not 0', async () => {
  for (const make of [fixedWindow, slidingWindow]) {
    const { limiter } = timed(make({ limit: 65_535, window: '1s' }))
    await limiter.take('k', 65_535)
    for (const tokens of [1, 65_536, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER, 1e300]) {
      await limiter.penalize('k', tokens)
      assert.equal((await limiter.take('k')).allowed, false)
    }
  }
})

test('a union charges none when one refuses: 50 calls, of which 1 passes', async () => {
  const limiter = real(
    allOf([gcra({ limit: 1, window: '1h', burst: 1, name: 'one' }), fixedWindow({ limit: 100, window: '30d', name: 'many' })]),
  )
  assert.equal(await admitted(limiter, 50), 1)
  assert.equal((await limiter.peek('k')).parts?.[1]?.remaining, 99)
})

test('checks and updates are one step: 8 processes at once never pass the limit, of one policy or of several', async () => {
  for (const policy of [
    tokenBucket({ limit: 1, window: '30d', burst: 50 }),
    fixedWindow({ limit: 50, window: '30d' }),
    slidingWindow({ limit: 50, window: '30d' }),
    slidingLog({ limit: 50, window: '30d' }),
    concurrency({ limit: 50, ttl: '1h' }),
    allOf([slidingLog({ limit: 50, window: '30d', name: 'a' }), tokenBucket({ limit: 1, window: '30d', burst: 60, name: 'b' })]),
  ]) {
    const fleet = Array.from({ length: 8 }, () => real(policy, `at once ${policy.name}`))
    const passed = await Promise.all(fleet.map((limiter) => admitted(limiter, 20)))
    assert.equal(
      passed.reduce((a, b) => a + b),
      50,
      policy.algorithm,
    )
  }
})

test('each answer is its caller’s own: 10 at once, limit 5, 5 admitted, each with another remainder', async () => {
  const limiter = real(fixedWindow({ limit: 5, window: '30d' }))
  const answers = await Promise.all(Array.from({ length: 10 }, () => limiter.take('k')))
  assert.deepEqual(
    answers.filter(({ allowed }) => allowed).map(({ remaining }) => remaining),
    [4, 3, 2, 1, 0],
  )
})

test('a server that forgot its scripts gets them with the next call, which is charged once', async () => {
  const limiter = real(tokenBucket({ limit: 10, window: '30d' }))
  for (let round = 0; round < 3; round++) {
    await redis.send('SCRIPT', 'FLUSH')
    assert.equal((await limiter.take('k')).remaining, 9 - round)
  }
})

test('the time is the server’s: a host whose clock is off by years decides as the others do', async () => {
  const { now } = Date
  for (const policy of [
    tokenBucket({ limit: 10, window: '1h' }),
    fixedWindow({ limit: 10, window: '30d' }),
    fixedWindow({ limit: 10, window: 'year' }),
    slidingWindow({ limit: 10, window: '30d' }),
    slidingLog({ limit: 10, window: '1h' }),
    concurrency({ limit: 10, ttl: '1h' }),
  ]) {
    let left = 10
    try {
      for (const offMs of [0, 10 * 365 * DAY_MS, -10 * 365 * DAY_MS, 3_600_000, 366 * DAY_MS, -366 * DAY_MS]) {
        Date.now = () => now() + offMs
        const limiter = real(policy, `skew ${policy.name}`)
        assert.equal((await limiter.take('k')).remaining, --left, `${policy.name}, off by ${offMs}`)
      }
    } finally {
      Date.now = now
    }
  }
})

test('names and keys that look alike once joined do not share a counter', async () => {
  for (const [name, key] of [
    ['a_b', 'c'],
    ['a', 'b_c'],
    ['a:b', 'c'],
    ['a', 'b:c'],
    ['a', '{b}c'],
    ['a', 'b}c'],
  ] as const) {
    const limiter = real(fixedWindow({ limit: 1, window: '30d', name }), 'joined')
    assert.equal((await limiter.take(key)).allowed, true, `${name} ${key}`)
  }
})

test('two equal policies of one allOf, about a user and his team, keep a counter each', async () => {
  const ten = tokenBucket({ limit: 10, window: '30d' })
  const limiter = real(allOf([ten, ten]))
  await limiter.take(['a', 'b'], 4)
  assert.deepEqual(
    (await limiter.peek(['b', 'a'])).parts?.map(({ remaining }) => remaining),
    [10, 10],
  )
  assert.deepEqual(
    (await limiter.peek(['a', 'b'])).parts?.map(({ remaining }) => remaining),
    [6, 6],
  )
})

test('permits among other policies are booked, returned and released without changing the counts of the others', async () => {
  const limiter = real(
    allOf([
      concurrency({ limit: 5, ttl: '1h', name: 'places' }),
      tokenBucket({ limit: 10, window: '30d', name: 'rate' }),
      fixedWindow({ limit: 10, window: 'year', name: 'year' }),
      slidingLog({ limit: 10, window: '30d', name: 'log' }),
    ]),
  )
  const left = async (): Promise<unknown> => (await limiter.peek('k')).parts?.map(({ remaining }) => remaining)
  const booking = await limiter.reserve('k', 3)
  assert.deepEqual([booking.allowed, await left()], [true, [2, 7, 7, 7]])
  await booking.settle(1)
  assert.deepEqual(await left(), [4, 9, 9, 9])
  const permit = (await limiter.take('k', 2)) as Permit<'later'>
  assert.deepEqual([permit.allowed, await left()], [true, [2, 7, 7, 7]])
  assert.deepEqual([await permit.heartbeat(), await permit.release(), await permit.release()], [true, true, false])
  assert.deepEqual(await left(), [4, 7, 7, 7])
})

test('a log can be refunded, penalized and settled on servers that let no stream’s last id go back', async () => {
  const { limiter } = timed(slidingLog({ limit: 10, window: '1h', name: 'log' }))
  await redis.send('ACL', 'SETUSER', 'default', '-xsetid')
  try {
    for (let i = 0; i < 5; i++) await limiter.take('k', 2)
    assert.equal((await limiter.refund('k', 3)).remaining, 3)
    assert.equal((await limiter.penalize('k', 1)).remaining, 2)
    assert.equal((await (await limiter.reserve('k', 2)).cancel()).remaining, 2)
    assert.equal((await limiter.take('k', 2)).remaining, 0)
  } finally {
    await redis.send('ACL', 'SETUSER', 'default', '+xsetid')
  }
})

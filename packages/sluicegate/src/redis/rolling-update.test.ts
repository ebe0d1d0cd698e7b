import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ALGORITHM_NAMES, everyNth, Random, seedsFrom, shortOrLong, versionedOracleFor } from 'sluicegate-testkit'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { compareTwins } from 'sluicegate-testkit/twins/compare-twins.js'
import { exactLimiter } from 'sluicegate-testkit/twins/fleet-replay.js'
import { concurrency, fixedWindow, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'

/** Of each algorithm. */
const SEQUENCES = shortOrLong(4, 10)
/** How often two versions take turns on a key. */
const TURNS = shortOrLong(5, 10)
const START_MS = 1_789_000_000_000

const redis = await ownRedis()
after(() => redis.stop())

interface Pair {
  readonly name: string
  readonly large: Policy
  readonly small: Policy
}

function pair<Options extends object>(
  name: string,
  make: (options: Options) => Policy,
  large: NoInfer<Options>,
  small: NoInfer<Options>,
): Pair {
  return { name, large: make({ ...large, name: 'api' }), small: make({ ...small, name: 'api' }) }
}

/** Two versions of one policy, the first of which lets more pass at once. */
const PAIRS: readonly Pair[] = [
  pair('a rate with another burst', tokenBucket, { limit: 10, window: '1s', burst: 100 }, { limit: 10, window: '1s', burst: 10 }),
  pair('a rate with another limit', tokenBucket, { limit: 100, window: '10s' }, { limit: 7, window: '3s' }),
  pair('a fixed window with another limit', fixedWindow, { limit: 100, window: '10s' }, { limit: 10, window: '10s' }),
  pair('a fixed window of another length', fixedWindow, { limit: 100, window: '1h' }, { limit: 10, window: '1m' }),
  pair('a sliding window with another limit', slidingWindow, { limit: 100, window: '10s' }, { limit: 10, window: '10s' }),
  pair('a sliding window of another length', slidingWindow, { limit: 100, window: '10s' }, { limit: 10, window: '1s' }),
  pair('a log with another limit', slidingLog, { limit: 100, window: '10s' }, { limit: 10, window: '10s' }),
  pair('a log of another length', slidingLog, { limit: 100, window: '1h' }, { limit: 10, window: '1s' }),
  pair('permits with another limit and time', concurrency, { limit: 100, ttl: '10s' }, { limit: 10, ttl: '20s' }),
]

for (const [i, algorithm] of ALGORITHM_NAMES.filter((name) => name !== 'sliding-log' && name !== 'concurrency').entries()) {
  everyNth(i, 2)(
    `${algorithm}: two versions that take turns on a key are each answered as if all had been their own, field by field`,
    async () => {
      const options = { algorithm, seeds: seedsFrom(1, SEQUENCES), prefix: 'turns', updates: 'turns' as const, oracle: versionedOracleFor }
      const { sequences, mismatches } = await compareTwins(redis.runner, options)
      assert.deepEqual(mismatches.slice(0, 3), [])
      assert.equal(sequences, SEQUENCES)
    },
  )
}

for (const [i, { name, large, small }] of PAIRS.entries()) {
  const versions = (prefix: string) => [large, small].map((policy) => exactLimiter(redis.runner, `${prefix} ${name}`, policy))

  everyNth(i, 2)(
    `${name}: what the smaller version lets off, the larger one still knows: no fresh burst, however they take turns`,
    async () => {
      for (const touch of ['take', 'peek', 'refund', 'penalize'] as const) {
        const [first, second] = versions(`off ${touch}`)
        assert.ok(first && second)
        let passed = 0
        for (let turn = 0; turn < TURNS; turn++) {
          for (const each of [first, second]) each.set(START_MS + turn)
          for (let i = 0; i < 12; i++) if ((await first.limiter.take('k', 10)).allowed) passed += 10
          if (touch === 'take' || touch === 'peek') await second.limiter[touch]('k')
          else await second.limiter[touch]('k', 1)
        }
        // A refund gives back what it says, and no more.
        assert.ok(passed <= 100 + (touch === 'refund' ? TURNS : 0), `${passed} by ${touch}`)
        assert.ok(passed >= 100)
      }
    },
  )

  everyNth(i, 3)(`${name}: what the larger version takes fills the limit of the smaller one, and leaves no debt behind`, async () => {
    const [first, second] = versions('fill')
    assert.ok(first && second)
    const freshMs = Math.max(2 * small.windowMs, (small.windowMs * small.burst) / small.limit)
    const stepMs = small.windowMs / 20
    let nowMs = START_MS
    let passed = 0
    for (let turn = 0; turn < shortOrLong(50, 100); turn++) {
      nowMs += stepMs
      for (const each of [first, second]) each.set(nowMs)
      await second.limiter.take('k')
      for (let takes = 0; takes < 12; takes++) if ((await first.limiter.take('k', 10)).allowed) passed += 10
    }
    assert.ok(passed >= 90)
    const own = await second.limiter.peek('k')
    assert.ok(own.resetAfterMs <= freshMs, `full after ${own.resetAfterMs} ms`)
    second.set(nowMs + own.retryAfterMs)
    assert.equal((await second.limiter.take('k')).allowed, true)
  })

  everyNth(i + 1, 3)(`${name}: a penalty by one version is one to the other`, async () => {
    const [first, second] = versions('penalty')
    assert.ok(first && second)
    for (const each of [first, second]) each.set(START_MS)
    await first.limiter.take('k')
    await second.limiter.take('k')
    await first.limiter.penalize('k', 50)
    const once = (await second.limiter.peek('k')).resetAfterMs
    await first.limiter.penalize('k', 50)
    const { remaining, resetAfterMs } = await second.limiter.peek('k')
    assert.equal(remaining, 0)
    // Windows are full when they end, at any debt, and a slot has only one end.
    if (small.algorithm === 'token-bucket') assert.ok(resetAfterMs > once && once > (small.windowMs * small.burst) / small.limit)
  })

  everyNth(i + 2, 3)(`${name}: a version that is new to a key finds at most its limit spent, and no more than was`, async () => {
    const [first, second] = versions('new')
    assert.ok(first && second)
    for (const each of [first, second]) each.set(START_MS)
    await first.limiter.take('some', 4)
    assert.equal((await second.limiter.peek('some')).remaining, small.burst - 4)
    await first.limiter.take('all', 100)
    const { allowed, resetAfterMs } = await second.limiter.take('all')
    assert.equal(allowed, false)
    assert.ok(resetAfterMs <= 2 * Math.max(small.windowMs, large.windowMs))
  })
}

for (const { name, large, small } of PAIRS.filter(({ large }) => large.algorithm === 'sliding-log')) {
  test(`${name}: of two versions that take turns each keeps its limit in every position of its window, counting what both let pass`, async () => {
    for (let seed = 1; seed <= shortOrLong(3, 10); seed++) {
      const random = new Random(seed)
      const each = [large, small].map((policy) => exactLimiter(redis.runner, `turns ${name} ${seed}`, policy))
      const passed: { readonly atMs: number; readonly cost: number }[] = []
      let nowMs = START_MS
      let decided = 0
      for (let i = 0; i < 200; i++) {
        nowMs += random.pick([0, 0, 1, 50, 200, 1000, small.windowMs, random.chance(0.1) ? large.windowMs / 3 : 7])
        const turn = i < 2 ? i : random.integer(0, 1)
        const [policy, cost] = [turn === 0 ? large : small, random.pick([1, 1, 1, 2, 5, 10])]
        each[turn]?.set(nowMs)
        if ((await each[turn]?.limiter.take('k', cost))?.allowed !== true) continue
        passed.push({ atMs: nowMs, cost })
        decided++
        const inWindow = passed.filter(({ atMs }) => atMs > nowMs - policy.windowMs).reduce((sum, { cost }) => sum + cost, 0)
        assert.ok(inWindow <= policy.limit, `seed ${seed}, step ${i}: ${inWindow} of ${policy.limit}`)
      }
      assert.ok(decided > 20)
    }
  })
}

test('unused policy numbers are forgotten after an hour, or when their spent tokens have refilled', async () => {
  const [old, next] = [100, 10].map((burst) =>
    exactLimiter(redis.runner, 'forgotten', tokenBucket({ limit: 10, window: '1s', burst, name: 'api' })),
  )
  assert.ok(old && next)
  const value = async (): Promise<string> => String(await redis.send('GET', `forgotten:rate:${'api'}:{k}`))
  old.set(START_MS)
  await old.limiter.take('k', 50)
  for (const ms of [1, 1_800_000, 3_600_000]) {
    next.set(START_MS + ms)
    await next.limiter.take('k')
    assert.equal((await value()).split('|').length, 2)
  }
  next.set(START_MS + 3_600_002)
  await next.limiter.take('k')
  assert.equal((await value()).split('|').length, 1)
})

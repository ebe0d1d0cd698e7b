import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { after, describe, test } from 'node:test'
import { longTest, type SinglePolicySpec, shortOrLong } from 'sluicegate-testkit'
import { assertWithin, FLEETS, leasedFleet, leasedJobs } from 'sluicegate-testkit/leases/leased-fleet.js'
import type { LeasedJob } from 'sluicegate-testkit/leases/leased-process.js'
import { holdingTokens, ManualAuthority } from 'sluicegate-testkit/leases/manual-authority.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import type { ChannelMessages } from '../decision/diagnostics.js'
import { allOf, fixedWindow, type Key, type Policy, type SharedLimiter, slidingLog, tokenBucket } from '../index.js'
import { redis as redisStore } from './index.js'

// Real processes that share a key. A leased token was spent when the machine's monotonic clock said so as it was decided. A take of the store
// was decided between its question and its answer: an answer that comes late moves it into another interval only in the eyes of its caller. So
// an interval counts what lies within it for sure, which on a machine of any speed is nothing beyond the budget.

const redis = await ownRedis()
after(() => redis.stop())

function jobs(count: number, spec: SinglePolicySpec, more: Partial<LeasedJob> = {}): LeasedJob[] {
  return leasedJobs(redis.server.url, count, spec, more)
}

for (const [count, spec] of FLEETS) {
  // A short run has a rate; twins.test.ts has all.
  const inTime = spec.algorithm === 'token-bucket' ? test : longTest
  inTime(
    `I1: ${count} processes whose clocks differ by minutes never let more pass than a ${spec.algorithm} of ${spec.limit}`,
    async (t) => {
      await redis.send('FLUSHALL')
      const workers = await leasedFleet(jobs(count, spec))
      assertWithin(spec, await Promise.all(workers.map(({ report }) => report)), t)
    },
  )
}

longTest(
  'a process that is stopped for longer than a lease with tokens in hand spends what it has left, and the budget holds',
  async (t) => {
    await redis.send('FLUSHALL')
    // A lease is good for 400 ms, for which 40 tokens of the burst are not lent.
    const spec = { algorithm: 'token-bucket', limit: 100, windowMs: 1000, burst: 300 } as const
    const all = { horizonMs: 200, forMs: shortOrLong(3500, 4000), quietUntilMs: 3200 }
    const [holder, other] = await leasedFleet([...jobs(1, spec, { ...all, first: 150 }), ...jobs(1, spec, all)])
    await new Promise((resolve) => setTimeout(resolve, 700))
    holder?.child.kill('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 2000))
    holder?.child.kill('SIGCONT')
    const reports = await Promise.all([holder?.report, other?.report])
    assert.ok(reports.every((report) => report !== undefined))
    assertWithin(spec, reports, t)
  },
)

longTest('a process that is stopped again and again while it spends never goes over the budget with the others', async (t) => {
  await redis.send('FLUSHALL')
  const spec = { algorithm: 'token-bucket', limit: 200, windowMs: 1000, burst: 200 } as const
  const paced = jobs(2, spec, { perSecond: 150, forMs: 3000, horizonMs: 200 })
  const [stopped, ...others] = await leasedFleet([...paced, ...jobs(1, spec, { forMs: 3000, horizonMs: 200 })])
  for (const forMs of [150, 300, 600]) {
    await new Promise((resolve) => setTimeout(resolve, 300))
    stopped?.child.kill('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, forMs))
    stopped?.child.kill('SIGCONT')
  }
  const reports = await Promise.all([stopped, ...others].map((worker) => worker?.report))
  assert.ok(reports.every((report) => report !== undefined))
  assertWithin(spec, reports, t)
})

longTest('I9: of a process that is killed only what it held is lost: the others go on within the budget', async (t) => {
  await redis.send('FLUSHALL')
  const spec = { algorithm: 'token-bucket', limit: 500, windowMs: 1000, burst: 200 } as const
  const [killed, ...others] = await leasedFleet(jobs(shortOrLong(2, 3), spec, { forMs: shortOrLong(1300, 2500) }))
  await new Promise((resolve) => setTimeout(resolve, 500))
  killed?.child.kill('SIGKILL')
  assert.equal(await killed?.report, undefined)
  const spent = assertWithin(spec, await Promise.all(others.map(({ report }) => report)), t)
  const times = spent.map(({ toUs }) => toUs)
  assert.ok(Math.max(...times) - Math.min(...times) > 600_000, 'those who are left are served after that')
})

// Many processes on one key, a network of a fifth of a millisecond each way, and time that only the test moves.

const STEP_MS = 0.2

interface Shares {
  readonly spent: readonly number[]
  readonly sum: number
  /** Jain's index of fairness: 1 when all got the same, 1/n when one got all. */
  readonly jain: number
  readonly callsPerToken: number
}

/** Each process asks evenly, `perSecond` times a second. */
async function shared(policy: Policy, perSecond: readonly number[], seconds: number): Promise<Shares> {
  const authority = new ManualAuthority({ policy, processes: perSecond.length, delayMs: STEP_MS })
  const { clock, fleet } = authority
  const startMs = clock.nowMs()
  const spent = perSecond.map(() => 0)
  const asked = perSecond.map((_, i) => i / perSecond.length)
  for (let ms = 0; ms < seconds * 1000; ms += STEP_MS) {
    clock.set(startMs + ms)
    await new Promise((resolve) => setImmediate(resolve))
    for (const [i, takes] of fleet.entries()) {
      for (; ((asked[i] as number) * 1000) / (perSecond[i] as number) <= ms; (asked[i] as number)++) {
        const decision = takes.take('k', 1)
        const count = (allowed: boolean): void => {
          spent[i] = (spent[i] as number) + Number(allowed)
        }
        if (decision instanceof Promise) void decision.then(({ allowed }) => count(allowed))
        else count(decision.allowed)
      }
    }
  }
  const sum = spent.reduce((total, each) => total + each, 0)
  const squares = spent.reduce((total, each) => total + each * each, 0)
  return { spent, sum, jain: (sum * sum) / (spent.length * squares), callsPerToken: (authority.leases + authority.atOnce) / sum }
}

test('eight processes of equal demand above the budget get equal shares, of nearly all of it, with few calls', async (t) => {
  const shares = await shared(tokenBucket({ limit: 500, window: '1s', burst: 100 }), Array(8).fill(125), 10)
  t.diagnostic(JSON.stringify(shares))
  assert.ok(shares.jain >= 0.95)
  assert.ok(shares.sum >= 0.97 * 5050 && shares.sum <= 5100)
  assert.ok(shares.callsPerToken <= 0.4, '0.2 calls a request')
})

longTest('where a horizon holds many tokens for each process, calls a token are far below one', async (t) => {
  const shares = await shared(tokenBucket({ limit: 5000, window: '1s', burst: 1000 }), Array(8).fill(1000), 3)
  t.diagnostic(JSON.stringify(shares))
  assert.ok(shares.jain >= 0.95)
  assert.ok(shares.callsPerToken <= 0.05)
  assert.ok(shares.sum >= 0.97 * 15_500)
})

test('one process that asks all the time gets 99 % of what is lent, with at most 0.06 calls a token', async (t) => {
  const shares = await shared(tokenBucket({ limit: 500, window: '1s', burst: 1000 }), [20_000], 3)
  t.diagnostic(JSON.stringify(shares))
  assert.ok(shares.sum >= 0.99 * (950 + 1500))
  assert.ok(shares.callsPerToken <= 0.06)
})

test('one that asks for far more than its share leaves the others something', async (t) => {
  const shares = await shared(tokenBucket({ limit: 500, window: '1s', burst: 100 }), [10_000, 100, 100, 100], 5)
  t.diagnostic(JSON.stringify(shares))
  for (const spent of shares.spent.slice(1)) assert.ok(spent >= 100, 'a fifth of its demand at least')
})

longTest('demand below the budget is met in full', async (t) => {
  const shares = await shared(tokenBucket({ limit: 500, window: '1s', burst: 1000 }), Array(8).fill(50), 5)
  t.diagnostic(JSON.stringify(shares))
  assert.ok(shares.sum >= 1992 && shares.jain > 0.999)
})

describe('leased changes', async () => {
  // What the other verbs do to leases that are held in this process; what they do to those of others: leased-elsewhere.test.ts.

  const redis = await ownRedis()
  after(() => redis.stop())
  const { client } = redis

  function limiterOf(policy: Policy): SharedLimiter {
    return createLimiter(policy, { store: redisStore(client), timeout: 10_000, outage: 'closed', lease: 1000 })
  }

  const POLICIES = [
    tokenBucket({ limit: 5, window: '1s', burst: 200 }),
    fixedWindow({ limit: 200, window: '30d' }),
    slidingLog({ limit: 200, window: '1d' }),
  ]

  for (const policy of POLICIES) {
    test(`${policy.algorithm}: a key that is blocked lets nothing pass here, though tokens were held`, async () => {
      using limiter = limiterOf(policy)
      await holdingTokens(limiter, 'blocked')
      await limiter.block('blocked', '1m')
      const { allowed, retryAfterMs } = await limiter.take('blocked')
      assert.equal(allowed, false)
      assert.ok(retryAfterMs > 1000 && retryAfterMs <= 60_001, `${retryAfterMs}`)
      const again = limiter.take('blocked')
      assert.ok(!(again instanceof Promise), 'which is known from then on')
      await limiter.block('blocked', 0)
      assert.equal((await limiter.take('blocked')).allowed, true)
    })

    test(`${policy.algorithm}: after a penalty nothing that was held is spent, and after a reset all is new`, async () => {
      using limiter = limiterOf(policy)
      await holdingTokens(limiter, 'punished')
      await limiter.penalize('punished', 400)
      assert.equal((await limiter.take('punished')).allowed, false)
      await limiter.reset('punished')
      const decision = await limiter.take('punished', 150)
      assert.equal(decision.allowed, true)
    })

    test(`${policy.algorithm}: a refund lets the next pass where it was known to be denied, and loses no token in hand`, async () => {
      using limiter = limiterOf(policy)
      let passed = 0
      let decision = await limiter.take('refunded')
      for (; decision.allowed; decision = await limiter.take('refunded')) passed++
      assert.ok(!(limiter.take('refunded') instanceof Promise), 'it is known to be denied')
      await limiter.refund('refunded', 20)
      assert.equal((await limiter.take('refunded')).allowed, true)
      for (let i = 0; i < 5; i++) {
        assert.equal((await limiter.take('refunded')).allowed, true, `${i}: 20 came back`)
        await limiter.refund('refunded', 1)
      }
      assert.ok(passed > 150)
    })
  }

  test('an update counts what was leased before as spent, and voids what is held', async () => {
    using limiter = limiterOf(tokenBucket({ limit: 5, window: '1s', burst: 200, name: 'updated' }))
    await holdingTokens(limiter, 'k')
    let passed = 0
    for (let next = await limiter.take('k'); next.allowed; next = await limiter.take('k')) passed++
    limiter.update(tokenBucket({ limit: 5, window: '1s', burst: 100 }))
    const { allowed, remaining } = await limiter.take('k')
    assert.deepEqual([allowed, remaining], [false, 0], 'no fresh burst')
    assert.ok(passed > 100)
  })
})

describe('leased events', async () => {
  // Events and counts of leased takes, and of waits beside them.

  const redis = await ownRedis()
  after(() => redis.stop())

  const WINDOW = fixedWindow({ limit: 40, window: '30d', name: 'window' })
  const LOG = slidingLog({ limit: 40, window: '1d', name: 'log' })
  const CASES: readonly (readonly [Policy, Key])[] = [
    [WINDOW, 'one'],
    [LOG, 'one'],
    [allOf([WINDOW, LOG]), ['of both', 'of both']],
  ]

  function limiterOf(policy: Policy): SharedLimiter {
    return createLimiter(policy, {
      store: redisStore(redis.client),
      timeout: 10_000,
      outage: 'closed',
      hotKeys: 10,
      lease: 1000,
    })
  }

  for (const [policy, key] of CASES) {
    test(`${policy.algorithm}: each denial is published once, wherever it was decided, and each take counts as demand once`, async () => {
      const heard: ChannelMessages['sluicegate:denial'][] = []
      const hear = (event: unknown): void => void heard.push(event as ChannelMessages['sluicegate:denial'])
      using limiter = limiterOf(policy)
      subscribe('sluicegate:denial', hear)
      try {
        // Some wait for a lease, some are answered at once.
        const first = await Promise.all(Array.from({ length: 50 }, () => limiter.take(key)))
        const later = Array.from({ length: 5 }, () => limiter.take(key))
        assert.ok(later.every((answer) => !(answer instanceof Promise)))
        await limiter.take(key, 3)
        assert.equal(first.filter(({ allowed }) => allowed).length, 40)
      } finally {
        unsubscribe('sluicegate:denial', hear)
      }
      assert.deepEqual(
        heard.map(({ cost }) => cost),
        [...Array.from({ length: 15 }, () => 1), 3],
      )
      assert.ok(heard.every((event) => event.key === key && !event.decision.allowed && event.policy === event.decision.policy))
      const { demand, denials } = limiter.hotKeys()
      assert.deepEqual([demand.map(({ count }) => count), denials.map(({ count }) => count)], [[56], [16]])
      assert.equal(limiter.stats().admittedTokens, 40)
    })
  }

  for (const [policy, key] of [
    [tokenBucket({ limit: 100, window: '1s', burst: 300, name: 'waited for' }), 'k'],
    [allOf([tokenBucket({ limit: 100, window: '1s', burst: 300, name: 'one of two' }), WINDOW]), ['k', 'waited for']],
  ] as const) {
    test(`${policy.algorithm}: waits beside leases are served in order, and an impossible cost is denied at once`, async () => {
      using limiter = createLimiter(policy as Policy, {
        store: redisStore(redis.client),
        timeout: 10_000,
        outage: 'closed',
        lease: 50,
      })
      const order: number[] = []
      for (let i = 0; i < 3; i++) await limiter.take(key)
      const waits = [0, 1, 2, 3, 4].map((i) => limiter.wait(key, { maxWait: 30_000 }).then(({ allowed }) => allowed && order.push(i)))
      await Promise.all(waits)
      assert.deepEqual(order, [0, 1, 2, 3, 4])
      assert.equal((await limiter.wait(key, { cost: 1000 })).retryAfterMs, Number.POSITIVE_INFINITY)
      const controller = new AbortController()
      const blocked = limiter.block(key, '1h').then(() => limiter.wait(key, { signal: controller.signal }))
      setImmediate(() => controller.abort(new Error('enough')))
      await assert.rejects(blocked, /enough/)
      await limiter.block(key, 0)
      assert.equal((await limiter.take(key)).allowed, true)
    })
  }
})

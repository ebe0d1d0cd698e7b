import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  CREW_ALGORITHMS,
  crewFor,
  EndlessDemand,
  everyNth,
  firstOver,
  type OracleDecision,
  oracleFor,
  policyOf,
  Random,
  shortOrLong,
  windowMsOf,
} from 'sluicegate-testkit'
import type { Oracle, OracleKey } from 'sluicegate-testkit/oracle/oracle.js'
import { allOf, concurrency, createLimiter, gcra, manualClock, type Policy, preciseClock, tokenBucket } from '../index.js'

/** How many takes of `cost` pass one after another at a moment, until one is denied. They are made. */
function passingTakes(oracle: Oracle, key: OracleKey, cost: number, nowMs: number): number {
  let passed = 0
  while (oracle.take(key, cost, nowMs).allowed) passed++
  return passed
}

const WORKERS = 4
const START_MS = 1_789_000_000_000
const DAY_MS = 86_400_000
const STEPS = shortOrLong(40, 80)
const ROUNDS = shortOrLong(8, 20)

const crew = crewFor({ after }, WORKERS)

// In a short run each algorithm has one of the three at most, by turns.
for (const [i, { name, cost, specOf, keyOf }] of CREW_ALGORITHMS.entries()) {
  everyNth(i, 8)(
    `I1, I2, I3 ${name}: ${WORKERS} workers on one key admit exactly what the oracle does, round after round, whatever the clock does`,
    async () => {
      const spec = specOf(100, 1000)
      const windowMs = windowMsOf(spec)
      const clock = manualClock(START_MS)
      const limiter = createLimiter(policyOf(spec), { clock, maxKeys: 10 })
      const oracle = oracleFor(spec)
      await crew.attach({ handle: limiter.handle() })
      const random = new Random(1)
      const hot = keyOf('hot')
      let all = 0
      for (let round = 0; round < ROUNDS; round++) {
        const passed = sum(((await crew.ask({ kind: 'take', keys: [hot], rounds: 40, cost })) as number[][]).flat())
        assert.equal(passed, passingTakes(oracle, hot, cost, clock.nowMs()), `round ${round}`)
        assert.deepEqual(numbersOf(limiter.peek(hot, cost)), numbersOf(oracle.peek(hot, cost, clock.nowMs())), `round ${round}`)
        all += passed
        const toEndMs = windowMs - (clock.nowMs() % windowMs)
        // Far ahead the time base moves, too.
        const stepMs = random.pick([windowMs / 20, windowMs / 3, windowMs, toEndMs, -windowMs / 30, random.magnitude(1, 60 * DAY_MS)])
        clock.set(Math.round((clock.nowMs() + stepMs) * 1000) / 1000)
      }
      assert.ok(all > 25 * ROUNDS, `${all} passed`)
    },
  )

  everyNth(i + 1, 8)(
    `I1, I2 ${name}: ${WORKERS} workers on the same new keys at once give each key its budget, no more and no less`,
    async () => {
      const spec = specOf(7, 3_600_000)
      const limiter = createLimiter(policyOf(spec), { clock: manualClock(START_MS), maxKeys: 4000 })
      await crew.attach({ handle: limiter.handle() })
      for (let round = 0; round < 5; round++) {
        const keys = Array.from({ length: 400 }, (_, i) => keyOf(`round ${round} key ${i}`))
        const passed = (await crew.ask({ kind: 'take', keys, rounds: 3, cost })) as number[][]
        const wrong = keys.filter((_, i) => sum(passed.map((byKey) => byKey[i] ?? 0)) !== 7)
        assert.deepEqual(wrong, [])
      }
      const { keys, evictions, refusals, contentions } = limiter.stats()
      const entries = spec.algorithm === 'all-of' ? 2000 * spec.parts.length : 2000
      assert.deepEqual({ keys, evictions, refusals, contentions }, { keys: entries, evictions: 0, refusals: 0, contentions: 0 })
    },
  )

  everyNth(i + 2, 8)(
    `I1, I2 ${name}: while time passes, ${WORKERS} workers that always ask get the whole budget at each moment, and nowhere more`,
    async (t) => {
      const spec = specOf(20, 10)
      const windowUs = windowMsOf(spec) * 1000
      const oracle = oracleFor(spec)
      const clockUs = new BigInt64Array(new SharedArrayBuffer(8))
      let nowUs = START_MS * 1000
      clockUs[0] = BigInt(nowUs)
      const limiter = createLimiter(policyOf(spec), { clock: { nowMs: () => Number(Atomics.load(clockUs, 0)) / 1000 }, maxKeys: 10 })
      await crew.attach({ handle: limiter.handle(), clockUs })
      const hot = keyOf('hot')
      const demand = new EndlessDemand(crew, hot, cost)
      t.after(() => demand.end())
      const random = new Random(2)
      const expected: { readonly atUs: number; readonly cost: number }[] = []
      for (let step = 0; step < STEPS; step++) {
        for (let i = passingTakes(oracle, hot, cost, nowUs / 1000); i > 0; i--) expected.push({ atUs: nowUs, cost })
        // Once one was denied all that this moment has to give is given.
        demand.awaitDenialAt(nowUs)
        const toEndUs = windowUs - (nowUs % windowUs)
        nowUs += random.pick([
          1,
          toEndUs - 1,
          toEndUs,
          windowUs,
          random.integer(1, windowUs),
          ...Array(6).fill(random.integer(1, windowUs / 20)),
        ])
        Atomics.store(clockUs, 0, BigInt(nowUs))
      }
      for (let i = passingTakes(oracle, hot, cost, nowUs / 1000); i > 0; i--) expected.push({ atUs: nowUs, cost })
      const admissions = (await demand.end()).map((atUs) => ({ atUs, cost }))
      assert.equal(firstOver(spec, admissions), undefined)
      assert.deepEqual(admissions, expected)
      assert.ok(admissions.length > 2 * STEPS, `${admissions.length} admitted`)
    },
  )
}

for (const [name, spec, key] of [
  ['concurrency', concurrency({ limit: 14, ttl: '1h' }), 'hot'],
  ['all-of with permits, one key', allOf([concurrency({ limit: 14, ttl: '1h' }), concurrency({ limit: 16, ttl: '2h' })]), 'hot'],
  [
    'all-of with permits, a key each',
    allOf([concurrency({ limit: 16, ttl: '1h' }), concurrency({ limit: 14, ttl: '2h' })]),
    ['hot', 'too'],
  ],
] as const) {
  test(`I1, I2 ${name}: ${WORKERS} workers that take and release hold at most the limit between them, at times all of it, and in the end nothing`, async () => {
    const limiter = createLimiter(spec, { clock: manualClock(START_MS), maxKeys: 10 })
    await crew.attach({ handle: limiter.handle() })
    const inFlight = new Int32Array(new SharedArrayBuffer(4))
    const most = (await crew.ask({ kind: 'hold', key, cost: 2, rounds: 5000, inFlight })) as number[]
    assert.equal(Math.max(...most), 14)
    assert.deepEqual([inFlight[0], limiter.peek(key).remaining], [0, 14])
    assert.equal(limiter.stats().contentions, 0)
  })
}

test('an update in one thread is seen by the next take in all threads, from any thread', async (t) => {
  const limiter = createLimiter(tokenBucket({ limit: 1, window: '1h' }), { clock: manualClock() })
  const crew = crewFor(t, 2, { handle: limiter.handle() })
  for (let limit = 2; limit < 40; limit++) {
    const policy = tokenBucket({ limit, window: '1h', name: `now ${limit}` })
    if (limit % 2 === 0) limiter.update(policy)
    else await crew.ask({ kind: 'update', policy })
    const looks = (await crew.ask({ kind: 'look', key: 'k' })) as { decision: { limit: number; remaining: number }; policy: Policy }[]
    for (const look of looks) assert.deepEqual([look.decision.limit, look.decision.remaining, look.policy], [limit, limit, policy])
    assert.equal(limiter.take('other').limit, limit)
    assert.deepEqual(limiter.policy, policy)
  }
})

test('a worker knows the same keys by the same secret, and the same time by the same clock', async (t) => {
  for (const clock of [manualClock(5_000_000), preciseClock()]) {
    const limiter = createLimiter(gcra({ limit: 10, window: '1h' }), { clock })
    limiter.take('k', 4)
    limiter.block('blocked', '1h')
    const crew = crewFor(t, 1, { handle: limiter.handle() })
    const [seen] = (await crew.ask({ kind: 'look', key: 'k' })) as { decision: { remaining: number } }[]
    assert.equal(seen?.decision.remaining, 6)
    const beforeMs = limiter.peek('blocked').retryAfterMs
    const [blocked] = (await crew.ask({ kind: 'look', key: 'blocked' })) as { decision: { retryAfterMs: number } }[]
    const afterMs = limiter.peek('blocked').retryAfterMs
    // Between two readings here lies the reading there.
    assert.ok(blocked !== undefined && beforeMs >= blocked.decision.retryAfterMs && blocked.decision.retryAfterMs >= afterMs)
  }
})

function numbersOf(decision: OracleDecision): OracleDecision {
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs } = decision
  return { allowed, limit, remaining, retryAfterMs, resetAfterMs }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0)
}

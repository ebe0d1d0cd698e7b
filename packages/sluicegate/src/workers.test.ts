import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { crewFor, firstExcess, Random } from 'sluicegate-testkit'
import { createLimiter, gcra, manualClock, type Policy, preciseClock, type RateOptions, tokenBucket } from './index.js'

const ALGORITHMS: readonly (readonly [string, (options: RateOptions) => Policy])[] = [
  ['token bucket', tokenBucket],
  ['gcra', gcra],
]
const WORKERS = 4

for (const [name, policyOf] of ALGORITHMS) {
  test(`I1, I2 ${name}: ${WORKERS} workers on one key admit exactly what flows in, round after round`, async (t) => {
    const clock = manualClock(1_789_000_000_000)
    const limiter = createLimiter(policyOf({ limit: 1000, window: '1s', burst: 100 }), { clock })
    const crew = crewFor(t, WORKERS, { handle: limiter.handle() })
    for (let round = 0; round < 40; round++) {
      const passed = (await crew.ask({ kind: 'take', keys: ['hot'], rounds: 500 })) as number[][]
      assert.equal(sum(passed.flat()), round === 0 ? 100 : 50)
      assert.equal(limiter.peek('hot').remaining, 0)
      clock.advance(50)
    }
  })

  test(`I1, I2 ${name}: ${WORKERS} workers on the same new keys at once give each key its burst, no more and no less`, async (t) => {
    const clock = manualClock(1_789_000_000_000)
    const limiter = createLimiter(policyOf({ limit: 7, window: '1h' }), { clock, maxKeys: 40_000 })
    const crew = crewFor(t, WORKERS, { handle: limiter.handle() })
    for (let round = 0; round < 10; round++) {
      const keys = Array.from({ length: 2000 }, (_, i) => `round ${round} key ${i}`)
      const passed = (await crew.ask({ kind: 'take', keys, rounds: 3 })) as number[][]
      const wrong = keys.filter((_, i) => sum(passed.map((byKey) => byKey[i] ?? 0)) !== 7)
      assert.deepEqual(wrong, [])
    }
    const { keys, evictions, refusals, contentions } = limiter.stats()
    assert.deepEqual({ keys, evictions, refusals, contentions }, { keys: 20_000, evictions: 0, refusals: 0, contentions: 0 })
  })

  test(`I1, I2 ${name}: while time passes, ${WORKERS} workers that always ask get the whole budget, and no interval more`, async (t) => {
    const spec = { limit: 20_000, windowMs: 1000, burst: 40 }
    const clockUs = new BigInt64Array(new SharedArrayBuffer(8))
    const startUs = 1_789_000_000_000_000
    clockUs[0] = BigInt(startUs)
    const policy = policyOf({ limit: spec.limit, window: spec.windowMs, burst: spec.burst })
    const limiter = createLimiter(policy, { clock: { nowMs: () => Number(Atomics.load(clockUs, 0)) / 1000 } })
    const crew = crewFor(t, WORKERS, { handle: limiter.handle(), clockUs })
    const flags = new Int32Array(new SharedArrayBuffer(8))
    const asking = crew.ask({ kind: 'always-ask', key: 'hot', flags })
    const random = new Random(1)
    let lengthUs = 0
    for (let step = 0; step < 1500; step++) {
      const stepUs = random.integer(0, 100)
      Atomics.add(clockUs, 0, BigInt(stepUs))
      lengthUs += stepUs
      const asked = Atomics.load(flags, 1)
      while (Atomics.load(flags, 1) < asked + 2 * WORKERS) await nextTurn()
    }
    Atomics.store(flags, 0, 1)
    const admissions = ((await asking) as number[][]).flat().map((atUs) => ({ atUs, cost: 1 }))
    assert.equal(firstExcess(spec, admissions), undefined)
    const budget = spec.burst + Math.floor((spec.limit * lengthUs) / (spec.windowMs * 1000))
    assert.ok(admissions.length <= budget && admissions.length >= budget * 0.999, `${admissions.length} of ${budget}`)
  })
}

test('an update in one thread is seen by the next take in all, whoever makes it', async (t) => {
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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0)
}

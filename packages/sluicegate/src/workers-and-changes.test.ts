import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { crewFor, oracleFor, Random } from 'sluicegate-testkit'
import { createLimiter, gcra, manualClock, tokenBucket } from './index.js'

// Threads at work while something else changes under them: the time base, the policy, the keys in the table.

const WORKERS = 4
const HOUR_MS = 3_600_000

test('I1, I2: while the time base moves, hour after hour, workers admit what the oracle does', async (t) => {
  // A prime: the finest units there are, whose time base moves every few hours.
  const spec = { limit: 999_983, windowMs: 366 * 24 * HOUR_MS, burst: 5000 }
  for (const policyOf of [gcra, tokenBucket]) {
    const clock = manualClock(1_789_000_000_000)
    const limiter = createLimiter(policyOf({ limit: spec.limit, window: spec.windowMs, burst: spec.burst }), { clock, maxKeys: 100 })
    const oracle = oracleFor({ algorithm: 'gcra', ...spec })
    const crew = crewFor(t, WORKERS, { handle: limiter.handle() })
    const random = new Random(4)
    const keys = Array.from({ length: 10 }, (_, i) => `key ${i}`)
    for (const key of keys) assert.deepEqual(limiter.take(key, spec.burst).allowed, oracle.take(key, spec.burst, clock.nowMs()).allowed)
    for (let round = 0; round < 20; round++) {
      clock.advance(random.integer(0, 10 * HOUR_MS))
      const passed = (await crew.ask({ kind: 'take', keys, rounds: 300 })) as number[][]
      for (const [i, key] of keys.entries()) {
        let expected = 0
        while (expected < WORKERS * 300 && oracle.take(key, 1, clock.nowMs()).allowed) expected++
        assert.equal(sum(passed.map((byKey) => byKey[i] ?? 0)), expected, `round ${round}, ${key}`)
      }
    }
  }
})

test('I1, I2: a storm of updates that change nothing gives no token and takes none', async (t) => {
  const limiter = createLimiter(tokenBucket({ limit: 2000, window: '1h' }), { clock: manualClock(1_789_000_000_000), maxKeys: 200 })
  const crew = crewFor(t, 2, { handle: limiter.handle() })
  const keys = Array.from({ length: 50 }, (_, i) => `key ${i}`)
  let done = false
  const taking = crew.ask({ kind: 'take', keys, rounds: 1500 }).finally(() => {
    done = true
  })
  let updates = 0
  while (!done) {
    for (let i = 0; i < 20; i++) limiter.update(tokenBucket({ limit: 2000, window: '1h', name: `update ${updates++}` }))
    await nextTurn()
  }
  const passed = (await taking) as number[][]
  for (const i of keys.keys()) assert.equal(sum(passed.map((byKey) => byKey[i] ?? 0)), 2000)
  t.diagnostic(`${updates} updates`)
  assert.ok(updates > 100)
})

test('I7: in a crowd of workers with ever new keys, those in debt and those blocked are never let through', async (t) => {
  const limiter = createLimiter(tokenBucket({ limit: 5, window: '1h' }), { clock: manualClock(1_789_000_000_000), maxKeys: 60 })
  const abusers = Array.from({ length: 20 }, (_, i) => `abuser ${i}`)
  for (const [i, key] of abusers.entries()) {
    if (i % 2 === 0) limiter.penalize(key, 30)
    else limiter.block(key, '1h')
  }
  const crew = crewFor(t, WORKERS, { handle: limiter.handle() })
  for (let round = 0; round < 20; round++) {
    const newcomers = Array.from({ length: 500 }, (_, i) => `round ${round} newcomer ${i}`)
    const passed = (await crew.ask({ kind: 'take', keys: [...newcomers, ...abusers], rounds: 2 })) as number[][]
    assert.equal(sum(passed.flatMap((byKey) => byKey.slice(newcomers.length))), 0)
  }
  assert.ok(limiter.stats().evictions > 1000)
})

test('I1: what evictions in a crowd give away is at most what was forgotten', async (t) => {
  const burst = 6
  const limiter = createLimiter(gcra({ limit: burst, window: '1h' }), { clock: manualClock(1_789_000_000_000), maxKeys: 40 })
  const crew = crewFor(t, WORKERS, { handle: limiter.handle() })
  const keys = Array.from({ length: 200 }, (_, i) => `key ${i}`)
  const passed = sum(((await crew.ask({ kind: 'take', keys, rounds: 50 })) as number[][]).flat())
  const { evictions } = limiter.stats()
  // A key that may be forgotten would still pass a take of 1: it owes at most the burst less one.
  assert.ok(passed <= keys.length * burst + evictions * (burst - 1), `${passed} passed, ${evictions} evictions`)
})

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0)
}

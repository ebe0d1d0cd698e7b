import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crewFor, everyNth, shortOrLong } from 'sluicegate-testkit'
import { createLimiter, restoreLimiter } from '../../create-limiter.js'
import { allOf, concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../../index.js'
import type { Limiter } from '../../limiter.js'
import { manualClock } from '../../time/clock.js'

const POLICIES: readonly Policy[] = [
  tokenBucket({ limit: 10, window: '1s' }),
  gcra({ limit: 999_983, window: '10s', burst: 10 }),
  fixedWindow({ limit: 10, window: '1s' }),
  fixedWindow({ limit: 10, window: 'day', timeZone: 'Asia/Kolkata' }),
  slidingWindow({ limit: 10, window: '1s' }),
  slidingWindow({ limit: 100_000, window: '1s', name: 'wide' }),
  slidingLog({ limit: 10, window: '1s' }),
  concurrency({ limit: 10, ttl: '1s' }),
  allOf([tokenBucket({ limit: 10, window: '1s' }), slidingLog({ limit: 20, window: '10s' }), concurrency({ limit: 15, ttl: '2s' })]),
]
const START_MS = 1_789_000_000_000

/** Takes of many keys, over time. */
function use(limiter: Limiter, advance: (ms: number) => void): boolean[] {
  const passed: boolean[] = []
  for (let i = 0; i < 400; i++) {
    passed.push(limiter.take(`key ${i % 30}`, 1 + (i % 3)).allowed)
    if (i % 7 === 0) advance(13)
  }
  return passed
}

for (const policy of POLICIES) {
  test(`${policy.name}, ${policy.algorithm}: what was restored answers for ever as the original does`, () => {
    const [clock, later] = [manualClock(START_MS), manualClock(START_MS)]
    const limiter = createLimiter(policy, { clock, maxKeys: 50 })
    use(limiter, clock.advance)
    limiter.block('key 3', '1m')
    limiter.penalize('key 4', 25)
    limiter.update(policy)
    limiter.take('key 5')
    later.set(clock.nowMs())
    const restored = restoreLimiter(limiter.snapshot(), { clock: later })
    assert.deepEqual(restored.policy, limiter.policy)
    assert.deepEqual({ ...restored.stats(), decisions: {} }, { ...limiter.stats(), decisions: {} })
    for (let i = 0; i < 31; i++) assert.deepEqual(restored.peek(`key ${i}`, 2), limiter.peek(`key ${i}`, 2))
    assert.deepEqual(use(restored, later.advance), use(limiter, clock.advance))
    restored.update(policy)
    assert.equal(restored.take('another').allowed, true)
  })
}

test('a restart hands out no fresh burst, and what would have come back meanwhile has come back', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s' }), { clock, maxKeys: 10 })
  limiter.take('k', 10)
  const snapshot = limiter.snapshot()
  limiter.close()
  const restarted = restoreLimiter(snapshot, { clock: manualClock(START_MS + 300) })
  assert.equal(restarted.take('k', 4).allowed, false)
  assert.equal(restarted.take('k', 3).allowed, true)
})

test('a permit of a process that is gone comes back by its time to live, also after a restart', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(concurrency({ limit: 1, ttl: '10s' }), { clock, maxKeys: 10 })
  limiter.take('k')
  const later = manualClock(START_MS + 9_999)
  const restarted = restoreLimiter(limiter.snapshot(), { clock: later })
  assert.equal(restarted.take('k').retryAfterMs, 1)
  later.advance(1)
  assert.equal(restarted.take('k').allowed, true)
})

test('a snapshot that is damaged anywhere is refused, and so is anything else', () => {
  const limiter = createLimiter(slidingWindow({ limit: 5, window: '1m' }), { clock: manualClock(START_MS), maxKeys: 10 })
  for (let i = 0; i < 20; i++) limiter.take(`key ${i}`)
  const snapshot = limiter.snapshot()
  const refused = { name: 'PolicyError', code: 'SNAPSHOT_INVALID', option: 'snapshot' }
  for (let at = 0; at < snapshot.length; at++) {
    const damaged = snapshot.slice()
    damaged[at] = (damaged[at] as number) ^ (1 << (at % 8))
    assert.throws(() => restoreLimiter(damaged), refused, `byte ${at}`)
  }
  for (let length = 0; length < snapshot.length; length++) assert.throws(() => restoreLimiter(snapshot.slice(0, length)), refused)
  for (const junk of [undefined, 'text', [], new Uint8Array(100), new TextEncoder().encode('SLUICEGT and what is not one')]) {
    assert.throws(() => restoreLimiter(junk as Uint8Array), refused)
  }
})

test('a policy that the snapshot does not know gets the room, and the way to be full, that the limiter was made with', () => {
  const clock = manualClock(START_MS)
  const wide = slidingWindow({ limit: 100_000, window: '1h' })
  for (const onFull of ['deny', 'evict'] as const) {
    const limiter = createLimiter(tokenBucket({ limit: 1, window: '1h' }), { clock, maxKeys: 20, onFull })
    const policyFor = (key: string): Policy | undefined => (key.startsWith('wide') ? wide : undefined)
    const before = limiter.stats().memoryBytes
    const restored = restoreLimiter(restoreLimiter(limiter.snapshot(), { clock }).snapshot(), { clock, policyFor })
    for (let i = 0; i < 500; i++) restored.take(`wide ${i}`)
    const { memoryBytes, refusals, evictions } = restored.stats()
    assert.deepEqual([memoryBytes, refusals > 0, evictions > 0], [2 * before, onFull === 'deny', onFull === 'evict'])
  }
})

test('a snapshot of another version says so', () => {
  const snapshot = createLimiter(tokenBucket({ limit: 1, window: '1s' }), { maxKeys: 1 }).snapshot()
  new DataView(snapshot.buffer).setUint32(8, 7, true)
  assert.throws(() => restoreLimiter(snapshot), /of version 7; this library reads version 2/)
})

// snapshot-workers.test.ts asks the same of all algorithms.
for (const [i, policy] of [
  tokenBucket({ limit: 40_000, window: '30d' }),
  slidingLog({ limit: 40_000, window: '30d' }),
  slidingWindow({ limit: 100_000, window: '30d' }),
].entries()) {
  everyNth(i, 3)(`${policy.algorithm}: a snapshot taken while workers take holds a moment between before and after`, async (t) => {
    const clock = manualClock(START_MS)
    const limiter = createLimiter(policy, { clock, maxKeys: 20 })
    const keys = ['a', 'b', 'c']
    const taking = crewFor(t, 2, { handle: limiter.handle() }).ask({ kind: 'take', keys, rounds: shortOrLong(6_000, 12_000) })
    let done = false
    void taking.finally(() => {
      done = true
    })
    let snapshots = 0
    while (!done) {
      const before = keys.map((key) => limiter.peek(key).remaining)
      const restored = restoreLimiter(limiter.snapshot(), { clock })
      const after = keys.map((key) => limiter.peek(key).remaining)
      for (const [i, key] of keys.entries()) {
        const { remaining } = restored.peek(key)
        assert.ok(remaining <= (before[i] as number) && remaining >= (after[i] as number), `${before[i]} >= ${remaining} >= ${after[i]}`)
      }
      restored.close()
      snapshots++
      await new Promise(setImmediate)
    }
    t.diagnostic(`${snapshots} snapshots`)
    await taking
  })
}

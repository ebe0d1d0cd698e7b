import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crewFor, longTest, Random, RateOracle } from 'sluicegate-testkit'
import { manualClock, tokenBucket } from '../../../packages/sluicegate/dist/index.js'
import { attachMutexTwin, createMutexTwin } from './mutex-twin.js'

// What benchmarks compare the core with must do the same work: decide the same.

test('the mutex twin decides as the oracle does, field by field, on both its ends', () => {
  for (const spec of [
    { limit: 10, windowMs: 1000, burst: 10 },
    { limit: 7, windowMs: 60_000, burst: 20 },
    { limit: 1000, windowMs: 1, burst: 3 },
  ]) {
    const clock = manualClock(1_789_000_000_000)
    const policy = tokenBucket({ limit: spec.limit, window: spec.windowMs, burst: spec.burst })
    const twin = createMutexTwin(policy, { clock, maxKeys: 1000 })
    const ends = [twin, attachMutexTwin(twin.handle())]
    const oracle = new RateOracle(spec)
    const random = new Random(spec.limit)
    for (let i = 0; i < 5000; i++) {
      const key = `key ${random.integer(1, 50)}`
      const cost = random.integer(1, spec.burst)
      clock.set(Math.round((clock.nowMs() + (random.fraction() * spec.windowMs * 2) / spec.limit) * 1000) / 1000)
      const { source, policy: name, ...answer } = random.pick(ends).take(key, cost)
      assert.deepEqual(answer, oracle.take(key, cost, clock.nowMs()), `${JSON.stringify(spec)}, call ${i}`)
      assert.deepEqual([source, name], ['memory', policy.name])
    }
  }
})

test('a bound key of the twin spends the same tokens', () => {
  const [options, window] = [{ clock: manualClock(1000) }, '1h'] as const
  const twin = createMutexTwin(tokenBucket({ limit: 5, window }), options)
  const bound = twin.key('k')
  bound.take(2)
  twin.take('k')
  assert.equal(bound.take().remaining, 1)
})

longTest('4 workers on one key of the mutex twin admit exactly what flows in, round after round', async (t) => {
  const clock = manualClock(1_789_000_000_000)
  const twin = createMutexTwin(tokenBucket({ limit: 1000, window: '1s', burst: 100 }), { clock, maxKeys: 10 })
  const attach = { module: new URL('./mutex-twin.js', import.meta.url).href, name: 'attachMutexTwin' }
  const crew = crewFor(t, 4, { handle: twin.handle(), attach })
  for (let round = 0; round < 20; round++) {
    const passed = (await crew.ask({ kind: 'take', keys: ['hot'], rounds: 100 })) as number[][]
    const all = passed.flat().reduce((total, n) => total + n, 0)
    assert.equal(all, round === 0 ? 100 : 50)
    clock.advance(50)
  }
})

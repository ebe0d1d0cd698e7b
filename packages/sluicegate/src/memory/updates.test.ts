import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from '../create-limiter.js'
import { concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import type { Limiter } from '../limiter.js'
import { manualClock } from '../time/clock.js'

const START_MS = 1_789_000_000_000
const MIB = 2 ** 20

test('an update that changes no number changes nothing about a key: not what is booked ahead, not a penalty', () => {
  const policies: readonly Policy[] = [
    tokenBucket({ limit: 1, window: '1s', burst: 2 }),
    gcra({ limit: 1, window: '1s', burst: 1 }),
    fixedWindow({ limit: 2, window: '1s' }),
    slidingWindow({ limit: 2, window: '1s' }),
    slidingWindow({ limit: 100_000, window: '1s', name: 'wide' }),
    slidingLog({ limit: 2, window: '1s' }),
    slidingLog({ limit: 2, window: '1s', name: 'short' }),
  ]
  for (const policy of policies) {
    const [still, updated] = [0, 1].map(() => createLimiter(policy, { clock: manualClock(START_MS) })) as [Limiter, Limiter]
    for (const limiter of [still, updated]) {
      for (let i = 0; i < 5; i++) limiter.reserve('booked', policy.burst)
      limiter.take('penalized')
      limiter.penalize('penalized', 7 * policy.burst)
    }
    updated.update({ ...policy, name: 'another name' } as Policy)
    updated.update(policy)
    for (const key of ['booked', 'penalized']) assert.deepEqual(updated.peek(key), still.peek(key), `${policy.name}, ${key}`)
  }
})

test('waits keep their order over such an update, and no take passes between them', async () => {
  const clock = manualClock(START_MS)
  const policy = gcra({ limit: 1, window: '1s', burst: 1 })
  const limiter = createLimiter(policy, { clock })
  const passed: string[] = []
  limiter.take('k')
  for (let i = 0; i < 3; i++) void limiter.wait('k').then(() => passed.push(`waiter at ${clock.nowMs() - START_MS}`))
  limiter.update(policy)
  for (let second = 1; second <= 4; second++) {
    clock.advance(1000)
    await Promise.resolve()
    await new Promise((done) => setImmediate(done))
    if (limiter.take('k').allowed) passed.push(`take at ${clock.nowMs() - START_MS}`)
  }
  assert.deepEqual(passed, ['waiter at 1000', 'waiter at 2000', 'waiter at 3000', 'take at 4000'])
})

test('I6: changes there and back use the memory of two policies, however many they are', () => {
  const pairs: readonly (readonly [Policy, Policy])[] = [
    [slidingWindow({ limit: 60_000, window: '1m' }), slidingWindow({ limit: 70_000, window: '1m' })],
    [slidingLog({ limit: 1_000, window: '1h' }), slidingLog({ limit: 1_000, window: '30d' })],
    [concurrency({ limit: 10 }), concurrency({ limit: 20 })],
  ]
  for (const [one, other] of pairs) {
    const limiter = createLimiter(one, { clock: manualClock(START_MS), maxKeys: 100 })
    limiter.take('k')
    limiter.update(other)
    limiter.update(one)
    const { memoryBytes } = limiter.stats()
    for (let i = 0; i < 100; i++) limiter.update(i % 2 === 0 ? other : one)
    assert.equal(limiter.stats().memoryBytes, memoryBytes)
    assert.equal(limiter.peek('k').remaining, one.limit - 1)
  }
})

test('I6: a limit raised step by step takes a few times the memory of the last step', () => {
  const limiter = createLimiter(slidingLog({ limit: 10, window: '1h' }), { clock: manualClock(START_MS), maxKeys: 10 })
  limiter.take('k', 3)
  for (let limit = 11; limit <= 3_000; limit++) limiter.update(slidingLog({ limit, window: '1h' }))
  assert.equal(limiter.peek('k').remaining, 2_997)
  assert.ok(limiter.stats().memoryBytes < 4 * MIB, `${limiter.stats().memoryBytes} bytes`)
})

test('a previous count that an update has merged into the window does not come back, whatever else is changed', () => {
  const [wide, packed] = [slidingWindow({ limit: 100_000, window: '1m' }), slidingWindow({ limit: 60_000, window: '1m' })]
  const clock = manualClock(START_MS)
  const limiter = createLimiter(wide, { clock, maxKeys: 10 })
  limiter.take('k', 50_000)
  clock.advance(60_000)
  limiter.take('k')
  const { remaining } = limiter.peek('k')
  for (let i = 1; i <= 64; i++) {
    limiter.update(i % 2 === 0 ? wide : packed)
    if (i % 2 === 0) assert.equal(limiter.peek('k').remaining, remaining, `after ${i} updates`)
  }
})

test('nor since when a key owes nothing, or a block is over: a clock that steps back finds it as it would have been', () => {
  for (const make of [tokenBucket, gcra]) {
    const policy = make({ limit: 2, window: '1s' })
    const answers = [0, 3].map((updates) => {
      const clock = manualClock(START_MS)
      const limiter = createLimiter(policy, { clock })
      limiter.take('taken', 2)
      limiter.block('lifted', '100h')
      limiter.block('lifted', 0)
      clock.advance(24 * 3_600_000)
      for (let i = 0; i < updates; i++) limiter.update(policy)
      clock.advance(-12 * 3_600_000)
      return ['taken', 'lifted'].map((key) => limiter.take(key, 2))
    })
    assert.deepEqual(answers[0], answers[1])
    assert.ok(answers[1]?.every(({ allowed }) => allowed))
  }
})

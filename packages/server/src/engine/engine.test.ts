import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, fixedWindow, gcra, manualClock, PolicyError, StoreError, tokenBucket } from 'sluicegate'
import { atOnce } from 'sluicegate-testkit/service/running-service.js'
import { Engine, type ServedPolicy } from './engine.js'

const POLICIES = [
  { policy: tokenBucket({ name: 'burst', limit: 3, window: '1m' }), maxKeys: 100, onFull: 'evict' },
  { policy: gcra({ name: 'spaced', limit: 5, window: '1s', burst: 1 }), maxKeys: 100, onFull: 'deny' },
] as const

function setUp(): { engine: Engine; served: ServedPolicy; clock: ReturnType<typeof manualClock> } {
  const clock = manualClock(1_000)
  const engine = new Engine(POLICIES, { clock, hotKeys: 10 })
  return { engine, served: engine.policy('burst') ?? assert.fail(), clock }
}

test('an engine serves each policy, in their order, and nothing else', () => {
  const { engine } = setUp()
  assert.deepEqual(
    Array.from(engine.policies, ({ name }) => name),
    ['burst', 'spaced'],
  )
  for (const name of ['', 'Burst', '__proto__', 'constructor', 'toString']) assert.equal(engine.policy(name), undefined)
})

test('a served policy decides by its numbers, on the clock that the engine was given', () => {
  const { served, clock } = setUp()
  const answers = Array.from({ length: 4 }, () => atOnce(served.take('alice', 1)).allowed)
  assert.deepEqual(answers, [true, true, true, false])
  clock.advance(20_000)
  assert.equal(atOnce(served.take('alice', 1)).allowed, true)
})

test('policies do not share their keys’ tokens', () => {
  const { engine, served } = setUp()
  served.take('alice', 3)
  assert.equal(atOnce(engine.policy('spaced')?.take('alice', 1)).allowed, true)
})

test('allowed, denied and impossible are counted separately, and a peek as none of them', () => {
  const { served } = setUp()
  served.take('alice', 2)
  served.take('alice', 2)
  served.take('alice', 4)
  served.peek('alice', 1)
  assert.deepEqual(served.counts, { allowed: 1, denied: 1, impossible: 1, peeks: 1 })
})

test('a peek takes nothing', () => {
  const { served } = setUp()
  for (let i = 0; i < 5; i++) assert.equal(atOnce(served.peek('alice', 3)).allowed, true)
  assert.equal(atOnce(served.take('alice', 3)).allowed, true)
})

test('a caller’s mistake throws and is not counted', () => {
  const { engine, served } = setUp()
  assert.throws(() => served.take('', 1), PolicyError)
  assert.throws(() => served.take('alice', 0), PolicyError)
  assert.throws(() => served.take('alice', 1.5), PolicyError)
  assert.deepEqual(served.counts, { allowed: 0, denied: 0, impossible: 0, peeks: 0 })
  assert.equal(served.errors.size, 0)
  assert.equal(engine.latency.count, 0)
})

test('an outage throws and is counted as an outage, never as a denial', () => {
  const { engine, served } = setUp()
  engine.close()
  assert.throws(() => served.take('alice', 1), StoreError)
  assert.throws(() => served.peek('alice', 1), StoreError)
  assert.deepEqual([...served.errors], [['CLOSED', 2]])
  assert.equal(served.counts.denied, 0)
})

test('every take is timed, whatever its outcome', () => {
  const { engine, served } = setUp()
  for (const cost of [1, 3, 9]) served.take('alice', cost)
  assert.equal(engine.latency.count, 3)
  assert.ok(engine.latency.sumS > 0)
})

test('the hottest keys are ranked by demand and by denial', () => {
  const { served } = setUp()
  for (let i = 0; i < 9; i++) served.take('crawler', 1)
  served.take('alice', 1)
  const { demand, denials } = served.hotKeys(5)
  assert.deepEqual(
    demand.map(({ key, count }) => [key, count]),
    [
      ['crawler', 9],
      ['alice', 1],
    ],
  )
  assert.deepEqual(
    denials.map(({ key, count }) => [key, count]),
    [['crawler', 6]],
  )
})

test('a denial of an all-of is counted for its binding part, and each key once', () => {
  const parts = [tokenBucket({ name: 'burst', limit: 2, window: '1s' }), fixedWindow({ name: 'quota', limit: 3, window: 'day' })]
  const clock = manualClock(1_000)
  const engine = new Engine([{ policy: allOf(parts, { name: 'both' }), maxKeys: 100, onFull: 'evict' }], { clock })
  const served = engine.policy('both') ?? assert.fail()
  for (let i = 0; i < 3; i++) served.take('alice', 1)
  clock.advance(1_000)
  for (let i = 0; i < 3; i++) served.take('alice', 1)
  served.take('alice', 3)
  assert.deepEqual(served.counts, { allowed: 3, denied: 3, impossible: 1, peeks: 0 })
  assert.deepEqual(
    [...served.denialsByPart],
    [
      ['burst', 1],
      ['quota', 2],
    ],
  )
  assert.equal(served.stats().keys, 1)
  served.take(['bob', 'blue'], 1)
  assert.deepEqual(
    [served.peek('bob', 1), served.peek('blue', 1)].map(atOnce).map(({ parts = [] }) => parts.map(({ remaining }) => remaining)),
    [
      [1, 3],
      [2, 2],
    ],
  )
})

test('a single policy has no parts to count denials for', () => {
  const { served } = setUp()
  for (let i = 0; i < 5; i++) served.take('alice', 1)
  assert.deepEqual([served.counts.denied, served.denialsByPart.size], [2, 0])
})

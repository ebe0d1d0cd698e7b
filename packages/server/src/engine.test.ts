import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, fixedWindow, gcra, manualClock, PolicyError, StoreError, tokenBucket } from 'sluicegate'
import { Engine, type Gate } from './engine.js'

const POLICIES = [
  { policy: tokenBucket({ name: 'burst', limit: 3, window: '1m' }), maxKeys: 100, onFull: 'evict' },
  { policy: gcra({ name: 'spaced', limit: 5, window: '1s', burst: 1 }), maxKeys: 100, onFull: 'deny' },
] as const

function setUp(): { engine: Engine; gate: Gate; clock: ReturnType<typeof manualClock> } {
  const clock = manualClock(1_000)
  const engine = new Engine(POLICIES, { clock, hotKeys: 10 })
  return { engine, gate: engine.gate('burst') ?? assert.fail(), clock }
}

test('an engine has a gate for each policy, in their order, and for nothing else', () => {
  const { engine } = setUp()
  assert.deepEqual(
    Array.from(engine.gates, ({ name }) => name),
    ['burst', 'spaced'],
  )
  for (const name of ['', 'Burst', '__proto__', 'constructor', 'toString']) assert.equal(engine.gate(name), undefined)
})

test('a gate decides as its policy says, on the clock that the engine was given', () => {
  const { gate, clock } = setUp()
  const answers = Array.from({ length: 4 }, () => gate.take('alice', 1).allowed)
  assert.deepEqual(answers, [true, true, true, false])
  clock.advance(20_000)
  assert.equal(gate.take('alice', 1).allowed, true)
})

test('policies do not share their keys’ tokens', () => {
  const { engine, gate } = setUp()
  gate.take('alice', 3)
  assert.equal(engine.gate('spaced')?.take('alice', 1).allowed, true)
})

test('allowed, denied and impossible are counted separately, and a peek as none of them', () => {
  const { gate } = setUp()
  gate.take('alice', 2)
  gate.take('alice', 2)
  gate.take('alice', 4)
  gate.peek('alice', 1)
  assert.deepEqual(gate.counts, { allowed: 1, denied: 1, impossible: 1, peeks: 1 })
})

test('a peek takes nothing', () => {
  const { gate } = setUp()
  for (let i = 0; i < 5; i++) assert.equal(gate.peek('alice', 3).allowed, true)
  assert.equal(gate.take('alice', 3).allowed, true)
})

test('a caller’s mistake throws and is not counted', () => {
  const { engine, gate } = setUp()
  assert.throws(() => gate.take('', 1), PolicyError)
  assert.throws(() => gate.take('alice', 0), PolicyError)
  assert.throws(() => gate.take('alice', 1.5), PolicyError)
  assert.deepEqual(gate.counts, { allowed: 0, denied: 0, impossible: 0, peeks: 0 })
  assert.equal(gate.errors.size, 0)
  assert.equal(engine.latency.count, 0)
})

test('an outage throws and is counted as an outage, never as a denial', () => {
  const { engine, gate } = setUp()
  engine.close()
  assert.throws(() => gate.take('alice', 1), StoreError)
  assert.throws(() => gate.peek('alice', 1), StoreError)
  assert.deepEqual([...gate.errors], [['CLOSED', 2]])
  assert.equal(gate.counts.denied, 0)
})

test('every take is timed, whatever its outcome', () => {
  const { engine, gate } = setUp()
  for (const cost of [1, 3, 9]) gate.take('alice', cost)
  assert.equal(engine.latency.count, 3)
  assert.ok(engine.latency.sumS > 0)
})

test('the hottest keys are ranked by demand and by denial', () => {
  const { gate } = setUp()
  for (let i = 0; i < 9; i++) gate.take('crawler', 1)
  gate.take('alice', 1)
  const { demand, denials } = gate.hotKeys(5)
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
  const gate = engine.gate('both') ?? assert.fail()
  for (let i = 0; i < 3; i++) gate.take('alice', 1)
  clock.advance(1_000)
  for (let i = 0; i < 3; i++) gate.take('alice', 1)
  gate.take('alice', 3)
  assert.deepEqual(gate.counts, { allowed: 3, denied: 3, impossible: 1, peeks: 0 })
  assert.deepEqual(
    [...gate.denialsByPart],
    [
      ['burst', 1],
      ['quota', 2],
    ],
  )
  assert.equal(gate.stats().keys, 1)
  gate.take(['bob', 'blue'], 1)
  assert.deepEqual(
    [gate.peek('bob', 1), gate.peek('blue', 1)].map(({ parts = [] }) => parts.map(({ remaining }) => remaining)),
    [
      [1, 3],
      [2, 2],
    ],
  )
})

test('a single policy has no parts to count denials for', () => {
  const { gate } = setUp()
  for (let i = 0; i < 5; i++) gate.take('alice', 1)
  assert.deepEqual([gate.counts.denied, gate.denialsByPart.size], [2, 0])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, fixedWindow, manualClock, tokenBucket } from 'sluicegate'
import { Engine } from '../engine/engine.js'
import { HISTORY_LENGTH, Sampler } from './sampler.js'

function setUp() {
  const policy = tokenBucket({ name: 'burst', limit: 5, window: '1m' })
  const engine = new Engine([{ policy, maxKeys: 100, onFull: 'evict' }], { clock: manualClock(0), hotKeys: 100 })
  return { served: engine.policy('burst') ?? assert.fail(), sampler: new Sampler(engine, 'shown') }
}

test('a sample has the totals, and the rates since the one before', () => {
  const { served, sampler } = setUp()
  for (let i = 0; i < 7; i++) served.take('alice', 1)
  served.take('alice', 6)
  const [first = assert.fail()] = sampler.sample().policies
  assert.deepEqual([first.allowed.total, first.denied.total, first.impossible.total, first.keysTracked], [5, 2, 1, 1])
  assert.ok(first.allowed.perSecond > 0 && first.allowed.perSecond <= 5_000)
  const [second = assert.fail()] = sampler.sample().policies
  assert.deepEqual([second.allowed.total, second.allowed.perSecond, second.denied.perSecond], [5, 0, 0])
})

test('a sample has each part of an all-of with the denials for which it was binding', () => {
  const parts = [tokenBucket({ name: 'burst', limit: 5, window: '1s' }), fixedWindow({ name: 'quota', limit: 2, window: 'day' })]
  const policy = allOf(parts, { name: 'both' })
  const engine = new Engine([{ policy, maxKeys: 100, onFull: 'evict' }], { clock: manualClock(0) })
  for (let i = 0; i < 3; i++) engine.policy('both')?.take('alice', 1)
  const [sample = assert.fail()] = new Sampler(engine, 'shown').sample().policies
  assert.equal(sample.description, 'all-of, 2 policies')
  assert.deepEqual(sample.parts, [
    { name: 'burst', description: 'token-bucket, 5 per 1s, burst 5', denied: 0 },
    { name: 'quota', description: 'fixed-window, 2 per day in UTC', denied: 1 },
  ])
  assert.deepEqual(setUp().sampler.sample().policies[0]?.parts, [])
})

test('the ten hottest keys are ranked', () => {
  const { served, sampler } = setUp()
  for (let i = 1; i <= 15; i++) for (let n = 0; n < i; n++) served.take(`key-${i}`, 1)
  const { demand = [], denials = [] } = sampler.sample().policies[0] ?? {}
  assert.deepEqual([demand.length, demand[0]], [10, { key: 'key-15', count: 15 }])
  assert.deepEqual(denials[0], { key: 'key-15', count: 10 })
})

test('the history is two minutes of samples and no more', () => {
  const { served, sampler } = setUp()
  served.take('alice', 1)
  for (let i = 0; i < HISTORY_LENGTH + 30; i++) sampler.sample()
  const { atS, policies } = sampler.history()
  assert.deepEqual([atS.length, policies[0]?.allowed.length, policies[0]?.denied.length], [120, 120, 120])
})

test('decisions made while no page was open are in the history, and not repeated as new', () => {
  const { served, sampler } = setUp()
  for (let i = 0; i < 3; i++) served.take('alice', 1)
  sampler.tick()
  const [sample = assert.fail()] = sampler.sample().policies
  assert.deepEqual([sample.allowed.total, sample.allowed.perSecond], [3, 0])
  const [before = 0, now] = sampler.history().policies[0]?.allowed ?? []
  assert.ok(before > 0)
  assert.equal(now, 0)
})

test('calls with their own rate are in the sample once there are any, with their keys', () => {
  const engine = new Engine([], { clock: manualClock(0), hotKeys: 10 })
  const sampler = new Sampler(engine, 'shown')
  assert.deepEqual(sampler.sample().policies, [])
  for (let i = 0; i < 3; i++) engine.callRates.throttle('crawler', { maxBurst: 0, count: 1, periodS: 60 }, 1)
  const [{ name, description, allowed, denied, keysTracked, parts, demand, denials } = assert.fail()] = sampler.sample().policies
  assert.deepEqual([name, description, keysTracked, parts], ['CL.THROTTLE', 'the rate comes with each call', 1, []])
  assert.deepEqual([allowed.total, denied.total], [1, 2])
  assert.deepEqual([demand, denials], [[{ key: 'crawler', count: 3 }], [{ key: 'crawler', count: 2 }]])
  assert.deepEqual(
    sampler.history().policies.map((each) => each.name),
    ['CL.THROTTLE'],
  )
})

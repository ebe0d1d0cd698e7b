import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Admission, firstOver, longTest, type PolicySpec, Random } from 'sluicegate-testkit'
import { allOf, concurrency, fixedWindow, gcra, type Key, manualClock, slidingWindow, tokenBucket } from '../../index.js'
import { GivenShare } from './local-share.js'
import { Outage, type Owed } from './outage.js'

// What is charged to a store after its outage.

const RATE = tokenBucket({ limit: 100, window: '1s', burst: 100, name: 'rate' })
const TWO = allOf([RATE, fixedWindow({ limit: 1000, window: '1m', name: 'minute' })])

function settled(outage: Outage, isBack: (key: Key) => boolean = () => true): Owed[] {
  return [...outage.settle(isBack)].filter((owed) => owed !== undefined)
}

test('consecutive short outages bring no fresh burst', () => {
  const clock = manualClock()
  const outage = new Outage('local', RATE, new GivenShare(0.1), clock)
  const spec: PolicySpec = { algorithm: 'token-bucket', limit: 10, windowMs: 1000, burst: 10 }
  const admissions: Admission[] = []
  for (let i = 0; i < 500; i++) {
    clock.advance(10)
    for (let takes = 0; takes < 5; takes++) {
      if (outage.take('k', 1, 0).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost: 1 })
    }
    settled(outage)
  }
  assert.equal(firstOver(spec, admissions), undefined)
  assert.equal(admissions.length, 10 + 50 - 1)
})

test('spent tokens are charged once, less what refilled meanwhile', () => {
  const clock = manualClock()
  const outage = new Outage('local', RATE, new GivenShare(0.1), clock)
  for (let i = 0; i < 8; i++) outage.take('k', 1, 0)
  clock.advance(250)
  assert.deepEqual(settled(outage), [{ key: 'k', tokens: [6] }], 'two of eight refilled, and half of the third counts as spent')
  assert.deepEqual(settled(outage), [])
  assert.equal(outage.isOwing, false)
  outage.take('k', 2, 0)
  assert.deepEqual(settled(outage), [{ key: 'k', tokens: [2] }], 'after the next outage only its own tokens')
})

test('in the long run the charged tokens equal the spent tokens', () => {
  const clock = manualClock()
  const outage = new Outage('local', RATE, new GivenShare(0.1), clock)
  const random = new Random(7)
  let used = 0
  let charged = 0
  for (let i = 0; i < 2000; i++) {
    if (random.chance(0.1)) clock.advance(2000)
    const cost = random.integer(1, 4)
    if (outage.take('k', cost, 0).allowed) used += cost
    charged += settled(outage)[0]?.tokens[0] ?? 0
  }
  assert.equal(charged, used)
})

test('tokens of a late charge by the store are not charged again', () => {
  const one = new Outage('local', RATE, new GivenShare(0.1), manualClock())
  for (let i = 0; i < 5; i++) one.take('k', 1, 0)
  one.covered(['k'], 2)
  one.covered(['other'], 3)
  assert.deepEqual(settled(one), [{ key: 'k', tokens: [3] }])
  one.covered(['k'], 1)
  one.take('k', 2, 0)
  assert.deepEqual(settled(one), [{ key: 'k', tokens: [2] }], 'no more is covered than was spent')
  const both = new Outage('local', TWO, new GivenShare(0.1), manualClock())
  both.take(['user', 'tenant'], 5, 0)
  both.covered(['user', 'tenant'], 5)
  assert.deepEqual(settled(both), [])
})

test('each policy of allOf is charged its own spent tokens', () => {
  const clock = manualClock()
  const outage = new Outage('local', TWO, new GivenShare(0.1), clock)
  for (let i = 0; i < 10; i++) {
    outage.take(['user', 'tenant'], 3, 0)
    clock.advance(1000)
  }
  assert.deepEqual(settled(outage), [{ key: ['user', 'tenant'], tokens: [0, 30] }])
})

test('a key in two tuples of allOf is charged once', () => {
  const outage = new Outage('local', TWO, new GivenShare(0.1), manualClock())
  outage.take(['a', 'tenant'], 3, 0)
  outage.take(['b', 'tenant'], 4, 0)
  assert.deepEqual(settled(outage), [
    { key: ['a', 'tenant'], tokens: [3, 7] },
    { key: ['b', 'tenant'], tokens: [4, 0] },
  ])
})

test('with open, charges are up to the whole budget, less what refilled meanwhile', () => {
  const clock = manualClock()
  const policy = gcra({ limit: 10, window: '1s', burst: 5 })
  const outage = new Outage('open', policy, new GivenShare(1), clock)
  const owed = (): unknown[] => [...outage.settle(() => true)]
  for (let i = 0; i < 3; i++) outage.take('few', 1, 0)
  for (let i = 0; i < 1_000; i++) assert.equal(outage.take('many', 1, 0).allowed, true)
  assert.equal(outage.take('impossible', 6, 0).allowed, false)
  assert.deepEqual(owed(), [
    { key: 'few', tokens: [3] },
    { key: 'many', tokens: [5] },
  ])
  assert.deepEqual([outage.isOwing, owed()], [false, []], 'once')
  clock.advance(200)
  for (let i = 0; i < 10; i++) outage.take('many', 1, 0)
  assert.deepEqual(owed(), [{ key: 'many', tokens: [2] }], 'the refilled tokens were spent again')
  outage.take('few', 4, 0)
  clock.advance(10_000)
  assert.deepEqual(owed(), [], 'everything has refilled')
})

test('with open, each policy of allOf is charged except permits; with closed, nothing is charged', async () => {
  const clock = manualClock()
  const both = allOf([gcra({ limit: 10, window: '1s', burst: 5 }), fixedWindow({ limit: 100, window: '1h' }), concurrency({ limit: 2 })])
  const outage = new Outage('open', both, new GivenShare(1), clock)
  for (let i = 0; i < 9; i++) outage.take(['user', 'team', 'place'], 1, 0)
  await outage.wait({ key: 'one', cost: 2, maxWaitMs: 0, signal: undefined }, 0)
  assert.deepEqual(
    [...outage.settle(() => true)],
    [
      { key: ['user', 'team', 'place'], tokens: [5, 9, 0] },
      { key: 'one', tokens: [2, 2, 0] },
    ],
  )
  outage.take('late', 2, 0)
  assert.deepEqual(outage.covered(['late', 'late', 'late'], 2), [2, 2, 0], 'the store has charged it late')
  assert.deepEqual([...outage.settle(() => true)], [])
  const closed = new Outage('closed', both, new GivenShare(0.1), clock)
  closed.take('k', 1, 0)
  assert.deepEqual([closed.isOwing, [...closed.settle(() => true)]], [false, []])
})

longTest('with open, the newest 100,000 keys are charged', () => {
  const outage = new Outage('open', fixedWindow({ limit: 5, window: '1h' }), new GivenShare(1), manualClock())
  for (let i = 0; i < 150_000; i++) outage.take(`k${i}`, 1, 0)
  const owed = [...outage.settle(() => true)].filter((each) => each !== undefined)
  assert.ok(owed.length > 90_000 && owed.length <= 100_000, String(owed.length))
  assert.equal(outage.take('more', 1, 0).allowed, true)
})

test('permits are not charged: they stay with their holders', () => {
  const outage = new Outage(
    'local',
    allOf([RATE, concurrency({ limit: 20, ttl: '30s', name: 'places' })]),
    new GivenShare(0.1),
    manualClock(),
  )
  outage.take('k', 2, 0)
  assert.deepEqual(settled(outage), [{ key: 'k', tokens: [2, 0] }])
})

test('keys of a server that is still out stay uncharged', () => {
  const outage = new Outage('local', RATE, new GivenShare(0.1), manualClock())
  for (const key of ['a1', 'b1', 'a2', 'b2']) outage.take(key, 1, 0)
  const keysOf = (owed: readonly Owed[]): Key[] => owed.map(({ key }) => key)
  assert.deepEqual(keysOf(settled(outage, (key) => key[0] === 'a')), ['a1', 'a2'])
  assert.equal(outage.isOwing, true)
  assert.deepEqual(keysOf(settled(outage)), ['b1', 'b2'])
})

test('beyond the maximum of keys the oldest are forgotten', () => {
  const outage = new Outage('local', slidingWindow({ limit: 1000, window: '1h' }), new GivenShare(0.1), manualClock())
  for (let i = 0; i < 100_010; i++) outage.take(`key ${i}`, 1, 0)
  const owed = settled(outage)
  assert.ok(owed.length <= 100_000)
  assert.equal(owed[0]?.key, 'key 10')
})

test('an update keeps the spent and the charged tokens', () => {
  const outage = new Outage('local', RATE, new GivenShare(0.1), manualClock())
  for (let i = 0; i < 10; i++) outage.take('k', 1, 0)
  settled(outage)
  outage.update(tokenBucket({ limit: 200, window: '1s', burst: 200, name: 'rate' }))
  assert.equal(outage.peek('k', 1, 0).remaining, 10)
  outage.take('k', 4, 0)
  assert.deepEqual(settled(outage), [{ key: 'k', tokens: [4] }])
})

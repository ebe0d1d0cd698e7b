import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { type Admission, firstOver, type PolicySpec, policyOf, Random } from 'sluicegate-testkit'
import type { DenialEvent } from '../diagnostics.js'
import { allOf, concurrency, fixedWindow, type Key, manualClock, slidingWindow, tokenBucket } from '../index.js'
import type { FleetPermit } from './fleet-limiter.js'
import { Outage, type Owed } from './outage.js'
import { shareOfPolicy } from './share-of-policy.js'

const RATE = tokenBucket({ limit: 100, window: '1s', burst: 100, name: 'rate' })
const TWO = allOf([RATE, fixedWindow({ limit: 1000, window: '1m', name: 'minute' })])
const MODES = ['local', 'open', 'closed'] as const

function settled(outage: Outage, isBack: (key: Key) => boolean = () => true): Owed[] {
  return [...outage.settle(isBack)].filter((owed) => owed !== undefined)
}

test('open lets all pass that could pass, closed nothing; both say that it is an outage', () => {
  const clock = manualClock()
  assert.deepEqual(new Outage('open', RATE, 0.1, clock).take('k', 100, 0), {
    allowed: true,
    limit: 100,
    remaining: 0,
    retryAfterMs: 0,
    resetAfterMs: 0,
    policy: 'rate',
    source: 'outage',
  })
  const denied = new Outage('closed', RATE, 0.1, clock).take('k', 1, 73.2)
  assert.deepEqual([denied.allowed, denied.retryAfterMs, denied.source], [false, 74, 'outage'])
})

test('closed says to come back with the next probe, in a millisecond at the earliest', () => {
  const outage = new Outage('closed', RATE, 0.1, manualClock())
  assert.deepEqual(
    [0, 0.5, 1, 1234.5].map((ms) => outage.take('k', 1, ms).retryAfterMs),
    [1, 1, 1, 1235],
  )
})

for (const mode of MODES) {
  test(`${mode}: a cost that can never pass is denied as impossible, and one above the share is not`, () => {
    for (const policy of [RATE, TWO]) {
      const outage = new Outage(mode, policy, 0.1, manualClock())
      const impossible = outage.take('k', 101, 50)
      assert.deepEqual([impossible.allowed, impossible.retryAfterMs, impossible.source], [false, Number.POSITIVE_INFINITY, 'outage'])
      const possible = outage.take('k', 11, 50)
      assert.deepEqual([possible.allowed, possible.retryAfterMs], mode === 'open' ? [true, 0] : [false, 50])
      assert.equal(outage.peek('k', 101, 50).retryAfterMs, Number.POSITIVE_INFINITY)
    }
  })

  test(`${mode}: the decision of allOf has its parts, all of an outage`, () => {
    const { parts = [], source } = new Outage(mode, TWO, 0.1, manualClock()).take('k', 1, 50)
    assert.deepEqual(
      [source, ...parts.map((part) => `${part.source} ${part.policy} ${part.limit}`)],
      ['outage', 'outage rate 100', 'outage minute 1000'],
    )
  })

  test(`${mode}: a permit can be released and renewed like one of the store`, async () => {
    const outage = new Outage(mode, concurrency({ limit: 20, ttl: '30s' }), 0.1, manualClock())
    const permit = outage.take('k', 1, 50) as FleetPermit
    assert.equal(permit.allowed, mode !== 'closed')
    assert.equal(await permit.heartbeat(), mode !== 'closed')
    assert.equal(await permit.release(), mode !== 'closed')
    assert.equal(await permit.release(), false)
  })
}

test('local gives back a place as soon as its permit is released', async () => {
  const outage = new Outage('local', concurrency({ limit: 20, ttl: '30s' }), 0.1, manualClock())
  const [first, second, third] = [1, 2, 3].map(() => outage.take('k', 1, 50) as FleetPermit)
  assert.deepEqual([first?.allowed, second?.allowed, third?.allowed], [true, true, false])
  await first?.release()
  assert.equal(outage.take('k', 1, 50).allowed, true)
})

const SPECS: readonly PolicySpec[] = [
  { algorithm: 'token-bucket', limit: 100, windowMs: 1000, burst: 100 },
  { algorithm: 'gcra', limit: 7, windowMs: 1000, burst: 3 },
  { algorithm: 'fixed-window', limit: 1000, windowMs: 1000 },
  { algorithm: 'sliding-window', limit: 90, windowMs: 500 },
  { algorithm: 'sliding-log', limit: 50, windowMs: 1000, slotBytes: 8 },
]

for (const spec of SPECS) {
  test(`${spec.algorithm}: processes without a store admit at most the sum of their shares`, () => {
    const share = 0.1
    for (const processes of [1, 3, 10, 25]) {
      const clock = manualClock(1_000_000)
      const fleet = Array.from({ length: processes }, () => new Outage('local', policyOf(spec), share, clock))
      const admissions: Admission[] = []
      const random = new Random(processes)
      for (let i = 0; i < 3000; i++) {
        clock.advance(random.pick([0, 0.25, 1, 3]))
        const cost = random.pick([1, 1, 1, 2])
        if (random.pick(fleet).take('k', cost, 0).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost })
      }
      const own = shareOfPolicy(policyOf(spec), share)
      const sum = {
        ...spec,
        limit: own.limit * processes,
        windowMs: own.windowMs,
        ...('burst' in spec && { burst: own.burst * processes }),
      }
      assert.ok(admissions.length > 0)
      assert.equal(firstOver(sum as PolicySpec, admissions), undefined)
      // With as many processes as there are shares that is no more than the policy.
      const isWhole = processes === 10 && own.limit > 1
      if (isWhole) assert.equal(firstOver(spec, admissions), undefined)
    }
  })
}

test('many short outages in a row bring no fresh burst', () => {
  const clock = manualClock()
  const outage = new Outage('local', RATE, 0.1, clock)
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

test('what was used is told once, as far as it has not come back by itself', () => {
  const clock = manualClock()
  const outage = new Outage('local', RATE, 0.1, clock)
  for (let i = 0; i < 8; i++) outage.take('k', 1, 0)
  clock.advance(250)
  assert.deepEqual(settled(outage), [{ key: 'k', tokens: [6] }], 'two of eight came back, and half of the third counts as spent')
  assert.deepEqual(settled(outage), [])
  assert.equal(outage.isOwing, false)
  outage.take('k', 2, 0)
  assert.deepEqual(settled(outage), [{ key: 'k', tokens: [2] }], 'and of the next outage only what was used in it')
})

test('in the long run as much is told as was used at once', () => {
  const clock = manualClock()
  const outage = new Outage('local', RATE, 0.1, clock)
  const random = new Random(7)
  let used = 0
  let told = 0
  for (let i = 0; i < 2000; i++) {
    if (random.chance(0.1)) clock.advance(2000)
    const cost = random.integer(1, 4)
    if (outage.take('k', cost, 0).allowed) used += cost
    told += settled(outage)[0]?.tokens[0] ?? 0
  }
  assert.equal(told, used)
})

test('what the store charged after all is not told again', () => {
  const one = new Outage('local', RATE, 0.1, manualClock())
  for (let i = 0; i < 5; i++) one.take('k', 1, 0)
  one.covered(['k'], 2)
  one.covered(['other'], 3)
  assert.deepEqual(settled(one), [{ key: 'k', tokens: [3] }])
  one.covered(['k'], 1)
  one.take('k', 2, 0)
  assert.deepEqual(settled(one), [{ key: 'k', tokens: [2] }], 'no more is covered than was used')
  const both = new Outage('local', TWO, 0.1, manualClock())
  both.take(['user', 'tenant'], 5, 0)
  both.covered(['user', 'tenant'], 5)
  assert.deepEqual(settled(both), [])
})

test('of allOf each policy is told what was used of it', () => {
  const clock = manualClock()
  const outage = new Outage('local', TWO, 0.1, clock)
  for (let i = 0; i < 10; i++) {
    outage.take(['user', 'tenant'], 3, 0)
    clock.advance(1000)
  }
  assert.deepEqual(settled(outage), [{ key: ['user', 'tenant'], tokens: [0, 30] }])
})

test('a key in two tuples of allOf is told of once', () => {
  const outage = new Outage('local', TWO, 0.1, manualClock())
  outage.take(['a', 'tenant'], 3, 0)
  outage.take(['b', 'tenant'], 4, 0)
  assert.deepEqual(settled(outage), [
    { key: ['a', 'tenant'], tokens: [3, 7] },
    { key: ['b', 'tenant'], tokens: [4, 0] },
  ])
})

test('permits are left to whoever holds them', () => {
  const outage = new Outage('local', allOf([RATE, concurrency({ limit: 20, ttl: '30s', name: 'places' })]), 0.1, manualClock())
  outage.take('k', 2, 0)
  assert.deepEqual(settled(outage), [{ key: 'k', tokens: [2, 0] }])
})

test('keys whose server is still out stay to be told', () => {
  const outage = new Outage('local', RATE, 0.1, manualClock())
  for (const key of ['a1', 'b1', 'a2', 'b2']) outage.take(key, 1, 0)
  const keysOf = (owed: readonly Owed[]): Key[] => owed.map(({ key }) => key)
  assert.deepEqual(keysOf(settled(outage, (key) => key[0] === 'a')), ['a1', 'a2'])
  assert.equal(outage.isOwing, true)
  assert.deepEqual(keysOf(settled(outage)), ['b1', 'b2'])
})

test('of more keys than are remembered the oldest are forgotten', () => {
  const outage = new Outage('local', slidingWindow({ limit: 1000, window: '1h' }), 0.1, manualClock())
  for (let i = 0; i < 100_010; i++) outage.take(`key ${i}`, 1, 0)
  const owed = settled(outage)
  assert.ok(owed.length <= 100_000)
  assert.equal(owed[0]?.key, 'key 10')
})

test('another policy keeps what was spent, and what was told', () => {
  const outage = new Outage('local', RATE, 0.1, manualClock())
  for (let i = 0; i < 10; i++) outage.take('k', 1, 0)
  settled(outage)
  outage.update(tokenBucket({ limit: 200, window: '1s', burst: 200, name: 'rate' }))
  assert.equal(outage.peek('k', 1, 0).remaining, 10)
  outage.take('k', 4, 0)
  assert.deepEqual(settled(outage), [{ key: 'k', tokens: [4] }])
})

test('a denial is told of once, as one of an outage', async () => {
  const heard: DenialEvent[] = []
  const listen = (event: unknown): void => void heard.push(event as DenialEvent)
  subscribe('sluicegate:denial', listen)
  const outage = new Outage('local', RATE, 0.1, manualClock())
  outage.take('k', 10, 0)
  assert.equal(outage.take('k', 1, 0).allowed, false)
  await outage.wait({ key: 'k', cost: 1, maxWaitMs: 0, signal: undefined }, 0)
  unsubscribe('sluicegate:denial', listen)
  assert.deepEqual(heard, [], 'the limiter around it tells')
})

test('who waits gets a share when it is there, and denied at once what never is', async () => {
  const clock = manualClock()
  const outage = new Outage('local', RATE, 0.1, clock)
  outage.take('k', 10, 0)
  const waiting = outage.wait({ key: 'k', cost: 1, maxWaitMs: 1000, signal: undefined }, 50)
  clock.advance(100)
  const decision = await waiting
  assert.deepEqual([decision.allowed, decision.source], [true, 'outage'])
  const never = await outage.wait({ key: 'k', cost: 11, maxWaitMs: Number.POSITIVE_INFINITY, signal: undefined }, 50)
  assert.deepEqual([never.allowed, never.retryAfterMs], [false, 50])
  assert.deepEqual(settled(outage), [{ key: 'k', tokens: [10] }])
})

test('who waits for a share ends with its signal, and with the limiter', async () => {
  const outage = new Outage('local', RATE, 0.1, manualClock())
  outage.take('k', 10, 0)
  const controller = new AbortController()
  const aborted = outage.wait({ key: 'k', cost: 1, maxWaitMs: 1000, signal: controller.signal }, 0)
  const closed = outage.wait({ key: 'k', cost: 1, maxWaitMs: 1000, signal: undefined }, 0)
  controller.abort(new Error('enough'))
  await assert.rejects(aborted, /enough/)
  outage.close()
  await assert.rejects(closed, { code: 'CLOSED' })
})

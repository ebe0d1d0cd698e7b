import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ALGORITHM_NAMES, longTest, policyOf, Random, randomPolicyOf, settled, shortOrLong } from 'sluicegate-testkit'
import { concurrency, createLimiter, fixedWindow, gcra, manualClock, slidingLog, slidingWindow, tokenBucket } from '../../index.js'
import type { Policy } from '../../policy/policy.js'
import { CountedShare, GivenShare, localShareOf } from './local-share.js'
import { Outage, UsedKeys } from './outage.js'
import { shareOfPolicy } from './share-of-policy.js'

/** A share over a store that counts as the test says. */
function counted() {
  const clock = manualClock(5_000)
  const store = { nodes: 1, calls: 0, isOut: false }
  const share = new CountedShare(clock, async () => {
    store.calls++
    if (store.isOut) throw new Error('READONLY')
    return store.nodes
  })
  /** Calls as often as this for so long. */
  const call = async (seconds: number, everyMs: number): Promise<void> => {
    for (let ms = 0; ms < seconds * 1000; ms += everyMs) {
      share.answered()
      await settled()
      clock.advance(everyMs)
    }
  }
  return { clock, store, share, call }
}

test('a limiter that never called the store has a tenth, and one that called it a share of its own of the nodes', async () => {
  const { share, store, call } = counted()
  assert.deepEqual([share.nodes, share.inForce], [0, 0.1])
  store.nodes = 40
  await call(1, 1000)
  assert.deepEqual([share.nodes, share.inForce], [40, 1 / 40])
})

test('a share above a tenth takes a minute of counts: until then a store that lost its data may know too few', async () => {
  const { share, store, call } = counted()
  store.nodes = 2
  await call(55, 100)
  assert.equal(share.inForce, 0.1)
  await call(20, 100)
  assert.equal(share.inForce, 1 / 2)
})

for (const [everyMs, most] of [
  [5, 0.01],
  [50, 0.01],
  [100, 0.01],
  [500, 0.01],
  [1000, 1 / 50],
] as const) {
  // The more often, the longer it takes.
  const inTime = everyMs < 50 ? longTest : test
  inTime(`a call every ${everyMs} ms counts nodes with less than ${most} calls a call, and once a minute at least`, async () => {
    const { store, call } = counted()
    await call(60, everyMs)
    const before = store.calls
    const seconds = 180
    await call(seconds, everyMs)
    const counts = store.calls - before
    assert.ok(counts / ((seconds * 1000) / everyMs) < most, `${counts} counts`)
    assert.ok(counts >= 3 && counts <= seconds / 10)
  })
}

test('a count grows at once, and falls after three minutes at the earliest, six at the latest', async () => {
  const { share, store, call } = counted()
  store.nodes = 100
  await call(120, 1000)
  store.nodes = 1
  await call(110, 1000)
  assert.equal(share.nodes, 100, 'a store that lost its data is not believed')
  await call(260, 1000)
  assert.equal(share.nodes, 1)
  store.nodes = 7
  await call(61, 1000)
  assert.equal(share.nodes, 7)
})

test('a share stays in an outage, however long; a count that was old when it began is worth a tenth at most', async () => {
  const { clock, share, store, call } = counted()
  store.nodes = 2
  await call(120, 1000)
  assert.equal(share.forOutage(), 1 / 2)
  clock.advance(3_600_000)
  assert.equal(share.forOutage(), 1 / 2)
  await call(1, 1000)
  clock.advance(181_000)
  assert.equal(share.forOutage(), 0.1)
  store.nodes = 30
  await call(120, 1000)
  clock.advance(3_600_000)
  assert.equal(share.forOutage(), 1 / 30)
})

test('a store that cannot count changes nothing, and is asked again when it is due', async () => {
  const { share, store, call } = counted()
  store.isOut = true
  await call(120, 1000)
  assert.deepEqual([share.nodes, share.inForce], [0, 0.1])
  assert.ok(store.calls <= 7, `${store.calls} calls`)
  store.isOut = false
  store.nodes = 25
  await call(61, 1000)
  assert.equal(share.inForce, 1 / 25)
})

test('the option share overrides the count, and so do the other modes', () => {
  const never = (): never => assert.fail('nothing is counted')
  assert.equal(localShareOf('local', 0.3, never).inForce, 0.3)
  assert.equal(localShareOf('open', undefined, never).inForce, 1)
  assert.equal(localShareOf('closed', 0.3, never).inForce, 0)
})

test('an outage decides with the share of the nodes at its beginning; what was spent stays spent when that changes', () => {
  const clock = manualClock(1_000_000)
  const share = new GivenShare(0.1)
  const outage = new Outage('local', tokenBucket({ limit: 100, window: '1d', burst: 100 }), share, clock)
  const passed = (): number => {
    let count = 0
    while (outage.take('k', 1, 0).allowed) count++
    return count
  }
  share.setNodes(4)
  assert.equal(passed(), 25)
  share.setNodes(2)
  assert.equal(passed(), 25, 'half of it less a quarter')
  share.setNodes(50)
  assert.equal(passed(), 0)
  assert.deepEqual([...outage.settle(() => true)], [{ key: 'k', tokens: [2] }])
})

test('the oldest make room, whatever was taken out in between', () => {
  const random = new Random(1)
  const used = new UsedKeys(50)
  let model: string[] = []
  for (let i = 0; i < 20_000; i++) {
    const key = `k${random.integer(0, 200)}`
    if (random.chance(0.2)) {
      used.delete(key)
      model = model.filter((each) => each !== key)
    } else if (!model.includes(key)) {
      used.add(key)
      model = [...model, key].slice(-50)
    } else used.add(key)
    if (random.chance(0.001)) {
      used.clear()
      model = []
    }
    if (i % 50 === 0) assert.deepEqual([...used], model)
  }
  assert.equal(used.size, model.length)
})

test('to make room begins a walk over the keys once in as many', () => {
  const used = new UsedKeys(100)
  let walks = 0
  const { keys } = used as unknown as { readonly keys: Map<string, string> }
  const begin = keys.keys.bind(keys)
  keys.keys = () => {
    walks++
    return begin()
  }
  for (let i = 0; i < 10_000; i++) used.add(`k${i}`)
  assert.equal(used.size, 100)
  assert.ok(walks <= 10_000 / 100, `${walks}`)
})

const YEAR_MS = 366 * 86_400_000

test('a share of 0.1 is a tenth of the rate, of the burst and of the limit', () => {
  const { limit, windowMs, burst } = shareOfPolicy(tokenBucket({ limit: 500, window: '1s', burst: 1000 }), 0.1)
  assert.deepEqual([limit, windowMs, burst], [50, 1000, 100])
  assert.equal(shareOfPolicy(fixedWindow({ limit: 1000, window: '1m' }), 0.1).limit, 100)
  assert.equal(shareOfPolicy(slidingWindow({ limit: 1000, window: '1m' }), 0.1).limit, 100)
  assert.equal(shareOfPolicy(slidingLog({ limit: 105, window: '1m' }), 0.1).limit, 10)
  assert.equal(shareOfPolicy(concurrency({ limit: 20 }), 0.1).limit, 2)
})

test('a share of a few tokens is one token, less often', () => {
  const { limit, windowMs, burst } = shareOfPolicy(gcra({ limit: 3, window: '1s', burst: 2 }), 0.1)
  assert.equal(burst, 1)
  assert.equal(limit, 1)
  assert.equal(windowMs, 3333.334)
})

test('the share of a very slow rate is a token in 366 days', () => {
  const { limit, windowMs } = shareOfPolicy(tokenBucket({ limit: 1, window: '90d' }), 0.1)
  assert.deepEqual([limit, windowMs], [1, YEAR_MS])
})

test('every policy has a share of any size, and it is never more than that', () => {
  const random = new Random(4)
  for (let i = 0; i < shortOrLong(3_000, 20_000); i++) {
    const policy = policyOf(randomPolicyOf(random, random.pick(ALGORITHM_NAMES), true))
    const share = random.chance(0.3) ? random.pick([0.1, 0.5, 1, 1 / 3, 0.01]) : 10 ** (-6 * random.fraction())
    const own = shareOfPolicy(policy, share)
    assert.equal(own.name, policy.name)
    for (const [k, part] of (own.policies ?? [own]).entries()) checkShare(part, (policy.policies ?? [policy])[k] as Policy, share)
  }
})

test('where the shares of windows are less than a token they add up to the rate of the policy; those of a calendar are a token each', () => {
  const nodes = 64
  for (const make of [fixedWindow, slidingWindow, slidingLog]) {
    const { limit, windowMs } = shareOfPolicy(make({ limit: 10, window: '1m' }), 1 / nodes)
    assert.deepEqual([limit, windowMs], [1, 384_000])
  }
  assert.equal(shareOfPolicy(slidingLog({ limit: 1, window: '30d' }), 1 / nodes).windowMs, YEAR_MS)
  const calendar = shareOfPolicy(fixedWindow({ limit: 10, window: 'day', timeZone: 'UTC' }), 1 / nodes)
  assert.deepEqual([calendar.limit, calendar.calendar?.unit], [1, 'day'])
  assert.equal(shareOfPolicy(concurrency({ limit: 10 }), 1 / nodes).limit, 1)
})

test('a limiter goes over from any share to any other, and gets no fresh budget by it', () => {
  const random = new Random(5)
  for (let i = 0; i < shortOrLong(100, 300); i++) {
    const policy = policyOf(randomPolicyOf(random, random.pick(ALGORITHM_NAMES), true))
    const limiter = createLimiter(shareOfPolicy(policy, 0.1), { clock: manualClock(1_000_000), maxKeys: 8 })
    const shares = Array.from({ length: 6 }, () => 1 / random.magnitude(1, 1000))
    for (const share of shares) {
      limiter.update(shareOfPolicy(policy, share))
      for (let takes = 0; takes < 5; takes++) limiter.take('k')
    }
    limiter.close()
  }
})

function checkShare(own: Policy, { algorithm, limit, windowMs, burst }: Policy, share: number): void {
  const message = `${share} of ${limit} in ${windowMs} ms, burst ${burst}, is ${own.limit} in ${own.windowMs} ms, burst ${own.burst}`
  assert.ok(own.burst <= Math.max(1, burst * share), message)
  if (algorithm !== 'token-bucket' && algorithm !== 'gcra') {
    assert.ok(own.limit <= Math.max(1, limit * share), message)
    const isLonger = own.windowMs > windowMs
    assert.equal(isLonger, isLonger && own.limit === 1 && limit * share < 1, message)
    if (isLonger) assert.ok(1 / own.windowMs <= Math.max((limit / windowMs) * share * (1 + 2 ** -50), 1 / YEAR_MS), message)
    return
  }
  // Doubles: one part in 2^50 is theirs.
  const rate = (limit / windowMs) * share * (1 + 2 ** -50)
  assert.ok(own.limit / own.windowMs <= Math.max(rate, 1 / YEAR_MS), message)
}

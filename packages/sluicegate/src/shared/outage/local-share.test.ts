import assert from 'node:assert/strict'
import { test } from 'node:test'
import { longTest, settled } from 'sluicegate-testkit'
import { manualClock, tokenBucket } from '../../index.js'
import { CountedShare, GivenShare, localShareOf } from './local-share.js'
import { Outage } from './outage.js'

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
  assert.equal(share.held(), 1 / 2)
  clock.advance(3_600_000)
  assert.equal(share.held(), 1 / 2)
  await call(1, 1000)
  clock.advance(181_000)
  assert.equal(share.held(), 0.1)
  store.nodes = 30
  await call(120, 1000)
  clock.advance(3_600_000)
  assert.equal(share.held(), 1 / 30)
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

test('the option localShare overrides the count, and so do the other modes', () => {
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

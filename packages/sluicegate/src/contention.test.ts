import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { attachLimiter, type ContentionEvent, createLimiter, manualClock, StoreError, tokenBucket } from './index.js'

// A call loses a swap when another thread changes the key between its read and its swap. Two ends of one limiter in one thread
// can do that at will: an end that finds the policy changed makes a policy object, and freezing one is the moment to step in.

test('a call that loses every swap is given up with CONTENTION after a bounded number of attempts', (t) => {
  const { limiter, rival, policy } = twoEnds()
  let interruptions = 0
  const restore = steppingIn(t, () => {
    interruptions++
    rival.take('k')
    rival.update(policy(interruptions))
  })
  rival.update(policy(1000))
  const events: ContentionEvent[] = []
  const hear = (event: unknown): void => void events.push(event as ContentionEvent)
  subscribe('sluicegate:contention', hear)
  assert.throws(
    () => limiter.take('k'),
    (error) => error instanceof StoreError && error.code === 'CONTENTION',
  )
  unsubscribe('sluicegate:contention', hear)
  restore()
  assert.deepEqual(
    events.map(({ key }) => key),
    ['k'],
  )
  assert.ok(interruptions >= 20 && interruptions <= 1000, `${interruptions} attempts`)
  assert.equal(limiter.stats().contentions, 1)
  assert.ok(limiter.stats().casRetries >= 20)
})

test('a call that was given up has charged nothing, and the next one decides', (t) => {
  const { limiter, rival, policy } = twoEnds()
  let taken = 0
  const restore = steppingIn(t, () => {
    if (rival.take('k').allowed) taken++
    rival.update(policy(taken))
  })
  rival.update(policy(1000))
  assert.throws(() => limiter.take('k'), { code: 'CONTENTION' })
  restore()
  assert.equal(limiter.peek('k').remaining, 1_000_000 - 1 - taken)
  assert.equal(limiter.take('k').allowed, true)
})

test('a call that another thread gets ahead of charges once, apart from the other', (t) => {
  const { limiter, rival, policy } = twoEnds()
  let interruptions = 0
  const restore = steppingIn(t, () => {
    if (interruptions++ === 0) rival.take('k')
  })
  rival.update(policy(5))
  assert.equal(limiter.take('k').remaining, 1_000_000 - 3)
  restore()
  assert.ok(interruptions > 0)
})

function twoEnds() {
  const policy = (n: number) => tokenBucket({ limit: 1_000_000, window: '366d', name: `policy ${n}` })
  const limiter = createLimiter(policy(0), { clock: manualClock(1_789_000_000_000) })
  const rival = attachLimiter(limiter.handle())
  limiter.take('k')
  return { limiter, rival, policy }
}

/** Calls `stepIn` whenever a policy is frozen, but not for what it does itself; answers how to stop. */
function steppingIn(t: { mock: typeof import('node:test').mock }, stepIn: () => void): () => void {
  const { freeze } = Object
  let inside = false
  const mocked = t.mock.method(Object, 'freeze', <T>(value: T): Readonly<T> => {
    if (!inside) {
      inside = true
      stepIn()
      inside = false
    }
    return freeze(value)
  })
  return () => mocked.mock.restore()
}

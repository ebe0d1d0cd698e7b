import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settled } from 'sluicegate-testkit'
import { allOf, concurrency, createLimiter, gcra, type Policy, slidingLog } from '../index.js'
import { type Clock, manualClock } from '../time/clock.js'

const NOW_MS = 1_789_000_000_000
const rate = gcra({ limit: 1, window: '100ms' })

/** A manual clock whose readings or timers can be made to fail. */
function failingClock() {
  const manual = manualClock(NOW_MS)
  const failing: { now: (() => number) | undefined; after: (() => never) | undefined } = { now: undefined, after: undefined }
  const clock: Clock = {
    nowMs: () => (failing.now ?? manual.nowMs)(),
    after: (ms, fn) => (failing.after ?? manual.after)(ms, fn),
  }
  return { manual, failing, clock }
}

function thrown(error: Error): () => never {
  return () => {
    throw error
  }
}

for (const policy of [
  rate,
  slidingLog({ limit: 1, window: '100ms' }),
  concurrency({ limit: 1, ttl: '100ms' }),
  allOf([rate, slidingLog({ limit: 1, window: '100ms' })]),
] as Policy[]) {
  test(`${policy.name}: all waits reject when the clock fails at the time of one of them, and later ones are served`, async () => {
    const { manual, failing, clock } = failingClock()
    const limiter = createLimiter(policy, { clock, maxKeys: 10 })
    for (const key of ['a', 'b']) limiter.take(key)
    const waits = ['a', 'a', 'b'].map((key) => limiter.wait(key, { maxWait: 10_000 }))
    failing.now = () => Number.NaN
    manual.advance(100)
    const outcomes = await Promise.allSettled(waits)
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.code),
      ['CLOCK_INVALID', 'CLOCK_INVALID', 'CLOCK_INVALID'],
    )
    failing.now = undefined
    manual.advance(1000)
    assert.equal(limiter.take('a').allowed, true)
    const later = limiter.wait('a')
    await settled()
    manual.advance(100)
    assert.equal((await later).allowed, true)
    limiter.close()
  })
}

test('a wait rejects with the clock’s own error, from its readings and from its timers', async () => {
  for (const which of ['now', 'after'] as const) {
    const { manual, failing, clock } = failingClock()
    const limiter = createLimiter(gcra({ limit: 10, window: '1s', burst: 1 }), { clock, maxKeys: 10 })
    limiter.take('k')
    // Both have booked: the horizon of bookings is a window.
    const waits = [limiter.wait('k'), limiter.wait('k')]
    const error = new Error('no time')
    failing[which] = thrown(error)
    manual.advance(100)
    const [first, second] = await Promise.allSettled(waits)
    // With a timer that cannot be set the first was served just now.
    assert.equal(first?.status, which === 'now' ? 'rejected' : 'fulfilled')
    assert.equal(second?.status === 'rejected' && second.reason, error)
  }
})

test('a timer that cannot be set rejects the waits that need it, and only a wait that began then', async () => {
  const { manual, failing, clock } = failingClock()
  const limiter = createLimiter(rate, { clock, maxKeys: 10 })
  limiter.take('k')
  const error = new Error('no timer')
  failing.after = thrown(error)
  await assert.rejects(limiter.wait('k'), error)
  failing.after = undefined
  const wait = limiter.wait('k')
  manual.advance(200)
  assert.equal((await wait).allowed, true)
})

test('giving up while the clock fails is no error of its own', async () => {
  const { manual, failing, clock } = failingClock()
  const limiter = createLimiter(rate, { clock, maxKeys: 10 })
  limiter.take('k')
  const abort = new AbortController()
  const waits = [limiter.wait('k', { signal: abort.signal }), limiter.wait('k')]
  failing.now = thrown(new Error('no time'))
  abort.abort(new Error('enough'))
  manual.advance(200)
  const [first, second] = await Promise.allSettled(waits)
  assert.equal(first?.status === 'rejected' && first.reason.message, 'enough')
  assert.equal(second?.status === 'rejected' && second.reason.message, 'no time')
})

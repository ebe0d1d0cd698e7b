import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { loggedWaiting, settled } from 'sluicegate-testkit'
import { StoreError } from '../errors.js'
import type { WaitOptions } from '../limiter.js'

// How a wait ends otherwise than by passing.

test('what can never pass is denied at once', async () => {
  const { bucket, waiting } = loggedWaiting()
  const decision = await waiting.wait('k', { cost: 11 })
  assert.deepEqual([decision.allowed, decision.retryAfterMs, decision.remaining], [false, Number.POSITIVE_INFINITY, 10])
  assert.equal(bucket.debt, 0)
})

test('what would take longer than maxWait is denied at once and charges nothing, to the microsecond', async () => {
  const { bucket, log } = loggedWaiting()
  bucket.take(10)
  const before = bucket.debt
  await log.wait('short', { cost: 3, maxWait: 2.999 })
  await log.wait('none', { maxWait: 0 })
  assert.deepEqual(log.lines, ['short denied for 3 at 0', 'none denied for 1 at 0'])
  assert.equal(bucket.debt, before)
  void log.wait('enough', { cost: 3, maxWait: 3 })
  await log.pass(3)
  assert.equal(log.lines[2], 'enough passed at 3')
})

test('with maxWaiting waiting others are denied as by take, unless they pass at once', async () => {
  const { bucket, waiting, log } = loggedWaiting({ maxWaiting: 2 })
  bucket.take(10)
  void log.wait('a')
  void log.wait('b')
  const refused = await waiting.wait('k', { cost: 2 })
  assert.deepEqual(refused, bucket.peek('k', 2))
  assert.deepEqual([refused.allowed, refused.retryAfterMs, waiting.size], [false, 4, 2])
  bucket.refund(5)
  await log.wait('at once', { cost: 2 })
  await log.pass(2)
  assert.deepEqual(log.lines, ['at once passed at 0', 'a passed at 1', 'b passed at 2'])
})

test('an aborted signal rejects before anything is booked', async () => {
  const { bucket, waiting } = loggedWaiting()
  const reason = new Error('enough')
  await assert.rejects(waiting.wait('k', { signal: AbortSignal.abort(reason) }), (error) => error === reason)
  await assert.rejects(waiting.wait('k', { signal: AbortSignal.abort() }), { name: 'AbortError' })
  assert.equal(bucket.debt, 0)
})

test('an abort rejects with its reason, and those behind move up', async () => {
  const { bucket, waiting, log } = loggedWaiting()
  bucket.take(10)
  const controllers = ['a', 'b', 'c', 'd'].map((name) => {
    const controller = new AbortController()
    void log.wait(name, { cost: 2, signal: controller.signal })
    return controller
  })
  controllers[1]?.abort('bored')
  await settled()
  assert.equal(waiting.size, 3)
  await log.pass(10)
  assert.deepEqual(log.lines, ['b rejected with bored at 0', 'a passed at 2', 'c passed at 4', 'd passed at 6'])
  // The two tokens of the one who left are there again: 14 units were there by now but for them.
  assert.equal(bucket.debt, (10 + 6 - 10) * 1000)
})

test('the latest who gives up leaves the key as if it had never come', async () => {
  const { bucket, log } = loggedWaiting()
  bucket.take(10)
  void log.wait('a', { cost: 7 })
  const before = bucket.debt
  const controller = new AbortController()
  const gone = log.wait('b', { cost: 5, signal: controller.signal })
  controller.abort()
  await gone
  assert.equal(bucket.debt, before)
})

test('one listener on a signal serves all waits with it, and is removed at the end', async () => {
  const { bucket, waiting, log } = loggedWaiting()
  bucket.take(10)
  const { signal } = new AbortController()
  const all = Array.from({ length: 50 }, (_, i) => log.wait(`${i}`, { signal }))
  assert.equal(getEventListeners(signal, 'abort').length, 1)
  await log.pass(50)
  await Promise.all(all)
  assert.equal(log.lines.length, 50)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
  await waiting.wait('k', { cost: 10, maxWait: 0, signal })
  assert.equal(getEventListeners(signal, 'abort').length, 0)
})

test('an abort ends thousands at once, and all that they held comes back', async () => {
  const { bucket, waiting, log } = loggedWaiting()
  bucket.take(10)
  const before = bucket.debt
  const controller = new AbortController()
  const all = Array.from({ length: 20_000 }, (_, i) => log.wait(`${i}`, { cost: 1 + (i >> 12), signal: controller.signal }))
  controller.abort('shutdown')
  await Promise.all(all)
  assert.equal(waiting.size, 0)
  assert.deepEqual(new Set(log.lines.map((line) => line.replace(/^\d+/, ''))), new Set([' rejected with shutdown at 0']))
  assert.equal(bucket.debt, before)
})

test('close rejects all waits, returns their bookings, and refuses later calls', async () => {
  const { bucket, clock, waiting, log } = loggedWaiting()
  bucket.take(10)
  const before = bucket.debt
  const all = [1, 1, 3, 1, 2, 2].map((cost, i) => log.wait(`${i}`, { cost }))
  waiting.close()
  await Promise.all(all)
  assert.equal(log.lines.filter((line) => line.includes('rejected with CLOSED at 0')).length, 6)
  assert.equal(bucket.debt, before)
  clock.advance(100)
  await assert.rejects(waiting.wait('k'), { name: 'StoreError', code: 'CLOSED' })
})

test('misuse rejects, and books nothing', async () => {
  const { bucket, waiting } = loggedWaiting()
  const wrong: readonly [object | string | null, string][] = [
    [{ cost: 0 }, 'COST_INVALID'],
    [{ cost: 1.5 }, 'COST_INVALID'],
    [{ maxWait: -1 }, 'DURATION_INVALID'],
    [{ maxWait: Number.NaN }, 'DURATION_INVALID'],
    [{ maxWait: '5 s' }, 'DURATION_INVALID'],
    [{ signal: {} }, 'OPTION_INVALID'],
    [{ signal: null }, 'OPTION_INVALID'],
    [{ maxWaitMs: 5 }, 'OPTION_UNKNOWN'],
    [null, 'OPTION_INVALID'],
    ['5s', 'OPTION_INVALID'],
  ]
  for (const [options, code] of wrong) await assert.rejects(waiting.wait('k', options as WaitOptions), { name: 'PolicyError', code })
  assert.equal(bucket.debt, 0)
})

test('an error of the store rejects the wait at the head of the queue, and no other', async () => {
  const { bucket, log } = loggedWaiting()
  bucket.take(10)
  void log.wait('a')
  void log.wait('b')
  const { redeem } = bucket
  bucket.redeem = () => {
    bucket.redeem = redeem
    throw new StoreError('CONTENTION', 'too many')
  }
  await log.pass(3)
  assert.deepEqual(log.lines, ['a rejected with CONTENTION at 1', 'b passed at 2'])
  bucket.book = () => {
    throw new StoreError('CONTENTION', 'too many')
  }
  await log.wait('c')
  assert.equal(log.lines[2], 'c rejected with CONTENTION at 3')
})

test('a wait whose key is banned when its time comes is denied, and its booking is returned', async () => {
  const { bucket, log } = loggedWaiting()
  bucket.take(10)
  void log.wait('a', { cost: 2 })
  bucket.blockedUntilUs = bucket.nowUs() + 30_000
  await log.pass(5)
  assert.deepEqual(log.lines, ['a denied for 28 at 2'])
  assert.equal(bucket.debt, 5000)
})

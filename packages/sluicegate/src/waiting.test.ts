import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { BookingBucket } from 'sluicegate-testkit'
import { manualClock, preciseClock } from './clock.js'
import type { Decision } from './decision.js'
import { StoreError } from './errors.js'
import type { WaitOptions } from './limiter.js'
import { Waiting } from './waiting.js'

// Ten tokens, one a millisecond.
const SPEC = { limit: 1000, windowMs: 1000, burst: 10 }

function fixture({ maxWaiters = 100_000, startMs = 1_790_000_000_000 } = {}) {
  const clock = manualClock(startMs)
  const bucket = new BookingBucket(SPEC, clock)
  const waiting = new Waiting<Decision>({ desk: bucket, clock, maxWaiters })
  const log: string[] = []
  /** Writes down when and how it ends. */
  const wait = (name: string, options?: WaitOptions, key = 'k'): Promise<unknown> => {
    const since = (): number => Number((clock.nowMs() - startMs).toFixed(3))
    return waiting.wait(key, options).then(
      ({ allowed, retryAfterMs }) => log.push(`${name} ${allowed ? 'passed' : `denied for ${retryAfterMs}`} at ${since()}`),
      (reason) => log.push(`${name} rejected with ${reason instanceof Error ? (reason as { code?: unknown }).code : reason} at ${since()}`),
    )
  }
  /** In steps of a millisecond, so that each promise settles at its time. */
  const pass = async (ms: number): Promise<void> => {
    for (let i = 0; i < ms; i++) {
      clock.advance(1)
      await settled()
    }
  }
  return { clock, bucket, waiting, wait, log, pass }
}

async function settled(): Promise<void> {
  for (let i = 0; i < 5; i++) await Promise.resolve()
}

test('whoever finds the tokens there does not wait', async () => {
  const { waiting, bucket } = fixture()
  const twin = fixture().bucket
  assert.deepEqual(await waiting.wait('k', { cost: 4 }), twin.take(4))
  assert.equal(waiting.size, 0)
  assert.equal(bucket.take(6).allowed, true)
})

test('those who wait pass at their time, in the order of arrival', async () => {
  const { bucket, wait, log, pass } = fixture()
  bucket.take(10)
  for (const [name, cost] of [['a', 2], ['b', 1], ['c', 1], ['d', 3], ['e', 1]] as const) void wait(name, { cost })
  await pass(20)
  assert.deepEqual(log, ['a passed at 2', 'b passed at 3', 'c passed at 4', 'd passed at 7', 'e passed at 8'])
})

test('an answer that was waited for is that of a take at that moment', async () => {
  const { bucket, waiting, clock } = fixture()
  bucket.take(10)
  const answer = waiting.wait('k', { cost: 3 })
  clock.advance(3)
  const twin = fixture().bucket
  twin.take(7)
  assert.deepEqual(await answer, twin.take(3))
})

test('a take does not overtake those who wait', async () => {
  const { bucket, wait, log, pass } = fixture()
  bucket.take(10)
  for (const name of ['a', 'b', 'c']) void wait(name, { cost: 4 })
  await pass(11)
  assert.equal(bucket.take(1).allowed, false)
  await pass(2)
  assert.deepEqual(log, ['a passed at 4', 'b passed at 8', 'c passed at 12'])
  assert.equal(bucket.take(1).allowed, true)
})

test('waiters of several keys that fall due together pass in the order of arrival', async () => {
  const clock = manualClock()
  const buckets = new Map(['x', 'y', 'z'].map((key) => [key, new BookingBucket(SPEC, clock)]))
  const of = (key: unknown): BookingBucket => buckets.get(key as string) as BookingBucket
  const waiting = new Waiting<Decision>({
    clock,
    maxWaiters: 10,
    desk: {
      book: (key, cost, mostMs) => of(key).book(key, cost, mostMs),
      answer: ({ key }) => of(key).answer(),
      giveBack: (booking, tokens) => of(booking.key).giveBack(booking, tokens),
      refuse: (key, cost) => of(key).refuse(key as string, cost),
    },
  })
  for (const bucket of buckets.values()) bucket.take(10)
  const passed: string[] = []
  for (const key of ['z', 'x', 'y', 'x', 'z', 'y']) void waiting.wait(key).then(() => passed.push(key))
  clock.advance(10)
  await settled()
  assert.equal(passed.join(''), 'zxyxzy')
})

test('what can never pass is denied at once', async () => {
  const { waiting, bucket } = fixture()
  const decision = await waiting.wait('k', { cost: 11 })
  assert.deepEqual([decision.allowed, decision.retryAfterMs, decision.remaining], [false, Number.POSITIVE_INFINITY, 10])
  assert.equal(bucket.debt, 0)
})

test('what would take longer than maxWaitMs is denied at once and charges nothing, to the microsecond', async () => {
  const { bucket, wait, log, pass } = fixture()
  bucket.take(10)
  const before = bucket.debt
  await wait('short', { cost: 3, maxWaitMs: 2.999 })
  await wait('none', { maxWaitMs: 0 })
  assert.deepEqual(log, ['short denied for 3 at 0', 'none denied for 1 at 0'])
  assert.equal(bucket.debt, before)
  void wait('enough', { cost: 3, maxWaitMs: 3 })
  await pass(3)
  assert.equal(log[2], 'enough passed at 3')
})

test('with maxWaiters waiting others are denied as by take, unless they pass at once', async () => {
  const { bucket, waiting, wait, log, pass } = fixture({ maxWaiters: 2 })
  bucket.take(10)
  void wait('a')
  void wait('b')
  const refused = await waiting.wait('k', { cost: 2 })
  assert.deepEqual(refused, bucket.peek('k', 2))
  assert.deepEqual([refused.allowed, refused.retryAfterMs, waiting.size], [false, 4, 2])
  bucket.refund(5)
  await wait('at once', { cost: 2 })
  await pass(2)
  assert.deepEqual(log, ['at once passed at 0', 'a passed at 1', 'b passed at 2'])
})

test('an aborted signal rejects before anything is booked', async () => {
  const { waiting, bucket } = fixture()
  const reason = new Error('enough')
  await assert.rejects(waiting.wait('k', { signal: AbortSignal.abort(reason) }), (error) => error === reason)
  await assert.rejects(waiting.wait('k', { signal: AbortSignal.abort() }), { name: 'AbortError' })
  assert.equal(bucket.debt, 0)
})

test('an abort rejects with its reason, and those behind move up', async () => {
  const { bucket, waiting, wait, log, pass } = fixture()
  bucket.take(10)
  const controllers = ['a', 'b', 'c', 'd'].map((name) => {
    const controller = new AbortController()
    void wait(name, { cost: 2, signal: controller.signal })
    return controller
  })
  controllers[1]?.abort('bored')
  await settled()
  assert.equal(waiting.size, 3)
  await pass(10)
  assert.deepEqual(log, ['b rejected with bored at 0', 'a passed at 2', 'c passed at 4', 'd passed at 6'])
  // The two tokens of the one who left are there again: 14 units were there by now but for them.
  assert.equal(bucket.debt, (10 + 6 - 10) * 1000)
})

test('the latest who gives up leaves the key as if it had never come', async () => {
  const { bucket, wait } = fixture()
  bucket.take(10)
  void wait('a', { cost: 7 })
  const before = bucket.debt
  const controller = new AbortController()
  const gone = wait('b', { cost: 5, signal: controller.signal })
  controller.abort()
  await gone
  assert.equal(bucket.debt, before)
})

test('one listener on a signal serves all who wait with it, and none is left behind', async () => {
  const { bucket, waiting, wait, log, pass } = fixture()
  bucket.take(10)
  const { signal } = new AbortController()
  const all = Array.from({ length: 50 }, (_, i) => wait(`${i}`, { signal }))
  assert.equal(getEventListeners(signal, 'abort').length, 1)
  await pass(50)
  await Promise.all(all)
  assert.equal(log.length, 50)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
  await waiting.wait('k', { cost: 10, maxWaitMs: 0, signal })
  assert.equal(getEventListeners(signal, 'abort').length, 0)
})

test('an abort ends thousands at once, and all that they held comes back', async () => {
  const { bucket, waiting, wait, log } = fixture()
  bucket.take(10)
  const before = bucket.debt
  const controller = new AbortController()
  const all = Array.from({ length: 20_000 }, (_, i) => wait(`${i}`, { cost: 1 + (i >> 12), signal: controller.signal }))
  controller.abort('shutdown')
  await Promise.all(all)
  assert.equal(waiting.size, 0)
  assert.deepEqual(new Set(log.map((line) => line.replace(/^\d+/, ''))), new Set([' rejected with shutdown at 0']))
  assert.equal(bucket.debt, before)
})

test('close rejects all who wait, gives back all that they hold, and refuses who comes later', async () => {
  const { bucket, waiting, wait, log, clock } = fixture()
  bucket.take(10)
  const before = bucket.debt
  const all = [1, 1, 3, 1, 2, 2].map((cost, i) => wait(`${i}`, { cost }))
  waiting.close()
  await Promise.all(all)
  assert.equal(log.filter((line) => line.includes('rejected with CLOSED at 0')).length, 6)
  assert.equal(bucket.debt, before)
  clock.advance(100)
  await assert.rejects(waiting.wait('k'), { name: 'StoreError', code: 'CLOSED' })
})

test('misuse rejects, and books nothing', async () => {
  const { waiting, bucket } = fixture()
  const wrong: readonly [object | string | null, string][] = [
    [{ cost: 0 }, 'COST_INVALID'],
    [{ cost: 1.5 }, 'COST_INVALID'],
    [{ maxWaitMs: -1 }, 'OPTION_INVALID'],
    [{ maxWaitMs: Number.NaN }, 'OPTION_INVALID'],
    [{ maxWaitMs: '5s' }, 'OPTION_INVALID'],
    [{ signal: {} }, 'OPTION_INVALID'],
    [{ signal: null }, 'OPTION_INVALID'],
    [{ maxWait: 5 }, 'OPTION_UNKNOWN'],
    [null, 'OPTION_INVALID'],
    ['5s', 'OPTION_INVALID'],
  ]
  for (const [options, code] of wrong) await assert.rejects(waiting.wait('k', options as WaitOptions), { name: 'PolicyError', code })
  assert.equal(bucket.debt, 0)
})

test('what the store throws rejects the one whose turn it was, and nobody else', async () => {
  const { bucket, wait, log, pass } = fixture()
  bucket.take(10)
  void wait('a')
  void wait('b')
  const { answer } = bucket
  bucket.answer = () => {
    bucket.answer = answer
    throw new StoreError('CONTENTION', 'too many')
  }
  await pass(3)
  assert.deepEqual(log, ['a rejected with CONTENTION at 1', 'b passed at 2'])
  bucket.book = () => {
    throw new StoreError('CONTENTION', 'too many')
  }
  await wait('c')
  assert.equal(log[2], 'c rejected with CONTENTION at 3')
})

test('a step back of the clock delays those who wait by the step, and loses nobody', async () => {
  const { bucket, clock, wait, log, pass } = fixture()
  bucket.take(10)
  void wait('a', { cost: 5 })
  void wait('b', { cost: 5 })
  await pass(4)
  clock.advance(-100)
  await pass(100)
  assert.deepEqual(log, [])
  await pass(10)
  assert.deepEqual(log, ['a passed at 5', 'b passed at 10'])
})

test('who finds the key blocked waits for the end of the block, with all who come later behind', async () => {
  const { bucket, waiting, wait, log, pass } = fixture()
  bucket.blockedUntilUs = bucket.nowUs() + 50_000
  await wait('impatient', { maxWaitMs: 49.999 })
  void wait('a', { cost: 8 })
  void wait('b', { cost: 5 })
  void wait('c')
  assert.deepEqual([waiting.queued, waiting.isQueued('k'), waiting.isQueued('other')], [3, true, false])
  await pass(60)
  assert.deepEqual(log, ['impatient denied for 50 at 0', 'a passed at 50', 'b passed at 53', 'c passed at 54'])
  assert.deepEqual([waiting.queued, waiting.isQueued('k'), waiting.size], [0, false, 0])
})

test('whose key is blocked when the time comes is denied, and what it held goes back', async () => {
  const { bucket, wait, log, pass } = fixture()
  bucket.take(10)
  void wait('a', { cost: 2 })
  bucket.blockedUntilUs = bucket.nowUs() + 30_000
  await pass(5)
  assert.deepEqual(log, ['a denied for 28 at 2'])
  assert.equal(bucket.debt, 5000)
})

test('after a refund a newcomer of the same cost does not overtake: those who wait move up', async () => {
  const { bucket, wait, log, pass } = fixture()
  bucket.take(10)
  void wait('a', { cost: 3 })
  void wait('b', { cost: 3 })
  bucket.refund(9)
  void wait('c', { cost: 3 })
  await settled()
  assert.deepEqual(log, ['a passed at 0'])
  // One that cannot wait as long as the last has to takes what it booked itself.
  void wait('d', { cost: 3, maxWaitMs: 5 })
  await pass(10)
  assert.deepEqual(log, ['a passed at 0', 'b passed at 3', 'd passed at 3', 'c passed at 6'])
})

test('a pending wait keeps the process alive by one timer, and nothing else does', async () => {
  const clock = preciseClock()
  const bucket = new BookingBucket({ limit: 1, windowMs: 3_600_000, burst: 1 }, clock)
  const waiting = new Waiting<Decision>({ desk: bucket, clock, maxWaiters: 1000 })
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const idle = timers()
  await waiting.wait('k')
  assert.equal(timers(), idle)
  const controller = new AbortController()
  const all = Array.from({ length: 1000 }, () => waiting.wait('k', { signal: controller.signal }))
  assert.equal(timers(), idle + 1)
  controller.abort('over')
  const ends = await Promise.allSettled(all)
  assert.equal(ends.every(({ status }) => status === 'rejected'), true)
  assert.equal(timers(), idle)
})

import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { describe, test } from 'node:test'
import { Random, settled, shortOrLong } from 'sluicegate-testkit'
import {
  allOf,
  attachLimiter,
  coarseClock,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  type Policy,
  preciseClock,
  StoreError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../index.js'
import { type Clock, manualClock } from '../time/clock.js'

const NOW_MS = 1_789_000_000_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The finest units there are: a state word's time base lies an hour and a half back. */
const FINE = gcra({ limit: 833_999, window: '1s', burst: 5 })

test('I3: a step back of months and an update give a forgotten key nothing', () => {
  for (const days of [1, 100, 129, 200, 255, 300, 400, 3650]) {
    let nowMs = NOW_MS + days * DAY_MS
    const limiter = createLimiter(FINE, { clock: { nowMs: () => nowMs }, maxKeys: 1 })
    for (let i = 0; i < 50; i++, nowMs += 1000) limiter.take(`key ${i}`, 5)
    nowMs -= days * DAY_MS
    limiter.update(FINE)
    assert.equal(limiter.take('key 0', 5).allowed, false, `${days} days`)
    limiter.refund('key 0', 1)
    assert.equal(limiter.take('key 1', 5).allowed, false, `${days} days, after a refund`)
  }
})

test('I3: a block outlives a step back, an update and the step forth', () => {
  let nowMs = NOW_MS
  const limiter = createLimiter(FINE, { clock: { nowMs: () => nowMs } })
  limiter.block('k', '5h')
  nowMs -= 10 * HOUR_MS
  limiter.update(FINE)
  nowMs += 10 * HOUR_MS
  assert.equal(limiter.take('k').retryAfterMs, 5 * HOUR_MS)
})

test('a clock that moves at each reading is asked twice at most, also long after a step back', () => {
  let nowMs = NOW_MS
  const limiter = createLimiter(gcra({ limit: 10, window: '1s' }), { clock: { nowMs: () => nowMs++ }, maxKeys: 1 })
  for (let i = 0; i < 50; i++, nowMs += 10_000) limiter.take(`key ${i}`)
  nowMs -= HOUR_MS
  const before = nowMs
  assert.equal(limiter.take('new').allowed, false)
  assert.equal(nowMs, before + 2)
})

test('I1: an update by a thread whose coarse reading is old gives nothing', () => {
  const policy = gcra({ limit: 100, window: '1s', burst: 1 })
  const coarse = createLimiter(policy, { clock: coarseClock() })
  const precise = attachLimiter(coarse.handle(), { clock: preciseClock() })
  coarse.peek('k')
  const start = performance.now()
  while (performance.now() < start + 25);
  const first = performance.now()
  let passed = Number(precise.take('k').allowed)
  coarse.update(policy)
  passed += Number(precise.take('k').allowed)
  assert.ok(passed <= 1 + (performance.now() - first) / 10, `${passed} passed`)
})

describe('failing clock', () => {
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
})

const NOW_US = 1_789_000_000_000_000

const log = slidingLog({ limit: 100, window: '1h' })
const LOGS: readonly Policy[] = [log, allOf([log]), allOf([tokenBucket({ limit: 100, window: '1h' }), log])]
const WINDOWS: readonly Policy[] = [slidingWindow({ limit: 100, window: '1s' }), fixedWindow({ limit: 100, window: '1s' })]

/** An end whose clock reads what `read` says, and another thread's, as it were, with its own clock. */
function twoEnds(policy: Policy, read: () => number) {
  let rivalUs = NOW_US
  const clock: Clock = { nowMs: () => read() / 1000 }
  const limiter = createLimiter(policy, { clock, maxKeys: 10 })
  const rival = attachLimiter(limiter.handle(), { clock: { nowMs: () => rivalUs / 1000 } })
  const rivalTakes = (us: number): void => {
    rivalUs = us
    assert.equal(rival.take('k').allowed, true)
  }
  return { limiter, rivalTakes }
}

for (const policy of [...LOGS, ...WINDOWS]) {
  test(`${policy.name}: a take that finds its key changed at a later reading reads its clock until it is there`, () => {
    let nowUs = NOW_US
    // Three readings to a microsecond, as the real clock has.
    const { limiter, rivalTakes } = twoEnds(policy, () => {
      nowUs += 1 / 3
      return Math.floor(nowUs)
    })
    // On the two sides of a window's end.
    rivalTakes(NOW_US + 1_000_003)
    nowUs = NOW_US + 999_998
    assert.equal(limiter.take('k').allowed, true)
    assert.ok(nowUs < NOW_US + 1_000_006, `read until ${nowUs - NOW_US}`)
  })

  test(`${policy.name}: a clock that lags, or stands still, is not read for long`, () => {
    for (const [lagUs, step, most] of [
      [900, 0.1, 300],
      [900, 0, 100],
      [3_600_000_000, 0.1, 2],
      [3_600_000_000, 0, 2],
    ] as const) {
      let nowUs = NOW_US
      let readings = 0
      const { limiter, rivalTakes } = twoEnds(policy, () => {
        readings++
        nowUs += step
        return Math.floor(nowUs)
      })
      rivalTakes(NOW_US + 7_200_000_000)
      nowUs = NOW_US + 7_200_000_000 - lagUs
      readings = 0
      assert.equal(limiter.take('k').allowed, false)
      assert.ok(readings <= most, `${readings} readings at a lag of ${lagUs} us`)
    }
  })
}

for (const policy of LOGS) {
  test(`${policy.name}: a take that others get ahead of again and again passes with a later reading`, () => {
    let nowUs = NOW_US
    let ahead = 0
    const { limiter, rivalTakes } = twoEnds(policy, () => {
      const readUs = nowUs++
      if (ahead-- > 0) rivalTakes(nowUs++)
      return readUs
    })
    nowUs += 1_000_000
    ahead = 5
    assert.equal(limiter.take('k').allowed, true)
  })
}

test('a take of several policies that lost to another thread reads its clock again', (t) => {
  let readings = 0
  const read = (): number => NOW_US + readings++
  const { limiter, rivalTakes } = twoEnds(allOf([tokenBucket({ limit: 100, window: '1h' }), log]), read)
  rivalTakes(NOW_US)
  interruptNextTake(t, limiter, () => rivalTakes(NOW_US))
  readings = 0
  assert.equal(limiter.take('k').remaining, 97)
  assert.equal(readings, 2)
})

/** Steps in between the takes of two parts: an end that finds a policy changed makes a policy object, and freezing one is the moment. */
function interruptNextTake(t: { readonly mock: { method: (typeof test)['mock']['method'] } }, limiter: Limiter, stepIn: () => void): void {
  const { policies = [] } = limiter.policy
  attachLimiter(limiter.handle(), { clock: { nowMs: () => NOW_US / 1000 } }).update(
    allOf([policies[0] as Policy, { ...(policies[1] as Policy), name: 'changed' } as Policy]),
  )
  const { freeze } = Object
  let isOver = false
  t.mock.method(Object, 'freeze', <T>(value: T): Readonly<T> => {
    if (!isOver && (value as { name?: unknown }).name === 'changed') {
      isOver = true
      stepIn()
    }
    return freeze(value)
  })
}

const SEEDS = shortOrLong(20, 30)
const few = { limit: 3, window: '1s' } as const
const POLICIES: readonly (readonly [string, Policy, number])[] = [
  ['token bucket', tokenBucket(few), 3],
  ['gcra', gcra(few), 3],
  ['fixed window', fixedWindow(few), 3],
  ['sliding window', slidingWindow(few), 3],
  ['sliding window with counts in two words', slidingWindow({ ...few, limit: 70_000 }), 40_000],
  ['sliding log', slidingLog(few), 3],
]

/** Random takes on more keys than the table holds, by a clock that steps to and fro; after each reset the key has to pass its whole limit. */
function wrongResets(policy: Policy, mostCost: number, onFull: 'evict' | 'deny', seed: number): number {
  const random = new Random(seed)
  const clock = manualClock(1_789_000_000_000)
  using limiter = createLimiter(policy, { clock, maxKeys: 16, onFull })
  let wrong = 0
  for (let i = 0; i < 200; i++) {
    const key = `k${random.integer(0, 60)}`
    const step = random.integer(0, 9)
    if (step < 6) limiter.take(key, random.integer(1, mostCost))
    else if (step < 7) clock.advance(random.integer(0, 1500))
    else if (step < 8) clock.advance(-random.integer(0, 4000))
    else if (isReset(() => limiter.reset(key))) {
      const { refusals } = limiter.stats()
      const { allowed } = limiter.take(key, policy.limit)
      // Without room for it in the table a new key is denied, however good.
      if (!allowed && limiter.stats().refusals === refusals) wrong++
    }
  }
  return wrong
}

/** False where the key is unknown, and there is no room to note that it starts again: that is an error. */
function isReset(reset: () => unknown): boolean {
  try {
    reset()
    return true
  } catch (error) {
    assert.ok(error instanceof StoreError && error.code === 'TABLE_FULL')
    return false
  }
}

for (const [name, policy, mostCost] of POLICIES) {
  for (const onFull of ['evict', 'deny'] as const) {
    test(`${name}, ${onFull} when full: a reset opens the key, however far the clock stepped back`, () => {
      for (let seed = 0; seed < SEEDS; seed++) assert.equal(wrongResets(policy, mostCost, onFull, seed), 0, `seed ${seed}`)
    })
  }
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, createLimiter, type Decision, fixedWindow, manualClock, slidingWindow } from '../index.js'

const LIMIT = 5_000_000
const COMPACT = slidingWindow({ limit: LIMIT, window: '1h', counters: 'compact' })
/** Beyond the last count that is exact, and in places where a step shows in one of 2 to 64 takes. */
const SPENT = [70_000, 140_000, 600_000, 2_200_000, 4_300_000]

test('compact counters: a take of 1 passes while there is room, also where the counter does not show it', () => {
  for (const spent of SPENT) {
    const limiter = createLimiter(COMPACT, { clock: manualClock(1_789_000_000_000), maxKeys: 10 })
    limiter.take('k', spent)
    const bound = limiter.key('k')
    const verbs: readonly (() => boolean)[] = [
      () => limiter.take('k').allowed,
      () => bound.take().allowed,
      () => limiter.reserve('k', 1).allowed,
      () => limiter.take('k', 3).allowed,
    ]
    for (const [i, passes] of verbs.entries()) for (let n = 0; n < 200; n++) assert.ok(passes(), `verb ${i} at ${spent}`)
  }
})

test('compact counters: within allOf, too', () => {
  const limiter = createLimiter(allOf([COMPACT, fixedWindow({ limit: LIMIT, window: '1h' })]), { clock: manualClock(1_789_000_000_000) })
  limiter.take('k', 4_300_000)
  const denied = Array.from({ length: 500 }, () => limiter.take('k')).filter(({ allowed }) => !allowed)
  assert.deepEqual(denied, [])
})

test('compact counters: a denial has a wait, and the count is right on average to half a percent', () => {
  const limiter = createLimiter(COMPACT, { clock: manualClock(1_789_000_000_000), maxKeys: 10 })
  limiter.take('k', LIMIT - 500_000)
  let passed = -1
  let answer: Decision
  do {
    answer = limiter.take('k')
    passed++
  } while (answer.allowed)
  assert.ok(answer.retryAfterMs > 0)
  assert.ok(Math.abs(passed - 500_000) < LIMIT * 0.005, `${passed} passed`)
})

test('compact counters: up to 65,536 in a window, and 1,024 in the one before, nothing is rounded', () => {
  for (const [limit, spent] of [
    [1_000, 777],
    [65_536, 1_024],
  ] as const) {
    const answers = ['compact', 'exact'].map((counters) => {
      const clock = manualClock(1_789_000_000_000)
      const limiter = createLimiter(slidingWindow({ limit, window: '1s', counters: counters as 'exact' }), { clock })
      const first = limiter.take('k', spent).remaining
      clock.advance(1001)
      limiter.take('k')
      return [first, limiter.peek('k').remaining, limiter.peek('k', limit).retryAfterMs]
    })
    assert.deepEqual(answers[0], answers[1])
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  allOf,
  attachLimiter,
  createLimiter,
  fixedWindow,
  type Limiter,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../index.js'
import type { Clock } from '../time/clock.js'

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

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../random.js'
import { answersOf } from './oracle.js'
import { alignedWindows, calendarWindows, FixedWindowOracle, SlidingWindowOracle } from './window-oracles.js'

test('aligned windows begin at multiples of their length, also before the epoch', () => {
  const windows = alignedWindows(1000n)
  assert.deepEqual(windows(1999n), { startUs: 1000n, endUs: 2000n })
  assert.deepEqual(windows(2000n), { startUs: 2000n, endUs: 3000n })
  assert.deepEqual(windows(-1n), { startUs: -1000n, endUs: 0n })
})

for (const timeZone of ['UTC', 'Europe/Rome'] as const) {
  const local = new Intl.DateTimeFormat('en-CA', {
    timeZone,
    weekday: 'short',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  const beginnings = { day: /00:00$/, week: /Mon, .*00:00$/, month: /-01, 00:00$/, year: /-01-01, 00:00$/ }

  for (const unit of ['day', 'week', 'month', 'year'] as const) {
    test(`every ${unit} in ${timeZone} begins when a calendar says so, and they follow each other`, () => {
      const windows = calendarWindows({ unit, timeZone })
      let us = BigInt(Date.UTC(2000, 0)) * 1000n
      for (let i = 0; i < 800 && us < BigInt(Date.UTC(2039, 0)) * 1000n; i++) {
        const { startUs, endUs } = windows(us)
        assert.match(local.format(Number(startUs / 1000n)), beginnings[unit])
        assert.deepEqual(windows(endUs - 1n), { startUs, endUs })
        assert.equal(windows(endUs).startUs, endUs)
        us = endUs
      }
    })
  }
}

test('a day in Rome has 23 to 25 hours', () => {
  const hoursOf = (month: number, day: number): bigint => {
    const { startUs, endUs } = calendarWindows({ unit: 'day', timeZone: 'Europe/Rome' })(BigInt(Date.UTC(2026, month, day, 12)) * 1000n)
    return (endUs - startUs) / 3_600_000_000n
  }
  assert.deepEqual(
    [hoursOf(2, 28), hoursOf(2, 29), hoursOf(2, 30), hoursOf(9, 24), hoursOf(9, 25), hoursOf(9, 26)],
    [24n, 23n, 24n, 24n, 25n, 24n],
  )
})

const TEN_A_SECOND = { algorithm: 'fixed-window', limit: 10, windowMs: 1000 } as const

const answer = answersOf(10)

test('a window gives its limit, whenever in it a key comes first, and the next one again', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  assert.deepEqual(oracle.take('k', 9, 700), answer(true, 1, 0, 300))
  assert.deepEqual(oracle.take('k', 2, 999.999), answer(false, 1, 1, 1))
  assert.deepEqual(oracle.take('k', 10, 1000), answer(true, 0, 0, 1000))
})

test('a cost above the limit never passes and costs nothing', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  assert.deepEqual(oracle.take('k', 11, 0), answer(false, 10, Number.POSITIVE_INFINITY, 0))
  assert.deepEqual(oracle.peek('k', 10, 0), answer(true, 10, 0, 0))
})

test('after a step back a key is closed until its window begins, also when nothing counts in it', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('k', 3, 2500)
  assert.deepEqual(oracle.take('k', 1, 1999), answer(false, 0, 1, 1001))
  assert.deepEqual(oracle.take('k', 8, 1999), answer(false, 0, 1001, 1001))
  assert.deepEqual(oracle.refund('k', 5, 0), answer(false, 0, 2000, 2000))
  assert.deepEqual(oracle.take('k', 10, 2000), answer(true, 0, 0, 1000))
})

test('a penalty stops at ten limits below empty and ends with its window', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  assert.deepEqual(oracle.penalize('k', 1_000_000, 0), answer(false, 0, 1000, 1000))
  assert.deepEqual(oracle.refund('k', 101, 0), answer(true, 1, 0, 1000))
  assert.deepEqual(oracle.peek('k', 10, 1000), answer(true, 10, 0, 0))
})

test('a refund is of the window at hand', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('k', 10, 0)
  oracle.refund('k', 5, 1000)
  assert.deepEqual(oracle.take('k', 10, 1000), answer(true, 0, 0, 1000))
})

test('after a reset a key was never seen, also after a step back', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('k', 10, 5000)
  oracle.block('k', 1000, 5000)
  assert.deepEqual(oracle.reset('k', 5000), answer(true, 10, 0, 0))
  assert.deepEqual(oracle.take('k', 10, 4000), answer(true, 0, 0, 1000))
})

test('a booking that does not pass goes to the next window that has room; what it skips is not used', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('k', 6, 300)
  const [first, second, third] = [oracle.reserve('k', 6, 300), oracle.reserve('k', 4, 300), oracle.reserve('k', 1, 300)]
  assert.deepEqual([first.waitMs, second.waitMs, third.waitMs], [700, 700, 1700])
  assert.deepEqual([first.atUs, second.atUs, third.atUs], [1_000_000n, 1_000_000n, 2_000_000n])
  assert.deepEqual(oracle.take('k', 1, 300), answer(false, 0, 1700, 2700))
  assert.deepEqual(oracle.take('k', 1, 1500), answer(false, 0, 500, 1500))
  assert.deepEqual(oracle.take('k', 9, 2000), answer(true, 0, 0, 1000))
})

test('a booking comes back only into the window that the key is in', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('k', 10, 0)
  const [early, late] = [oracle.reserve('k', 8, 0), oracle.reserve('k', 8, 0)]
  assert.deepEqual(oracle.cancel(early, 8, 0), answer(false, 0, 2000, 3000))
  assert.deepEqual(oracle.cancel(late, 5, 0), answer(false, 0, 2000, 3000))
  assert.deepEqual(oracle.peek('k', 7, 2000), answer(true, 7, 0, 1000))
})

test('a blocked key books nothing', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.block('k', 5000, 0)
  const { allowed, waitMs } = oracle.reserve('k', 1, 0)
  assert.deepEqual([allowed, waitMs], [false, 5000])
  assert.deepEqual(oracle.peek('k', 1, 5000), answer(true, 10, 0, 0))
})

test('an update of the limit keeps the window, one of the window keeps what was spent in the old one', () => {
  const oracle = new FixedWindowOracle(TEN_A_SECOND)
  oracle.take('now', 6, 5000)
  oracle.take('before', 6, 4999)
  oracle.update({ ...TEN_A_SECOND, limit: 5 }, 5000)
  assert.deepEqual(oracle.peek('now', 1, 5000), answer(false, 0, 1000, 1000, 5))
  assert.deepEqual(oracle.peek('before', 1, 5000), answer(true, 5, 0, 0, 5))
  oracle.update({ ...TEN_A_SECOND, windowMs: 60_000 }, 5500)
  assert.deepEqual(oracle.peek('now', 1, 5500), answer(true, 5, 0, 54_500))
  assert.deepEqual(oracle.peek('before', 1, 5500), answer(true, 10, 0, 0))
})

test('windows may be any that follow each other', () => {
  const startsUs = [0n, 1_000_000n, 1_500_000n, 9_000_000n, 10n ** 30n]
  const oracle = new FixedWindowOracle(TEN_A_SECOND, (us) => {
    const next = startsUs.findIndex((startUs) => startUs > us)
    return { startUs: startsUs[next - 1] ?? 0n, endUs: startsUs[next] ?? 0n }
  })
  assert.deepEqual(oracle.take('k', 10, 1200), answer(true, 0, 0, 300))
  assert.deepEqual(oracle.take('k', 10, 1500), answer(true, 0, 0, 7500))
  assert.equal(oracle.reserve('k', 1, 1500).waitMs, 7500)
})

const TEN_SLIDING = { algorithm: 'sliding-window', limit: 10, windowMs: 1000 } as const

const slidingAnswer = answersOf(10)

test('the window before counts by the share of it that is still covered, rounded up', () => {
  const oracle = new SlidingWindowOracle(TEN_SLIDING)
  assert.deepEqual(oracle.take('k', 10, 900), slidingAnswer(true, 0, 0, 1100))
  assert.deepEqual(oracle.peek('k', 1, 900), slidingAnswer(false, 0, 200, 1100))
  assert.deepEqual(oracle.take('k', 1, 1099.999), slidingAnswer(false, 0, 1, 901))
  assert.deepEqual(oracle.take('k', 1, 1100), slidingAnswer(true, 0, 0, 1900))
  assert.deepEqual(oracle.peek('k', 5, 1500), slidingAnswer(false, 4, 100, 1500))
  assert.deepEqual(oracle.peek('k', 10, 1500), slidingAnswer(false, 4, 1500, 1500))
  assert.deepEqual(oracle.peek('k', 10, 3000), slidingAnswer(true, 10, 0, 0))
})

test('a wait may lead over into the next window', () => {
  const oracle = new SlidingWindowOracle(TEN_SLIDING)
  oracle.take('k', 10, 0)
  assert.deepEqual(oracle.peek('k', 1, 0), slidingAnswer(false, 0, 1100, 2000))
  assert.deepEqual(oracle.peek('k', 10, 0), slidingAnswer(false, 0, 2000, 2000))
})

test('what it says of the first moment at which a request passes is so, by trying every microsecond', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = new Random(seed)
    const limit = random.integer(1, 12)
    const oracle = new SlidingWindowOracle({ algorithm: 'sliding-window', limit, windowMs: 1 })
    let nowUs = random.integer(0, 5000)
    for (let i = 0; i < 6; i++) {
      nowUs += random.integer(0, 900)
      if (random.chance(0.2)) oracle.penalize('k', random.integer(1, 30), nowUs / 1000)
      oracle.take('k', random.integer(1, limit), nowUs / 1000)
    }
    const cost = random.integer(1, limit)
    let passesUs = nowUs
    while (!oracle.peek('k', cost, passesUs / 1000).allowed) passesUs++
    assert.equal(oracle.reserve('k', cost, nowUs / 1000).atUs, BigInt(passesUs), `seed ${seed}`)
  }
})

test('after a step back a key is closed until its window begins', () => {
  const oracle = new SlidingWindowOracle(TEN_SLIDING)
  oracle.take('k', 4, 2500)
  assert.deepEqual(oracle.take('k', 1, 1999), slidingAnswer(false, 0, 1, 2001))
  assert.deepEqual(oracle.take('k', 7, 1999), slidingAnswer(false, 0, 1251, 2001))
  assert.deepEqual(oracle.take('k', 6, 2000), slidingAnswer(true, 0, 0, 2000))
})

test('a penalty stops at ten limits below empty, and at 65,535 where counters are packed', () => {
  const oracle = new SlidingWindowOracle(TEN_SLIDING)
  oracle.penalize('k', 1_000_000, 0)
  assert.deepEqual(oracle.refund('k', 101, 0), slidingAnswer(true, 1, 0, 2000))
  for (const [windowMs, most] of [
    [220, 65_535],
    [219.999, 660_000],
  ] as const) {
    const large = new SlidingWindowOracle({ algorithm: 'sliding-window', limit: 60_000, windowMs })
    large.penalize('k', 1_000_000, 0)
    assert.equal(large.refund('k', most - 1, 0).remaining, 59_999)
  }
})

test('a refund is of this window, not of the one before', () => {
  const oracle = new SlidingWindowOracle(TEN_SLIDING)
  oracle.take('k', 10, 0)
  assert.deepEqual(oracle.refund('k', 10, 1000), slidingAnswer(false, 0, 100, 1000))
})

test('a booking is made in the window in which it conforms, and comes back only while the key is in it', () => {
  const oracle = new SlidingWindowOracle(TEN_SLIDING)
  oracle.take('k', 10, 0)
  const [first, second] = [oracle.reserve('k', 4, 0), oracle.reserve('k', 10, 0)]
  assert.deepEqual([first.atUs, second.atUs], [1_400_000n, 3_000_000n])
  assert.deepEqual(oracle.cancel(first, 4, 0), slidingAnswer(false, 0, 4100, 5000))
  assert.deepEqual(oracle.cancel(second, 10, 0), slidingAnswer(false, 0, 3000, 3000))
})

test('an update of the limit keeps the counts, one of the window what was used', () => {
  const oracle = new SlidingWindowOracle(TEN_SLIDING)
  oracle.take('k', 10, 4000)
  oracle.take('k', 2, 5500)
  oracle.update({ ...TEN_SLIDING, limit: 8 }, 5500)
  assert.deepEqual(oracle.peek('k', 1, 5500), slidingAnswer(true, 2, 0, 1500, 8))
  oracle.update({ ...TEN_SLIDING, windowMs: 60_000 }, 5750)
  assert.deepEqual(oracle.peek('k', 1, 5750), slidingAnswer(true, 6, 0, 114_250))
})

test('an update of the window with the key ahead counts a whole limit: what it has spent in the window of now is not known', () => {
  const oracle = new SlidingWindowOracle(TEN_SLIDING)
  oracle.take('k', 3, 4900)
  oracle.take('k', 4, 5900)
  oracle.update({ ...TEN_SLIDING, windowMs: 60_000 }, 3000)
  assert.deepEqual(oracle.peek('k', 1, 3000), slidingAnswer(false, 0, 63_000, 117_000))
})

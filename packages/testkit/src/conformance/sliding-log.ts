import assert from 'node:assert/strict'
import { test } from 'node:test'
import { slidingLog } from 'sluicegate'
import { type Admission, firstPositionExcess } from '../history/excess.js'
import { Random } from '../random.js'
import { admitted, type Fixtures, inTurn, times } from './fixture.js'

/** What is true of sliding logs alone. */
export function slidingLogs(name: string, fixture: Fixtures): void {
  const logOf = (limit: number, window: number) => slidingLog({ limit, window })

  test(`${name}: exactly the limit fits, not one less`, async () => {
    for (const limit of [1, 2, 3, 7, 8, 9, 100, 1000]) {
      const { limiter, clock } = await fixture(logOf(limit, 1000), { maxKeys: 4 })
      for (let round = 0; round < 5; round++) {
        assert.equal(await admitted(limiter, 'k', limit + 5), limit)
        clock.advance(1000)
      }
      for (let i = 0; i < limit; i++) {
        assert.equal((await limiter.take('k')).allowed, true)
        clock.advance(0.5)
      }
      assert.equal((await limiter.take('k')).allowed, limit * 0.5 >= 1000)
    }
  })

  test(`I1 ${name}: no window in any position holds more than the limit`, async () => {
    for (const [limit, windowMs] of [
      [1, 1],
      [5, 1000],
      [64, 16.667],
      [100, 86_400_000],
    ] as const) {
      const random = new Random(limit)
      const { checked, clock } = await fixture(logOf(limit, windowMs), { maxKeys: 4 })
      const admissions = []
      for (let i = 0; i < Math.max(700, 2000 * fixture.store.share); i++) {
        const gapMs = random.pick([0, 0.001, windowMs / limit, (windowMs * random.fraction()) / limit, windowMs, -0.001])
        clock.set(Math.round((clock.nowMs() + gapMs) * 1000) / 1000)
        const cost = random.chance(0.7) ? 1 : random.integer(1, limit)
        if ((await checked.take('k', cost)).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost })
      }
      assert.ok(admissions.length > 200)
      assert.equal(firstPositionExcess(limit, Math.round(windowMs * 1000), admissions), undefined)
    }
  })

  test(`I2 ${name}: who always asks gets all of every window`, async () => {
    const { limiter, clock } = await fixture(logOf(10, 1000))
    let passed = 0
    for (let ms = 0; ms < 60_000; ms += 7) {
      passed += await admitted(limiter, 'k', 2)
      clock.advance(7)
    }
    assert.ok(passed >= 10 * 59 && passed <= 10 * 61, `${passed}`)
  })

  test(`${name}: retry-after is when enough of the oldest ends`, async () => {
    const { checked, clock } = await fixture(logOf(6, 1000))
    for (const cost of [1, 2, 3]) {
      await checked.take('k', cost)
      clock.advance(100)
    }
    const waits = await inTurn([1, 2, 3, 4, 5, 6], async (cost) => (await checked.take('k', cost)).retryAfterMs)
    assert.deepEqual(waits, [700, 800, 800, 900, 900, 900])
  })

  test(`${name}: a clock that steps back finds the log closed until its newest entry`, async () => {
    const { checked, clock } = await fixture(logOf(3, 1000))
    await checked.take('k')
    clock.advance(-1)
    assert.deepEqual([(await checked.take('k')).allowed, (await checked.peek('k')).retryAfterMs], [false, 1])
    clock.advance(-100_000)
    await checked.penalize('k', 1)
    await checked.refund('k', 1)
    clock.advance(100_001)
    assert.equal((await checked.take('k', 2)).allowed, true)
  })

  test(`I1 ${name}: what is booked ahead and given back frees nothing that was there before, with one slot too`, async () => {
    for (const limit of [1, 2, 3]) {
      const { checked, clock } = await fixture(logOf(limit, 100))
      const admissions: Admission[] = []
      const takeAt = async (): Promise<void> => {
        if ((await checked.take('k')).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost: 1 })
      }
      for (let round = 0; round < 5; round++) {
        for (let i = 0; i < limit; i++) {
          await takeAt()
          clock.advance(1)
        }
        const ahead = await times(3 * limit, () => checked.reserve('k', 1))
        for (const booking of round % 2 === 0 ? ahead.reverse() : ahead) await checked.cancel(booking)
        for (let ms = 0; ms < 500; ms++) {
          await takeAt()
          clock.advance(1)
        }
      }
      assert.ok(admissions.length > 5 * limit)
      assert.equal(firstPositionExcess(limit, 100_000, admissions), undefined)
    }
  })

  test(`${name}: a longer or shorter log after an update keeps what still counts`, async () => {
    const { checked, clock } = await fixture(logOf(10, 1000), { maxKeys: 10 })
    for (let i = 0; i < 10; i++) {
      await checked.take('k')
      clock.advance(50)
    }
    for (const [limit, windowMs] of [
      [15, 1000],
      [100, 1000],
      [12, 700],
      [40, 60_000],
    ] as const) {
      checked.update(logOf(limit, windowMs))
      await checked.peek('k')
      await checked.take('k', 2)
      clock.advance(50)
    }
  })

  test(`${name}: refunds and penalties between takes are answered as declared`, async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const random = new Random(seed)
      const { checked, clock } = await fixture(logOf(random.integer(1, 6), 1000))
      for (let i = 0; i < 60; i++) {
        clock.advance(random.pick([0, 0.001, 100, 1000 * random.fraction()]))
        const tokens = random.integer(1, 8)
        await random.pick([
          () => checked.take('k'),
          () => checked.take('k', tokens),
          () => checked.refund('k', tokens),
          () => checked.penalize('k', tokens),
        ])()
      }
    }
  })

  test(`${name}: a log of 100,000 keeps every one of them`, async () => {
    const { limiter, clock } = await fixture(slidingLog({ limit: 100_000, window: '1h' }), { maxKeys: 1 })
    let passed = 0
    for (let i = 0; i < 100_100; i++) {
      if ((await limiter.take('k')).allowed) passed++
      if (i % 1000 === 999) clock.advance(1)
    }
    assert.equal(passed, 100_000)
    // The first thousand came together; after them the next came a millisecond later. Times of an hour are rounded up to 4 microseconds.
    const [first, second] = [(await limiter.take('k', 1000)).retryAfterMs, (await limiter.take('k', 1001)).retryAfterMs]
    assert.ok(Math.abs(first - (3_600_000 - 100)) <= 1 && Math.abs(second - first - 1) <= 1, `${first}, ${second}`)
  })
}

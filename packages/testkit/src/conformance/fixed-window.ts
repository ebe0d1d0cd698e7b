import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixedWindow } from 'sluicegate'
import { firstWindowExcess } from '../history/excess.js'
import { calendarWindows } from '../oracle/window-oracles.js'
import { Random } from '../random.js'
import { admitted, type Fixtures } from './fixture.js'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
/** A midnight of UTC. */
const MIDNIGHT_MS = Date.UTC(2026, 8, 10)

/** What is true of fixed windows alone. */
export function fixedWindows(name: string, fixture: Fixtures): void {
  const tenASecond = fixedWindow({ limit: 10, window: '1s' })

  test(`${name}: windows are aligned to UTC: a key's first call sets none of its own`, async () => {
    const { limiter, clock } = await fixture(tenASecond, {}, MIDNIGHT_MS + 700)
    assert.equal(await admitted(limiter, 'k', 20), 10)
    assert.equal((await limiter.take('k')).retryAfterMs, 300)
    clock.advance(299.999)
    assert.equal((await limiter.take('k')).allowed, false)
    clock.advance(0.001)
    assert.equal(await admitted(limiter, 'k', 20), 10)
    assert.equal((await limiter.peek('k')).resetAfterMs, 1000)
  })

  test(`I2 ${name}: who always asks gets all of every window`, async () => {
    for (const [limit, windowMs] of [
      [10, 1000],
      [7, 16.667],
      [1000, 60_000],
    ] as const) {
      const { limiter, clock } = await fixture(fixedWindow({ limit, window: windowMs }), {}, 0)
      let passed = 0
      for (let step = 0; step < 5000; step++) {
        if ((await limiter.take('k')).allowed) passed++
        else clock.advance(Math.max(0.001, Math.round((windowMs / 3) * 1000) / 1000))
      }
      const begun = Math.floor(Math.round(clock.nowMs() * 1000) / Math.round(windowMs * 1000)) + 1
      assert.ok(passed <= limit * begun && passed > limit * (begun - 1) - limit, `${passed} of ${limit * begun}`)
    }
  })

  test(`${name}: a clock that steps back over the end of a window finds the key closed, not in a window of long ago`, async () => {
    const { limiter, clock } = await fixture(tenASecond, {}, MIDNIGHT_MS)
    await limiter.take('k')
    clock.advance(-0.001)
    const { allowed, remaining, retryAfterMs, resetAfterMs } = await limiter.take('k')
    assert.deepEqual([allowed, remaining, retryAfterMs, resetAfterMs], [false, 0, 1, 1001])
    clock.advance(-30 * DAY_MS)
    assert.equal((await limiter.take('k')).allowed, false)
    clock.set(MIDNIGHT_MS)
    assert.equal(await admitted(limiter, 'k', 20), 9)
  })

  test(`${name}: a penalty ends with its window`, async () => {
    const { limiter, clock } = await fixture(tenASecond, {}, MIDNIGHT_MS + 100)
    assert.equal((await limiter.penalize('k', 1_000_000)).retryAfterMs, 900)
    assert.equal((await limiter.refund('k', 109)).retryAfterMs, 0)
    await limiter.penalize('k', 1_000_000)
    clock.advance(900)
    assert.equal(await admitted(limiter, 'k', 20), 10)
  })

  test(`${name}: a refund does not reach into the window before`, async () => {
    const { limiter, clock } = await fixture(tenASecond, {}, MIDNIGHT_MS)
    await limiter.take('k', 10)
    clock.advance(1000)
    await limiter.refund('k', 10)
    assert.equal(await admitted(limiter, 'k', 20), 10)
  })

  test(`${name}: a change of the limit does not begin the window anew`, async () => {
    const { limiter, clock } = await fixture(tenASecond, {}, MIDNIGHT_MS)
    await limiter.take('k', 10)
    clock.advance(999)
    limiter.update(fixedWindow({ limit: 12, window: '1s' }))
    assert.equal(await admitted(limiter, 'k', 20), 2)
    clock.advance(1)
    assert.equal(await admitted(limiter, 'k', 20), 12)
  })

  test(`${name}: a monthly quota begins with the month of its time zone`, async () => {
    const quota = fixedWindow({ limit: 1000, window: 'month', timeZone: 'Europe/Rome' })
    const { limiter, clock } = await fixture(quota, {}, Date.UTC(2026, 8, 10))
    await limiter.take('k', 1000)
    assert.equal((await limiter.take('k')).retryAfterMs, Date.UTC(2026, 8, 30, 22) - Date.UTC(2026, 8, 10))
    clock.set(Date.UTC(2026, 8, 30, 22) - 0.001)
    assert.equal((await limiter.take('k')).allowed, false)
    clock.set(Date.UTC(2026, 8, 30, 22))
    assert.equal((await limiter.take('k', 1000)).resetAfterMs, Date.UTC(2026, 9, 31, 23) - Date.UTC(2026, 8, 30, 22))
  })

  test(`${name}: a day lasts as long as its time zone makes it`, async () => {
    const daily = fixedWindow({ limit: 1, window: 'day', timeZone: 'Europe/Rome' })
    for (const [startMs, hours] of [
      [Date.UTC(2026, 2, 28, 23), 23],
      [Date.UTC(2026, 5, 30, 22), 24],
      [Date.UTC(2026, 9, 24, 22), 25],
    ] as const) {
      const { limiter, clock } = await fixture(daily, {}, startMs)
      await limiter.take('k')
      assert.equal((await limiter.take('k')).retryAfterMs, hours * HOUR_MS)
      clock.advance(hours * HOUR_MS)
      assert.equal((await limiter.take('k')).allowed, true)
    }
  })

  for (const unit of ['day', 'week', 'month', 'year'] as const) {
    for (const timeZone of ['UTC', 'Europe/Rome'] as const) {
      test(`I1 ${name}: a quota by the ${unit} of ${timeZone} is kept in each of them, and all of it is there`, async () => {
        const random = new Random(unit.length)
        const windows = calendarWindows({ unit, timeZone })
        const { checked, limiter, clock } = await fixture(fixedWindow({ limit: 5, window: unit, timeZone }), {}, MIDNIGHT_MS)
        const admissions = []
        for (let i = 0; i < 400; i++) {
          const toEndMs = Number(windows(BigInt(Math.round(clock.nowMs() * 1000))).endUs) / 1000 - clock.nowMs()
          clock.advance(random.pick([0, 0, 0, HOUR_MS, toEndMs, toEndMs - 1, toEndMs * random.fraction()]))
          clock.set(Math.round(clock.nowMs() * 1000) / 1000)
          const cost = random.integer(1, 2)
          if ((await checked.take('k', cost)).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost })
        }
        assert.equal(firstWindowExcess(5, windows, admissions), undefined)
        clock.advance((await limiter.peek('k')).resetAfterMs)
        assert.equal(await admitted(limiter, 'k', 20), 5)
      })
    }
  }

  test(`${name}: a change from one calendar to another keeps what was spent`, async () => {
    const { checked } = await fixture(fixedWindow({ limit: 10, window: 'day' }), {}, MIDNIGHT_MS)
    await checked.take('k', 6)
    checked.update(fixedWindow({ limit: 10, window: 'week', timeZone: 'Europe/Rome' }))
    assert.equal((await checked.peek('k')).remaining, 4)
    checked.update(fixedWindow({ limit: 10, window: '1h' }))
    assert.equal((await checked.peek('k')).remaining, 4)
  })
}

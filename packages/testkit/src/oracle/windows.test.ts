import assert from 'node:assert/strict'
import { test } from 'node:test'
import { alignedWindows, calendarWindows } from './windows.js'

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

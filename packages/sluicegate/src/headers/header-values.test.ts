import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRateLimit } from './read-rate-limit.js'

const NOW_MS = Date.UTC(2026, 10, 21, 12, 0, 0)

test('a reset as a date has fractions and offsets, and is never read too early', () => {
  const resets = [
    '2026-11-21T12:00:30.900Z',
    '2026-11-21T12:00:30.9005Z',
    '2026-11-21T13:30:30+01:30',
    '2026-11-21T11:30:30-00:30',
    '2026-11-21 12:00:30-00:00',
    'Sat Nov 21 2026 12:00:30 GMT+0000 (Coordinated Universal Time)',
    'Sat Nov 21 2026 07:00:30 GMT-0500',
    'Sat, 21 Nov 2026 12:00:30 GMT',
  ]
  assert.deepEqual(
    resets.map((text) => readRateLimit({ 'x-ratelimit-reset': text }, { nowMs: NOW_MS }).resetAfterMs),
    [30_900, 30_901, 30_000, 30_000, 30_000, 30_000, 30_000, 30_000],
  )
  const now = String(new Date(NOW_MS + 5_000))
  assert.equal(readRateLimit({ 'x-ratelimit-reset': now }, { nowMs: NOW_MS }).resetAfterMs, 5_000, now)
})

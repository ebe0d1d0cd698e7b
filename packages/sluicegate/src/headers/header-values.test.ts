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

test('Retry-After and resets may be a moment in Unix time, a date or a duration', () => {
  const nowS = NOW_MS / 1_000
  const forms: readonly (readonly [text: string, ms: number | undefined])[] = [
    ['40', 40_000],
    ['1.5', 1_500],
    [`${nowS + 40}`, 40_000],
    [`${nowS + 40}.250`, 40_250],
    [`${NOW_MS + 40_000}`, 40_000],
    [`${NOW_MS + 40_000}000`, 40_000],
    [`${NOW_MS + 40_000}000000`, 40_000],
    [`${nowS - 5}`, 0],
    ['2026-11-21T12:00:40Z', 40_000],
    ['2026-11-21T13:00:40.5+01:00', 40_500],
    ['Sat, 21 Nov 2026 12:00:40 GMT', 40_000],
    ['6m0s', 360_000],
    ['1h2m3.5s', 3_723_500],
    ['1m30.951s', 90_951],
    ['1d2h', 93_600_000],
    ['20ms', 20],
    ['1.5ms', 2],
    ['850µs', 1],
    ['850μs', 1],
    ['850us', 1],
    [Buffer.from('850µs').toString('latin1'), 1],
    [Buffer.from('850μs').toString('latin1'), 1],
    ['17ns', 1],
    ['0s', 0],
    [`30, ${nowS + 40}`, 40_000],
    ['soon', undefined],
    ['-5', undefined],
    ['5 minutes', undefined],
  ]
  for (const [text, ms] of forms) {
    assert.equal(readRateLimit({ 'retry-after': text }, { nowMs: NOW_MS }).retryAfterMs, ms, text)
    assert.equal(readRateLimit({ 'x-ratelimit-reset': text }, { nowMs: NOW_MS }).resetAfterMs, ms, text)
  }
})

test('milliseconds come before Retry-After, if they are a number', () => {
  const read = (headers: Record<string, string>) => readRateLimit({ 'retry-after': '7', ...headers }, { nowMs: NOW_MS }).retryAfterMs
  assert.equal(read({ 'retry-after-ms': '250' }), 250)
  assert.equal(read({ 'x-ms-retry-after-ms': '300' }), 300)
  assert.equal(read({ 'retry-after-ms': 'soon', 'x-ms-retry-after-ms': '300' }), 300)
  assert.equal(read({ 'retry-after-ms': 'soon' }), 7_000)
})

test('a resource and its window may be in the name of the header', () => {
  const cerebras = readRateLimit({
    'x-ratelimit-limit-requests-day': '14400',
    'x-ratelimit-remaining-requests-day': '14000',
    'x-ratelimit-reset-requests-day': '3600.5',
    'x-ratelimit-limit-tokens-minute': '60000',
    'x-ratelimit-remaining-tokens-minute': '0',
    'x-ratelimit-reset-tokens-minute': '12.5',
  })
  assert.deepEqual(cerebras.policies, [
    { name: 'tokens-minute', windowMs: 60_000, limit: 60_000, remaining: 0, resetAfterMs: 12_500 },
    { name: 'requests-day', windowMs: 86_400_000, limit: 14_400, remaining: 14_000, resetAfterMs: 3_600_500 },
  ])
  assert.deepEqual([cerebras.remaining, cerebras.resetAfterMs], [0, 12_500])
  const kong = readRateLimit({ 'x-ratelimit-limit-minute': '60', 'x-ratelimit-remaining-minute': '7' })
  assert.deepEqual(kong, {
    limit: 60,
    remaining: 7,
    policies: [{ name: 'requests-minute', windowMs: 60_000, limit: 60, remaining: 7 }],
  })
})

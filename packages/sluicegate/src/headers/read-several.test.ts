import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RateLimitReading, readRateLimit } from './read-rate-limit.js'

const NOW_MS = Date.UTC(2026, 10, 21, 12, 0, 0)

test('of several remaining numbers the least counts, with its other numbers', () => {
  const read = (headers: Record<string, string>): RateLimitReading => {
    const { policies, ...numbers } = readRateLimit(headers, { nowMs: NOW_MS })
    return numbers
  }
  const service = { 'X-RateLimit-Remaining': '3', 'X-RateLimit-Reset': '60' }
  const three = { remaining: 3, resetAfterMs: 60_000 }
  assert.deepEqual(read({ 'RateLimit-Limit': '10', ...service }), { limit: 10, ...three })
  assert.deepEqual(read({ 'RateLimit-Limit': '10', 'RateLimit-Remaining': '5', 'RateLimit-Reset': '9', ...service }), three)
  assert.deepEqual(read({ 'RateLimit-Remaining': '3', 'RateLimit-Reset': '9', ...service, 'X-RateLimit-Limit': '4' }), {
    limit: 4,
    remaining: 3,
    resetAfterMs: 9_000,
  })
  assert.deepEqual(read({ RateLimit: '"a";r=50;t=1', 'RateLimit-Policy': '"a";q=60', ...service }), three)
  assert.deepEqual(read({ RateLimit: '"a";r=2;t=1', ...service }), { remaining: 2, resetAfterMs: 1_000 })
  assert.deepEqual(read({ 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining-Requests': '0' }), { limit: 100, remaining: 0 })
})

test('of two lines, as of a gateway and what is behind it, the smaller remainder and the longer reset count', () => {
  const soon = new Date(NOW_MS + 10_000).toUTCString()
  const reset = ['10, 60', `${soon}, 60`, '60s, 10ms']
  for (const text of reset) {
    const headers = { 'x-ratelimit-remaining': '5, 0', 'x-ratelimit-reset': text }
    assert.deepEqual(readRateLimit(headers, { nowMs: NOW_MS }), { remaining: 0, resetAfterMs: 60_000 }, text)
  }
  assert.equal(readRateLimit({ 'ratelimit-remaining': ['76;w=21600', '80;w=60'] }).remaining, 76)
})

test('of two lines of Retry-After, which arrive as one, the longer counts', () => {
  const nowMs = Date.UTC(2026, 0, 1)
  const soon = new Date(nowMs + 5_000).toUTCString()
  const later = new Date(nowMs + 90_000).toUTCString()
  const seen = ['120, 120', '5,  30', `${later}, ${soon}`, `7, ${soon}`, soon, '5, soon', ',']
  assert.deepEqual(
    seen.map((text) => readRateLimit({ 'Retry-After': text }, { nowMs }).retryAfterMs),
    [120_000, 30_000, 90_000, 7_000, 5_000, undefined, undefined],
  )
})

test('a resource of which nothing is left binds, of several the one that takes longest', () => {
  const seen = (remaining: readonly [requests: string, tokens: string, output: string]): RateLimitReading => {
    const [requests, tokens, output] = remaining
    const { policies, ...numbers } = readRateLimit({
      'anthropic-ratelimit-requests-limit': '50',
      'anthropic-ratelimit-requests-remaining': requests,
      'anthropic-ratelimit-requests-reset': '30',
      'anthropic-ratelimit-tokens-remaining': tokens,
      'anthropic-ratelimit-tokens-reset': '60',
      'anthropic-ratelimit-output-tokens-remaining': output,
      'anthropic-ratelimit-output-tokens-reset': '90',
    })
    assert.equal(policies?.length, 3)
    return numbers
  }
  assert.deepEqual(seen(['49', '1', '1']), { limit: 50, remaining: 49, resetAfterMs: 30_000 })
  assert.deepEqual(seen(['49', '0', '1']), { remaining: 0, resetAfterMs: 60_000 })
  assert.deepEqual(seen(['0', '0', '0']), { remaining: 0, resetAfterMs: 90_000 })
  assert.deepEqual(seen(['0', '7', '7']), { limit: 50, remaining: 0, resetAfterMs: 30_000 })
})

test('of several policies of one name the first limit is that of the first policy', () => {
  const { policies, ...binding } = readRateLimit({
    'ratelimit-policy': '"a";q=10, "a";q=3',
    ratelimit: '"a";r=9;t=54, "a";r=2;t=12, "a";r=7',
  })
  assert.deepEqual(binding, { limit: 3, remaining: 2, resetAfterMs: 12_000 })
  assert.deepEqual(
    policies?.map(({ limit, remaining }) => [limit, remaining]),
    [
      [10, 9],
      [3, 2],
      [10, 7],
    ],
  )
})

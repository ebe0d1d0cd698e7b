import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRateLimit } from './read-rate-limit.js'

const NOW_MS = Date.UTC(2026, 10, 21, 12, 0, 0)
const IN_A_MINUTE_S = NOW_MS / 1000 + 60

test('the quota of a cached response is not used, in any version', () => {
  const told: readonly Record<string, string>[] = [
    { ratelimit: '"a";r=0;t=60', 'ratelimit-policy': '"a";q=5;w=60' },
    { ratelimit: 'limit=10, remaining=0, reset=60' },
    { 'ratelimit-limit': '10', 'ratelimit-remaining': '0', 'ratelimit-reset': '60' },
    { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(IN_A_MINUTE_S) },
    { 'x-ratelimit-remaining-requests': '0', 'anthropic-ratelimit-tokens-remaining': '0' },
  ]
  for (const headers of told) {
    for (const age of ['30', '1', '30, 0', '9'.repeat(40)]) assert.deepEqual(readRateLimit({ ...headers, Age: age }, { nowMs: NOW_MS }), {})
    // No age, or none that can be read: it comes from the service.
    const fresh = readRateLimit(headers, { nowMs: NOW_MS })
    for (const age of ['0', '0, 30', '', '-1', '1.5', 'old'])
      assert.deepEqual(readRateLimit({ ...headers, age }, { nowMs: NOW_MS }), fresh, age)
    assert.equal(fresh.policies?.[0]?.remaining ?? fresh.remaining, 0)
  }
})

test('Retry-After of a cached response counts from when that was made, and not at all once it is over', () => {
  const read = (headers: Record<string, string>): number | undefined => readRateLimit(headers, { nowMs: NOW_MS }).retryAfterMs
  const made = new Date(NOW_MS - 30_000).toUTCString()
  const then = new Date(NOW_MS + 20_000).toUTCString()
  assert.equal(read({ 'retry-after': '50', age: '30' }), 20_000)
  assert.equal(read({ 'retry-after': '30', age: '30' }), undefined)
  assert.equal(read({ 'retry-after': '5', age: '30' }), undefined)
  assert.equal(read({ 'retry-after-ms': '30250', age: '30' }), 250)
  assert.equal(read({ 'retry-after': then, date: made, age: '30' }), 20_000)
  assert.equal(read({ 'retry-after': then, age: '30' }), 20_000)
})

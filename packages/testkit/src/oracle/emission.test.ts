import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exactEmission } from './emission.js'

test('a policy of round numbers is counted without rounding', () => {
  assert.deepEqual(exactEmission({ limit: 100, windowMs: 1000, burst: 200 }), { q: 1n, perToken: 10_000n, capacity: 2_000_000n })
  assert.deepEqual(exactEmission({ limit: 1_000_000_000, windowMs: 1000, burst: 1 }), { q: 1000n, perToken: 1n, capacity: 1n })
  assert.deepEqual(exactEmission({ limit: 1, windowMs: 30 * 86_400_000, burst: 1 }), {
    q: 1n,
    perToken: 2_592_000_000_000n,
    capacity: 2_592_000_000_000n,
  })
})

test('7 per 60 s is counted in sevenths of a microsecond', () => {
  assert.deepEqual(exactEmission({ limit: 7, windowMs: 60_000, burst: 7 }), { q: 7n, perToken: 60_000_000n, capacity: 420_000_000n })
})

test('a prime limit above 834,000 is rounded up, to the closer of two fractions', () => {
  // 834,000 a microsecond would need 835 units a token (0.12 % lost); 834 units a token need only 833,999 (0.0000013).
  assert.deepEqual(exactEmission({ limit: 999_999_937, windowMs: 1000, burst: 1 }), { q: 833_999n, perToken: 834n, capacity: 834n })
})

test('a burst that takes more than 23 years to refill is refused', () => {
  const day = 86_400_000
  assert.notEqual(exactEmission({ limit: 1, windowMs: 365 * day, burst: 23 }), undefined)
  assert.equal(exactEmission({ limit: 1, windowMs: 365 * day, burst: 24 }), undefined)
})

test('a policy that would lose more than a thousandth is refused', () => {
  // A million tokens a microsecond, and at most 834,000 units in it.
  assert.equal(exactEmission({ limit: 999_999_937, windowMs: 1, burst: 1 }), undefined)
})

test('the emission interval is never shorter than the policy and never a thousandth longer', () => {
  for (const limit of [3, 7, 9973, 65_537, 999_983, 15_485_863, 999_999_937]) {
    for (const windowMs of [1.001, 7, 997, 86_400_000]) {
      for (const burst of [1, 1000, limit]) {
        const found = exactEmission({ limit, windowMs, burst })
        if (found === undefined) continue
        const windowUs = BigInt(Math.round(windowMs * 1000))
        const longer = found.perToken * BigInt(limit) - found.q * windowUs
        assert.ok(longer >= 0n && longer * 1000n <= found.q * windowUs, `${limit} per ${windowMs} ms, burst ${burst}`)
      }
    }
  }
})

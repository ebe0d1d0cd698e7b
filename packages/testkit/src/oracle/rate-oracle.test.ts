import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newestFirst, played } from '../sequences/newest-first.js'
import { answersOf, exactEmission } from './oracle.js'
import { RateOracle } from './rate-oracle.js'

const TEN_A_SECOND = { limit: 10, windowMs: 1000, burst: 10 }

const answer = answersOf(10)

test('a full bucket gives its burst at once, then one token each emission interval', () => {
  const oracle = new RateOracle(TEN_A_SECOND)
  assert.deepEqual(oracle.take('k', 9, 0), answer(true, 1, 0, 900))
  assert.deepEqual(oracle.take('k', 1, 0), answer(true, 0, 0, 1000))
  assert.deepEqual(oracle.take('k', 1, 0), answer(false, 0, 100, 1000))
  assert.deepEqual(oracle.take('k', 1, 99.999), answer(false, 0, 1, 901))
  assert.deepEqual(oracle.take('k', 1, 100), answer(true, 0, 0, 1000))
})

test('waits are rounded up to whole milliseconds, tokens down to whole ones', () => {
  const oracle = new RateOracle({ limit: 3, windowMs: 10, burst: 3 })
  oracle.take('k', 3, 0)
  assert.deepEqual(oracle.peek('k', 1, 0), answer(false, 0, 4, 10, 3))
  assert.deepEqual(oracle.peek('k', 1, 3.333), answer(false, 0, 1, 7, 3))
  assert.deepEqual(oracle.peek('k', 1, 3.334), answer(true, 1, 0, 7, 3))
  assert.deepEqual(oracle.peek('k', 1, 6.666), answer(true, 1, 0, 4, 3))
  assert.deepEqual(oracle.peek('k', 1, 6.667), answer(true, 2, 0, 4, 3))
})

test('a reading is taken to the nearest microsecond', () => {
  const oracle = new RateOracle({ limit: 1000, windowMs: 1, burst: 1 })
  oracle.take('k', 1, 0)
  assert.equal(oracle.peek('k', 1, 0.0004).allowed, false)
  assert.equal(oracle.peek('k', 1, 0.0006).allowed, true)
})

test('a cost above the burst never passes and costs nothing', () => {
  const oracle = new RateOracle(TEN_A_SECOND)
  assert.deepEqual(oracle.take('k', 11, 0), answer(false, 10, Number.POSITIVE_INFINITY, 0))
  assert.deepEqual(oracle.take('k', 10, 0), answer(true, 0, 0, 1000))
})

test('a step back grants nothing and holds a key no longer than the step', () => {
  const oracle = new RateOracle(TEN_A_SECOND)
  oracle.take('k', 10, 5000)
  assert.deepEqual(oracle.take('k', 1, 4000), answer(false, 0, 1100, 2000))
  assert.deepEqual(oracle.take('k', 1, 5100), answer(true, 0, 0, 1000))
})

test('a refund stops at full, a penalty at ten bursts below empty', () => {
  const oracle = new RateOracle(TEN_A_SECOND)
  oracle.take('k', 3, 0)
  assert.deepEqual(oracle.refund('k', 2, 0), answer(true, 9, 0, 100))
  assert.deepEqual(oracle.refund('k', 100, 0), answer(true, 10, 0, 0))
  assert.deepEqual(oracle.penalize('k', 12, 0), answer(false, 0, 300, 1200))
  assert.deepEqual(oracle.penalize('k', 1_000_000, 0), answer(false, 0, 10_100, 11_000))
})

test('the longest block wins and 0 lifts it; tokens are shown as they are', () => {
  const oracle = new RateOracle(TEN_A_SECOND)
  oracle.take('k', 10, 0)
  assert.deepEqual(oracle.block('k', 50, 0), answer(false, 0, 100, 1000))
  assert.deepEqual(oracle.block('k', 5000, 0), answer(false, 0, 5000, 5000))
  assert.deepEqual(oracle.block('k', 10, 500), answer(false, 5, 4500, 4500))
  assert.deepEqual(oracle.take('k', 1, 4999.999), answer(false, 10, 1, 1))
  assert.deepEqual(oracle.block('k', 0, 1000), answer(true, 10, 0, 0))
})

test('a reset pays the debt and lifts the block', () => {
  const oracle = new RateOracle(TEN_A_SECOND)
  oracle.penalize('k', 50, 0)
  oracle.block('k', 1000, 0)
  assert.deepEqual(oracle.reset('k', 0), answer(true, 10, 0, 0))
})

test('after an update what was spent stays spent, at most the new burst', () => {
  const oracle = new RateOracle(TEN_A_SECOND)
  oracle.take('some', 4, 0)
  oracle.penalize('deep', 50, 0)
  oracle.update({ algorithm: 'gcra', limit: 100, windowMs: 1000, burst: 20 }, 0)
  assert.deepEqual(oracle.peek('some', 1, 0), answer(true, 16, 0, 40, 100))
  assert.deepEqual(oracle.peek('deep', 1, 0), answer(false, 0, 10, 200, 100))
  assert.deepEqual(oracle.peek('new', 1, 0), answer(true, 20, 0, 0, 100))
})

test('a fraction of a token is rounded up to the units of the new policy', () => {
  const oracle = new RateOracle({ limit: 7, windowMs: 60_000, burst: 7 })
  oracle.take('k', 1, 0)
  // One unit short of a whole token is owed: 59,999,993 of 60,000,000 after a microsecond. At 1 per ms that is 1000 units again.
  oracle.update({ algorithm: 'gcra', limit: 1, windowMs: 1, burst: 1 }, 0.001)
  assert.deepEqual(oracle.peek('k', 1, 1), answer(false, 0, 1, 1, 1))
  assert.deepEqual(oracle.peek('k', 1, 1.001), answer(true, 1, 0, 0, 1))
})

test('bookings wait until the debt is within the burst again', () => {
  const oracle = new RateOracle(TEN_A_SECOND)
  const bookings = [10, 5, 3].map((cost) => oracle.reserve('k', cost, 0))
  assert.deepEqual(
    bookings.map(({ waitMs }) => waitMs),
    [0, 500, 800],
  )
  assert.deepEqual(oracle.take('k', 1, 0), answer(false, 0, 900, 1800))
  assert.deepEqual([oracle.reserve('k', 11, 0).allowed, oracle.reserve('k', 11, 0).waitMs], [false, Number.POSITIVE_INFINITY])
})

test('before its time the latest booking comes back in full, an earlier one not at all', () => {
  const booked = (): [RateOracle, ...ReturnType<RateOracle['reserve']>[]] => {
    const oracle = new RateOracle(TEN_A_SECOND)
    return [oracle, ...[10, 5, 3].map((cost) => oracle.reserve('k', cost, 0))]
  }
  const [latest, , , third] = booked()
  assert.ok(third)
  assert.deepEqual(latest.cancel(third, 3, 0), answer(false, 0, 600, 1500))
  const [middle, , second] = booked()
  assert.ok(second)
  assert.deepEqual(middle.cancel(second, 5, 0), answer(false, 0, 900, 1800))
  assert.deepEqual(latest.cancel(third, 1, 0), answer(false, 0, 600, 1500))
})

test('of a booking whose time is long past, only what it would still owe comes back', () => {
  const oracle = new RateOracle(TEN_A_SECOND)
  const booking = oracle.reserve('k', 8, 0)
  oracle.take('k', 2, 0)
  assert.deepEqual(oracle.cancel(booking, 8, 600), answer(true, 8, 0, 200))
  assert.deepEqual(oracle.cancel(booking, 8, 10_000), answer(true, 10, 0, 0))
})

test('a booking that was put off to a whole microsecond, and given up, does not keep those before it from coming back', () => {
  const oracle = new RateOracle({ limit: 3, windowMs: 1000, burst: 1 })
  oracle.take('k', 1, 0)
  const first = oracle.reserve('k', 1, 0.01)
  const second = oracle.reserve('k', 1, 0.02)
  oracle.cancel(second, 1, 0.03)
  assert.deepEqual(oracle.cancel(first, 1, 0.04), answer(false, 0, 334, 334, 3))
})

test('bookings that are given up the newest first leave less than flows back in a microsecond, and take nothing from one that stays', () => {
  let uneven = 0
  for (let seed = 1; seed <= 5000; seed++) {
    const { policy, steps, kept } = newestFirst(seed)
    const { q = 0n, perToken = 0n } = exactEmission(policy) ?? {}
    const left = arrivalOf(played(policy, steps)) - arrivalOf(played(policy, steps.slice(0, kept)))
    assert.ok(left >= 0n && left < q && left < perToken, `seed ${seed}: ${left} of ${q}`)
    if (left > 0n) uneven++
  }
  assert.ok(uneven > 1000, `${uneven}`)
})

function arrivalOf(oracle: RateOracle): bigint {
  return BigInt((JSON.parse(oracle.stateTextOf('k')) as { state: string }).state)
}

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

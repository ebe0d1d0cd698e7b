import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BookingBucket, type GiveBackRule } from 'sluicegate-testkit'
import type { Reservation } from '../decision/reservation.js'
import { StoreError } from '../errors.js'
import { createLimiter, fixedWindow, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import { casStore } from '../store/cas.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { manualClock } from '../time/clock.js'
import { reserve } from './reserving.js'

// Ten tokens, one a millisecond.
const SPEC = { limit: 1000, windowMs: 1000, burst: 10 }

function fixture(rule?: GiveBackRule) {
  const clock = manualClock()
  const bucket = new BookingBucket(SPEC, clock, rule)
  return { clock, bucket, tokens: () => bucket.debt / 1000 }
}

test('a reservation charges at once what may be spent later', () => {
  const { bucket, clock } = fixture()
  bucket.take(8)
  clock.advance(0.25)
  const reservation = reserve(bucket, 'k', 5)
  assert.deepEqual([reservation.allowed, reservation.waitMs], [true, 3])
  assert.deepEqual(reservation.decision, bucket.peek('k', 1))
  clock.advance(2.75)
  assert.equal(bucket.take(1).allowed, false)
  clock.advance(1)
  assert.equal(bucket.take(1).allowed, true)
})

test('what is there may be spent at once', () => {
  const { bucket } = fixture()
  assert.deepEqual([reserve(bucket, 'k', 10).waitMs, reserve(bucket, 'k', 1).waitMs], [0, 1])
})

test('what can never pass is not reserved, and has nothing to give back', () => {
  const { bucket, tokens } = fixture()
  const reservation = reserve(bucket, 'k', 11)
  assert.deepEqual([reservation.allowed, reservation.waitMs, reservation.decision.allowed], [false, Number.POSITIVE_INFINITY, false])
  bucket.take(5)
  for (const call of [() => reservation.cancel(), () => reservation.settle(3), () => reservation.settle(50)]) {
    assert.deepEqual(call(), bucket.peek('k', 1))
  }
  assert.equal(tokens(), 5)
})

test('settling gives back what was too much, and charges what was too little', () => {
  for (const [actual, owed] of [
    [8, 8],
    [3, 3],
    [0, 0],
    [9, 9],
    [25, 25],
  ] as const) {
    const { bucket, tokens } = fixture()
    const reservation = reserve(bucket, 'k', 8)
    assert.deepEqual(reservation.settle(actual), bucket.peek('k', 1))
    assert.equal(tokens(), owed)
  }
})

test('a reservation is settled or cancelled once', () => {
  const first = [(r: Reservation) => r.cancel(), (r: Reservation) => r.settle(2)]
  for (const end of first) {
    const { bucket, tokens } = fixture()
    bucket.take(1)
    const reservation = reserve(bucket, 'k', 8)
    end(reservation)
    const owed = tokens()
    for (const again of [() => reservation.cancel(), () => reservation.settle(0), () => reservation.settle(100)]) {
      assert.deepEqual(again(), bucket.peek('k', 1))
    }
    assert.equal(tokens(), owed)
  }
})

test('what was really spent is a whole number, or the reservation stays open', () => {
  const { bucket, tokens } = fixture()
  const reservation = reserve(bucket, 'k', 8)
  for (const wrong of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '3']) {
    assert.throws(() => reservation.settle(wrong as number), { name: 'PolicyError', code: 'COST_INVALID', option: 'actualCost' })
  }
  reservation.settle(3)
  assert.equal(tokens(), 3)
})

test('a settlement that the store could not make may be tried again', () => {
  const { bucket, tokens } = fixture()
  const reservation = reserve(bucket, 'k', 8)
  const { giveBack } = bucket
  bucket.giveBack = () => {
    bucket.giveBack = giveBack
    throw new StoreError('CONTENTION', 'too many')
  }
  assert.throws(() => reservation.cancel(), { code: 'CONTENTION' })
  reservation.cancel()
  assert.equal(tokens(), 0)
})

test('a caller may change its array of keys after the call', () => {
  const { bucket } = fixture()
  const asked: unknown[] = []
  const { peek } = bucket
  bucket.peek = (key, cost) => {
    asked.push(key)
    return peek.call(bucket, key, cost)
  }
  const key = ['a', 'b']
  const reservation = reserve(bucket, key, 2)
  key[0] = 'c'
  reservation.settle(2)
  assert.deepEqual(asked.at(-1), ['a', 'b'])
})

test('before its time the latest reservation comes back whole, an earlier one not at all, and no part of one', () => {
  const { bucket, tokens } = fixture()
  bucket.take(10)
  const [first, second, third] = [reserve(bucket, 'k', 2), reserve(bucket, 'k', 3), reserve(bucket, 'k', 4)]
  first?.cancel()
  assert.equal(tokens(), 19)
  third?.cancel()
  assert.equal(tokens(), 15)
  second?.settle(1)
  assert.equal(tokens(), 15)
})

test('from its time on a reservation comes back as far as its charge has not worn off', () => {
  const { bucket, clock, tokens } = fixture()
  const reservation = reserve(bucket, 'k', 6)
  clock.advance(2)
  bucket.take(6)
  reservation.settle(1)
  // Of the six two have worn off; of the other four five were asked back.
  assert.equal(tokens(), 6)
})

test('nothing comes back while others wait for their time', () => {
  const { bucket, clock, tokens } = fixture()
  const spent = reserve(bucket, 'k', 10)
  reserve(bucket, 'k', 2)
  spent.settle(1)
  assert.equal(tokens(), 12)
  clock.advance(2)
  spent.settle(1)
  assert.equal(tokens(), 10)
})

for (const policy of [fixedWindow, slidingWindow, slidingLog, tokenBucket].map((make) => make({ limit: 100, window: '1h' }))) {
  test(`${policy.algorithm}: what may not be spent within maxWait is not booked, and leaves the key as it was`, async () => {
    const clock = manualClock(1_760_000_000_000)
    const overStore = createLimiter(policy, { store: casStore(memoryStore({ clock })), clock })
    for (const limiter of [createLimiter(policy, { clock }), createLimiter(policy, { clock, shadow: false, overrides: true }), overStore]) {
      await limiter.take('k', 90)
      const refused = await limiter.reserve('k', 11, { maxWait: 0 })
      assert.equal(refused.allowed, false)
      assert.ok(refused.waitMs > 0 && refused.waitMs <= 7_200_000)
      await refused.cancel()
      assert.equal((await limiter.reserve('k', 101, { maxWait: 0 })).waitMs, Number.POSITIVE_INFINITY)
      assert.equal((await limiter.take('k', 10)).allowed, true)
      await assert.rejects(async () => limiter.reserve('k', 1, { maxWait: -1 }), { code: 'DURATION_INVALID' })
      limiter.close()
    }
  })
}

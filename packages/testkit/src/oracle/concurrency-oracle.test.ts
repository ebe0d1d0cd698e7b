import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConcurrencyOracle } from './concurrency-oracle.js'
import { answersOf } from './oracle.js'

const THREE = { algorithm: 'concurrency', limit: 3, windowMs: 1000 } as const

const answer = answersOf(3)

function taken(oracle: ConcurrencyOracle, cost: number, atMs: number): bigint {
  const { permit } = oracle.take('k', cost, atMs)
  assert.ok(permit !== undefined)
  return permit
}

test('what is in flight comes back by release, once, or after its time', () => {
  const oracle = new ConcurrencyOracle(THREE)
  const [first, second] = [taken(oracle, 1, 0), taken(oracle, 2, 100)]
  assert.deepEqual(oracle.take('k', 1, 200), answer(false, 0, 800, 900))
  assert.deepEqual(oracle.take('k', 2, 200), answer(false, 0, 900, 900))
  assert.deepEqual([oracle.release('k', first, 200), oracle.release('k', first, 200)], [true, false])
  assert.deepEqual(oracle.peek('k', 1, 200), answer(true, 1, 0, 900))
  assert.deepEqual(oracle.peek('k', 3, 1099.999), answer(false, 1, 1, 1))
  assert.deepEqual(oracle.peek('k', 3, 1100), answer(true, 3, 0, 0))
  assert.equal(oracle.release('k', second, 1100), false)
})

test('a permit of a denied take does not exist', () => {
  const oracle = new ConcurrencyOracle(THREE)
  taken(oracle, 3, 0)
  assert.equal(oracle.take('k', 1, 0).permit, undefined)
})

test('a heartbeat renews what has not expired', () => {
  const oracle = new ConcurrencyOracle(THREE)
  const permit = taken(oracle, 3, 0)
  assert.equal(oracle.heartbeat('k', permit, 900), true)
  assert.deepEqual(oracle.peek('k', 1, 1000), answer(false, 0, 900, 900))
  assert.equal(oracle.heartbeat('k', permit, 1900), false)
})

test('time does not run back for a key', () => {
  const oracle = new ConcurrencyOracle(THREE)
  const permit = taken(oracle, 1, 1000)
  taken(oracle, 1, 500)
  assert.deepEqual(oracle.peek('k', 2, 500), answer(false, 1, 1500, 1500))
  assert.equal(oracle.heartbeat('k', permit, 0), true)
  assert.deepEqual(oracle.peek('k', 3, 2000), answer(true, 3, 0, 0))
})

test('a penalty takes what is free for the time to live, and no release ends it', () => {
  const oracle = new ConcurrencyOracle(THREE)
  const permit = taken(oracle, 1, 0)
  assert.deepEqual(oracle.penalize('k', 100, 500), answer(false, 0, 500, 1000))
  assert.equal(oracle.release('k', permit, 500), true)
  assert.deepEqual(oracle.peek('k', 2, 500), answer(false, 1, 1000, 1000))
})

test('a refund takes what expires last, of equals the newest', () => {
  const oracle = new ConcurrencyOracle(THREE)
  const [first, second, third] = [taken(oracle, 1, 0), taken(oracle, 1, 100), taken(oracle, 1, 100)]
  assert.equal(oracle.heartbeat('k', first, 200), true)
  assert.deepEqual(oracle.refund('k', 2, 300), answer(true, 2, 0, 800))
  assert.deepEqual(
    [first, second, third].map((permit) => oracle.release('k', permit, 300)),
    [false, true, false],
  )
})

test('a permit from before a reset releases nothing of later ones', () => {
  const oracle = new ConcurrencyOracle(THREE)
  const before = taken(oracle, 3, 0)
  assert.deepEqual(oracle.reset('k', 0), answer(true, 3, 0, 0))
  taken(oracle, 3, 0)
  assert.equal(oracle.release('k', before, 0), false)
})

test('only what passes now is booked, and it is held like a permit', () => {
  const oracle = new ConcurrencyOracle(THREE)
  const booking = oracle.reserve('k', 2, 0)
  assert.deepEqual([booking.allowed, booking.waitMs], [true, 0])
  const refused = oracle.reserve('k', 2, 0)
  assert.deepEqual([refused.allowed, refused.waitMs], [false, 1000])
  assert.deepEqual(oracle.cancel(refused, 2, 0), answer(true, 1, 0, 1000))
  assert.deepEqual(oracle.cancel(booking, 1, 0), answer(true, 2, 0, 1000))
  assert.deepEqual(oracle.peek('k', 3, 1000), answer(true, 3, 0, 0))
})

test('after an update permits keep their time', () => {
  const oracle = new ConcurrencyOracle(THREE)
  taken(oracle, 3, 0)
  oracle.update({ ...THREE, limit: 2, windowMs: 60_000 }, 0)
  assert.deepEqual(oracle.peek('k', 1, 0), answer(false, 0, 1000, 1000, 2))
  assert.deepEqual(oracle.take('k', 2, 1000), { ...answer(true, 0, 0, 60_000, 2), permit: 2n })
})

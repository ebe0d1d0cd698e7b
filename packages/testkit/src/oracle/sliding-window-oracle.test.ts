import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../random.js'
import { answersOf } from './oracle.js'
import { SlidingWindowOracle } from './sliding-window-oracle.js'

const TEN_A_SECOND = { algorithm: 'sliding-window', limit: 10, windowMs: 1000 } as const

const answer = answersOf(10)

test('the window before counts by the share of it that is still covered, rounded up', () => {
  const oracle = new SlidingWindowOracle(TEN_A_SECOND)
  assert.deepEqual(oracle.take('k', 10, 900), answer(true, 0, 0, 1100))
  assert.deepEqual(oracle.peek('k', 1, 900), answer(false, 0, 200, 1100))
  assert.deepEqual(oracle.take('k', 1, 1099.999), answer(false, 0, 1, 901))
  assert.deepEqual(oracle.take('k', 1, 1100), answer(true, 0, 0, 1900))
  assert.deepEqual(oracle.peek('k', 5, 1500), answer(false, 4, 100, 1500))
  assert.deepEqual(oracle.peek('k', 10, 1500), answer(false, 4, 1500, 1500))
  assert.deepEqual(oracle.peek('k', 10, 3000), answer(true, 10, 0, 0))
})

test('a wait may lead over into the next window', () => {
  const oracle = new SlidingWindowOracle(TEN_A_SECOND)
  oracle.take('k', 10, 0)
  assert.deepEqual(oracle.peek('k', 1, 0), answer(false, 0, 1100, 2000))
  assert.deepEqual(oracle.peek('k', 10, 0), answer(false, 0, 2000, 2000))
})

test('what it says of the first moment at which a request passes is so, by trying every microsecond', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = new Random(seed)
    const limit = random.integer(1, 12)
    const oracle = new SlidingWindowOracle({ algorithm: 'sliding-window', limit, windowMs: 1 })
    let nowUs = random.integer(0, 5000)
    for (let i = 0; i < 6; i++) {
      nowUs += random.integer(0, 900)
      if (random.chance(0.2)) oracle.penalize('k', random.integer(1, 30), nowUs / 1000)
      oracle.take('k', random.integer(1, limit), nowUs / 1000)
    }
    const cost = random.integer(1, limit)
    let passesUs = nowUs
    while (!oracle.peek('k', cost, passesUs / 1000).allowed) passesUs++
    assert.equal(oracle.reserve('k', cost, nowUs / 1000).atUs, BigInt(passesUs), `seed ${seed}`)
  }
})

test('after a step back a key is closed until its window begins', () => {
  const oracle = new SlidingWindowOracle(TEN_A_SECOND)
  oracle.take('k', 4, 2500)
  assert.deepEqual(oracle.take('k', 1, 1999), answer(false, 0, 1, 2001))
  assert.deepEqual(oracle.take('k', 7, 1999), answer(false, 0, 1251, 2001))
  assert.deepEqual(oracle.take('k', 6, 2000), answer(true, 0, 0, 2000))
})

test('a penalty stops at ten limits below empty, and at 65,535 where counters are packed', () => {
  const oracle = new SlidingWindowOracle(TEN_A_SECOND)
  oracle.penalize('k', 1_000_000, 0)
  assert.deepEqual(oracle.refund('k', 101, 0), answer(true, 1, 0, 2000))
  for (const [windowMs, most] of [
    [220, 65_535],
    [219.999, 660_000],
  ] as const) {
    const large = new SlidingWindowOracle({ algorithm: 'sliding-window', limit: 60_000, windowMs })
    large.penalize('k', 1_000_000, 0)
    assert.equal(large.refund('k', most - 1, 0).remaining, 59_999)
  }
})

test('a refund is of this window, not of the one before', () => {
  const oracle = new SlidingWindowOracle(TEN_A_SECOND)
  oracle.take('k', 10, 0)
  assert.deepEqual(oracle.refund('k', 10, 1000), answer(false, 0, 100, 1000))
})

test('a booking is made in the window in which it conforms, and comes back only while the key is in it', () => {
  const oracle = new SlidingWindowOracle(TEN_A_SECOND)
  oracle.take('k', 10, 0)
  const [first, second] = [oracle.reserve('k', 4, 0), oracle.reserve('k', 10, 0)]
  assert.deepEqual([first.atUs, second.atUs], [1_400_000n, 3_000_000n])
  assert.deepEqual(oracle.cancel(first, 4, 0), answer(false, 0, 4100, 5000))
  assert.deepEqual(oracle.cancel(second, 10, 0), answer(false, 0, 3000, 3000))
})

test('an update of the limit keeps the counts, one of the window what was used', () => {
  const oracle = new SlidingWindowOracle(TEN_A_SECOND)
  oracle.take('k', 10, 4000)
  oracle.take('k', 2, 5500)
  oracle.update({ ...TEN_A_SECOND, limit: 8 }, 5500)
  assert.deepEqual(oracle.peek('k', 1, 5500), answer(true, 2, 0, 1500, 8))
  oracle.update({ ...TEN_A_SECOND, windowMs: 60_000 }, 5750)
  assert.deepEqual(oracle.peek('k', 1, 5750), answer(true, 6, 0, 114_250))
})

test('an update of the window with the key ahead counts all that it has', () => {
  const oracle = new SlidingWindowOracle(TEN_A_SECOND)
  oracle.take('k', 3, 4900)
  oracle.take('k', 4, 5900)
  oracle.update({ ...TEN_A_SECOND, windowMs: 60_000 }, 3000)
  assert.deepEqual(oracle.peek('k', 1, 3000), answer(true, 3, 0, 117_000))
})

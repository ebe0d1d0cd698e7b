import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from '../run-length.js'
import { admitted, type Fixtures, type MakePolicy } from './fixture.js'

/** What each verb does to a key, with every algorithm. */
export function verbs(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const tenASecond = policyOf({ limit: 10, window: '1s', name: 'ten' })

  test(`${name}: take answers with a decision of all fields`, () => {
    const { checked } = fixture(tenASecond)
    const { policy, source, limit } = checked.take('k', 3)
    assert.deepEqual([policy, source, limit], ['ten', fixture.store.source, 10])
    const { allowed, remaining, wouldDeny } = checked.take('k', 8)
    assert.deepEqual([allowed, remaining, wouldDeny], [false, 7, undefined])
  })

  test(`${name}: each answer is the caller's own: later calls change none given before`, () => {
    const { limiter } = fixture(policyOf({ limit: 5, window: '1s' }))
    const answers = Array.from({ length: 10 }, () => limiter.take('k'))
    assert.equal(new Set(answers).size, 10)
    assert.deepEqual(
      answers.map(({ allowed }) => allowed),
      [true, true, true, true, true, false, false, false, false, false],
    )
    assert.deepEqual(
      answers.map(({ remaining }) => remaining),
      [4, 3, 2, 1, 0, 0, 0, 0, 0, 0],
    )
  })

  test(`${name}: cost is 1 unless given, and a cost of all there is passes`, () => {
    const { limiter } = fixture(tenASecond)
    assert.equal(limiter.take('a').remaining, 9)
    assert.equal(limiter.take('b', 10).allowed, true)
    assert.equal(limiter.take('b').allowed, false)
  })

  test(`${name}: an impossible cost is denied for ever and charges nothing`, () => {
    const { limiter, checked } = fixture(tenASecond)
    const { allowed, retryAfterMs, remaining, resetAfterMs } = checked.take('k', 11)
    assert.deepEqual(
      { allowed, retryAfterMs, remaining, resetAfterMs },
      { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, remaining: 10, resetAfterMs: 0 },
    )
    assert.equal(limiter.peek('k', Number.MAX_SAFE_INTEGER).retryAfterMs, Number.POSITIVE_INFINITY)
    assert.equal(checked.take('k', 10).allowed, true)
  })

  test(`${name}: peek changes nothing and shows what is there before the take`, () => {
    const { limiter, checked } = fixture(tenASecond)
    checked.take('k', 4)
    const before = checked.peek('k', 6)
    assert.deepEqual([before.allowed, before.remaining, before.retryAfterMs], [true, 6, 0])
    for (let i = 0; i < shortOrLong(20, 100); i++) assert.deepEqual(limiter.peek('k', 6), before)
    assert.equal(checked.peek('k', 7).allowed, false)
    assert.equal(checked.take('k', 6).allowed, true)
  })

  test(`${name}: peek at a key that never came tracks nothing`, () => {
    const { limiter } = fixture(tenASecond)
    assert.equal(limiter.peek('unseen').remaining, 10)
    assert.equal(limiter.stats().keys, 0)
  })

  test(`${name}: refund gives back, at most to full`, () => {
    const { limiter, checked } = fixture(tenASecond)
    checked.take('k', 4)
    checked.take('k', 4)
    assert.equal(checked.refund('k', 3).remaining, 5)
    assert.equal(checked.refund('k', 1_000_000_000).remaining, 10)
    assert.equal(checked.refund('unseen', 5).remaining, 10)
    assert.equal(admitted(limiter, 'k', 20), 10)
  })

  test(`${name}: penalize takes what is there and more`, () => {
    const { checked, clock } = fixture(tenASecond)
    checked.take('k', 2)
    assert.equal(checked.penalize('k', 4).remaining, 4)
    assert.equal(checked.penalize('k', 5000).remaining, 0)
    for (let i = 0; i < 5; i++) checked.penalize('k', 1_000_000_000)
    const { retryAfterMs } = checked.take('k')
    clock.advance(retryAfterMs - 1)
    assert.equal(checked.take('k').allowed, false)
    clock.advance(1)
    assert.equal(checked.take('k').allowed, true)
  })

  test(`${name}: reset makes a key full and lifts its block`, () => {
    const { limiter, checked } = fixture(tenASecond)
    checked.penalize('k', 100)
    checked.block('k', 3_600_000)
    const { allowed, remaining, resetAfterMs } = checked.reset('k')
    assert.deepEqual([allowed, remaining, resetAfterMs], [true, 10, 0])
    assert.equal(admitted(limiter, 'k', 20), 10)
    assert.equal(checked.reset('unseen').remaining, 10)
  })

  test(`${name}: a verb answers as peek would for a cost of 1`, () => {
    const { limiter } = fixture(tenASecond)
    assert.deepEqual(limiter.penalize('k', 4), limiter.peek('k'))
    assert.deepEqual(limiter.refund('k', 1), limiter.peek('k'))
    assert.deepEqual(limiter.block('k', '1s'), limiter.peek('k'))
    assert.deepEqual(limiter.reset('k'), limiter.peek('k'))
  })

  test(`${name}: a bound key spends the same budget as its string`, () => {
    const { limiter } = fixture(tenASecond)
    const bound = limiter.key('k')
    assert.equal(bound.key, 'k')
    bound.take(4)
    limiter.take('k', 3)
    assert.equal(bound.take().remaining, 2)
    assert.deepEqual(bound.peek(3), limiter.peek('k', 3))
    assert.equal(limiter.key('other').take().remaining, 9)
  })

  test(`${name}: keys do not touch each other's tokens`, () => {
    const { limiter } = fixture(tenASecond)
    const keys = Array.from({ length: Math.ceil(500 * fixture.store.share) }, (_, i) => `user:${i}`)
    const passed = keys.map(() => 0)
    for (let round = 0; round < 12; round++) {
      for (const [i, key] of keys.entries()) if (limiter.take(key).allowed) passed[i] = (passed[i] ?? 0) + 1
    }
    assert.deepEqual(new Set(passed), new Set([10]))
    assert.equal(new Set(keys.map((key) => limiter.peek(key).resetAfterMs)).size, 1)
    assert.equal(limiter.stats().evictions, 0)
  })
}

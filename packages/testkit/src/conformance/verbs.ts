import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admitted, type Fixtures, type MakePolicy } from './fixture.js'

/** What each verb does to a key, on any clock that runs forward. */
export function verbs(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const tenASecond = policyOf({ limit: 10, window: '1s', name: 'ten' })

  test(`${name}: take answers with a plain decision of all fields`, () => {
    const { limiter } = fixture(tenASecond)
    const answer = { allowed: true, limit: 10, remaining: 7, retryAfterMs: 0, resetAfterMs: 300, policy: 'ten', source: 'memory' }
    assert.deepEqual(limiter.take('k', 3), answer)
    assert.deepEqual(limiter.take('k', 8), { ...answer, allowed: false, retryAfterMs: 100 })
  })

  test(`${name}: the limit in an answer is the policy's, and remaining may be larger`, () => {
    const { limiter } = fixture(policyOf({ limit: 10, window: '1s', burst: 50 }))
    const { limit, remaining } = limiter.take('k')
    assert.deepEqual({ limit, remaining }, { limit: 10, remaining: 49 })
  })

  test(`${name}: each answer is the caller's own: later calls change none given before`, () => {
    const { limiter } = fixture(policyOf({ limit: 5, window: '1s' }))
    const answers = Array.from({ length: 10 }, () => limiter.take('k'))
    assert.deepEqual(
      answers.map(({ allowed }) => allowed),
      [true, true, true, true, true, false, false, false, false, false],
    )
    assert.deepEqual(
      answers.map(({ remaining }) => remaining),
      [4, 3, 2, 1, 0, 0, 0, 0, 0, 0],
    )
  })

  test(`${name}: cost is 1 unless given, and a cost of the whole burst passes`, () => {
    const { limiter } = fixture(tenASecond)
    assert.equal(limiter.take('a').remaining, 9)
    assert.equal(limiter.take('b', 10).allowed, true)
    assert.equal(limiter.take('b').allowed, false)
  })

  test(`${name}: an impossible cost is denied for ever and charges nothing`, () => {
    const { limiter } = fixture(tenASecond)
    const { allowed, retryAfterMs, remaining, resetAfterMs } = limiter.take('k', 11)
    assert.deepEqual(
      { allowed, retryAfterMs, remaining, resetAfterMs },
      { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, remaining: 10, resetAfterMs: 0 },
    )
    assert.equal(limiter.peek('k', Number.MAX_SAFE_INTEGER).retryAfterMs, Number.POSITIVE_INFINITY)
    assert.equal(limiter.take('k', 10).allowed, true)
  })

  test(`${name}: peek changes nothing and shows what is there before the take`, () => {
    const { limiter } = fixture(tenASecond)
    limiter.take('k', 4)
    const before = limiter.peek('k', 6)
    assert.deepEqual([before.allowed, before.remaining, before.retryAfterMs, before.resetAfterMs], [true, 6, 0, 400])
    for (let i = 0; i < 100; i++) assert.deepEqual(limiter.peek('k', 6), before)
    assert.equal(limiter.peek('k', 7).retryAfterMs, 100)
    assert.equal(limiter.take('k', 6).allowed, true)
  })

  test(`${name}: peek at a key that never came tracks nothing`, () => {
    const { limiter } = fixture(tenASecond)
    assert.equal(limiter.peek('nobody').remaining, 10)
    assert.equal(limiter.stats().keys, 0)
  })

  test(`${name}: refund gives back, at most to full`, () => {
    const { limiter } = fixture(tenASecond)
    limiter.take('k', 8)
    assert.equal(limiter.refund('k', 3).remaining, 5)
    assert.equal(limiter.refund('k', 1_000_000_000).remaining, 10)
    assert.equal(limiter.refund('nobody', 5).remaining, 10)
    assert.equal(admitted(limiter, 'k', 20), 10)
  })

  test(`${name}: penalize goes into debt, down to ten bursts below empty`, () => {
    const { limiter, clock } = fixture(tenASecond)
    assert.equal(limiter.penalize('k', 15).retryAfterMs, 600)
    for (let i = 0; i < 5; i++) limiter.penalize('k', Number.MAX_SAFE_INTEGER)
    const { remaining, retryAfterMs, resetAfterMs } = limiter.peek('k')
    assert.deepEqual([remaining, retryAfterMs, resetAfterMs], [0, 10_100, 11_000])
    clock.advance(10_099)
    assert.equal(limiter.take('k').allowed, false)
    clock.advance(1)
    assert.equal(limiter.take('k').allowed, true)
  })

  test(`${name}: reset makes a key as good as new and lifts its block`, () => {
    const { limiter } = fixture(tenASecond)
    limiter.penalize('k', 100)
    limiter.block('k', '1h')
    const { allowed, remaining, resetAfterMs } = limiter.reset('k')
    assert.deepEqual([allowed, remaining, resetAfterMs], [true, 10, 0])
    assert.equal(admitted(limiter, 'k', 20), 10)
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
    const keys = Array.from({ length: 500 }, (_, i) => `user:${i}`)
    for (let round = 0; round < 12; round++) for (const key of keys) limiter.take(key)
    assert.deepEqual(new Set(keys.map((key) => limiter.peek(key).resetAfterMs)), new Set([1000]))
    assert.equal(limiter.stats().evictions, 0)
  })
}

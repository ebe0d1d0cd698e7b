import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from '../run-length.js'
import { admitted, type Fixtures, inTurn, type MakePolicy, times } from './fixture.js'

/** What each verb does to a key, with every algorithm. */
export function verbs(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const tenASecond = policyOf({ limit: 10, window: '1s', name: 'ten' })

  test(`${name}: take answers with a decision of all fields`, async () => {
    const { checked } = await fixture(tenASecond)
    const { policy, source, limit } = await checked.take('k', 3)
    assert.deepEqual([policy, source, limit], ['ten', fixture.store.source, 10])
    const { allowed, remaining, wouldDeny } = await checked.take('k', 8)
    assert.deepEqual([allowed, remaining, wouldDeny], [false, 7, undefined])
  })

  test(`${name}: each answer is the caller's own: later calls change none given before`, async () => {
    const { limiter } = await fixture(policyOf({ limit: 5, window: '1s' }))
    const answers = await times(10, () => limiter.take('k'))
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

  test(`${name}: cost is 1 unless given, and a cost of all there is passes`, async () => {
    const { limiter } = await fixture(tenASecond)
    assert.equal((await limiter.take('a')).remaining, 9)
    assert.equal((await limiter.take('b', 10)).allowed, true)
    assert.equal((await limiter.take('b')).allowed, false)
  })

  test(`${name}: an impossible cost is denied for ever and charges nothing`, async () => {
    const { limiter, checked } = await fixture(tenASecond)
    const { allowed, retryAfterMs, remaining, resetAfterMs } = await checked.take('k', 11)
    assert.deepEqual(
      { allowed, retryAfterMs, remaining, resetAfterMs },
      { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, remaining: 10, resetAfterMs: 0 },
    )
    assert.equal((await limiter.peek('k', Number.MAX_SAFE_INTEGER)).retryAfterMs, Number.POSITIVE_INFINITY)
    assert.equal((await checked.take('k', 10)).allowed, true)
  })

  test(`${name}: peek changes nothing and shows what is there before the take`, async () => {
    const { limiter, checked } = await fixture(tenASecond)
    await checked.take('k', 4)
    const before = await checked.peek('k', 6)
    assert.deepEqual([before.allowed, before.remaining, before.retryAfterMs], [true, 6, 0])
    for (let i = 0; i < shortOrLong(20, 100); i++) assert.deepEqual(await limiter.peek('k', 6), before)
    assert.equal((await checked.peek('k', 7)).allowed, false)
    assert.equal((await checked.take('k', 6)).allowed, true)
  })

  test(`${name}: peek at a key that never came tracks nothing`, async () => {
    const { limiter, keys } = await fixture(tenASecond)
    assert.equal((await limiter.peek('unseen')).remaining, 10)
    assert.equal(await keys(), 0)
  })

  test(`${name}: refund gives back, at most to full`, async () => {
    const { limiter, checked } = await fixture(tenASecond)
    await checked.take('k', 4)
    await checked.take('k', 4)
    assert.equal((await checked.refund('k', 3)).remaining, 5)
    assert.equal((await checked.refund('k', 1_000_000_000)).remaining, 10)
    assert.equal((await checked.refund('unseen', 5)).remaining, 10)
    assert.equal(await admitted(limiter, 'k', 20), 10)
  })

  test(`${name}: penalize takes what is there and more`, async () => {
    const { checked, clock } = await fixture(tenASecond)
    await checked.take('k', 2)
    assert.equal((await checked.penalize('k', 4)).remaining, 4)
    assert.equal((await checked.penalize('k', 5000)).remaining, 0)
    for (let i = 0; i < 5; i++) await checked.penalize('k', 1_000_000_000)
    const { retryAfterMs } = await checked.take('k')
    clock.advance(retryAfterMs - 1)
    assert.equal((await checked.take('k')).allowed, false)
    clock.advance(1)
    assert.equal((await checked.take('k')).allowed, true)
  })

  test(`${name}: reset makes a key full and lifts its block`, async () => {
    const { limiter, checked } = await fixture(tenASecond)
    await checked.penalize('k', 100)
    await checked.block('k', 3_600_000)
    const { allowed, remaining, resetAfterMs } = await checked.reset('k')
    assert.deepEqual([allowed, remaining, resetAfterMs], [true, 10, 0])
    assert.equal(await admitted(limiter, 'k', 20), 10)
    assert.equal((await checked.reset('unseen')).remaining, 10)
  })

  test(`${name}: a verb answers as peek would for a cost of 1`, async () => {
    const { limiter } = await fixture(tenASecond)
    assert.deepEqual(await limiter.penalize('k', 4), await limiter.peek('k'))
    assert.deepEqual(await limiter.refund('k', 1), await limiter.peek('k'))
    assert.deepEqual(await limiter.block('k', '1s'), await limiter.peek('k'))
    assert.deepEqual(await limiter.reset('k'), await limiter.peek('k'))
  })

  test(`${name}: a bound key spends the same budget as its string`, async () => {
    const { limiter } = await fixture(tenASecond)
    const bound = limiter.key('k')
    assert.equal(bound.key, 'k')
    await bound.take(4)
    await limiter.take('k', 3)
    assert.equal((await bound.take()).remaining, 2)
    assert.deepEqual(await bound.peek(3), await limiter.peek('k', 3))
    assert.equal((await limiter.key('other').take()).remaining, 9)
  })

  test(`${name}: keys do not touch each other's tokens`, async () => {
    const { limiter } = await fixture(tenASecond)
    const keys = Array.from({ length: Math.ceil(500 * fixture.store.share) }, (_, i) => `user:${i}`)
    const passed = keys.map(() => 0)
    for (let round = 0; round < 12; round++) {
      for (const [i, key] of keys.entries()) if ((await limiter.take(key)).allowed) passed[i] = (passed[i] ?? 0) + 1
    }
    assert.deepEqual(new Set(passed), new Set([10]))
    assert.equal(new Set(await inTurn(keys, async (key) => (await limiter.peek(key)).resetAfterMs)).size, 1)
    assert.equal(limiter.stats().evictions ?? 0, 0)
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from '../run-length.js'
import { admitted, type Fixtures, type MakePolicy } from './fixture.js'

/** `block`: kept apart from a key's tokens, on every algorithm. */
export function blocks(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const tenASecond = policyOf({ limit: 10, window: '1s' })

  test(`${name}: a blocked key is denied until its block ends, to the millisecond`, () => {
    const { limiter, checked, clock } = fixture(tenASecond)
    assert.equal(checked.block('k', 5000).retryAfterMs, 5000)
    clock.advance(4999)
    const { allowed, retryAfterMs } = checked.take('k')
    assert.deepEqual([allowed, retryAfterMs], [false, 1])
    clock.advance(1)
    assert.equal(admitted(limiter, 'k', 20), 10)
  })

  test(`${name}: a blocked key keeps its tokens and shows them`, () => {
    const { limiter, checked, clock } = fixture(tenASecond)
    checked.take('k', 7)
    checked.block('k', 5000)
    assert.equal(checked.take('k').remaining, 3)
    clock.advance(5000)
    checked.take('k')
    assert.equal(admitted(limiter, 'k', 20), 9)
  })

  test(`${name}: retry-after is the later of the block's end and the tokens' coming`, () => {
    const { checked } = fixture(tenASecond)
    checked.take('k', 10)
    checked.block('k', 50)
    const { retryAfterMs } = checked.block('k', 3_600_000)
    assert.equal(retryAfterMs, 3_600_000)
    assert.equal(checked.peek('k', 10).retryAfterMs, 3_600_000)
    assert.equal(checked.peek('k', 11).retryAfterMs, Number.POSITIVE_INFINITY)
  })

  test(`${name}: a blocked key is not full`, () => {
    const { limiter } = fixture(tenASecond)
    assert.equal(limiter.block('k', '1m').resetAfterMs, 60_000)
    assert.equal(limiter.take('k').resetAfterMs, 60_000)
  })

  test(`${name}: the longest block wins and 0 lifts it`, () => {
    const { limiter, clock } = fixture(tenASecond)
    limiter.block('k', '1h')
    assert.equal(limiter.block('k', '1s').retryAfterMs, 3_600_000)
    clock.advance(1000)
    assert.equal(limiter.block('k', '2h').retryAfterMs, 7_200_000)
    assert.equal(limiter.block('k', 0).allowed, true)
    assert.equal(limiter.take('k').allowed, true)
    assert.equal(limiter.block('k', '1s').retryAfterMs, 1000)
  })

  test(`${name}: a block holds its own key alone`, () => {
    const { limiter } = fixture(tenASecond, { maxKeys: 2000 })
    limiter.block('bad', '30d')
    const denied = Array.from({ length: shortOrLong(60, 1000) }, (_, i) => limiter.take(`good:${i}`)).filter(({ allowed }) => !allowed)
    assert.deepEqual(denied, [])
    assert.equal(limiter.take('bad').allowed, false)
  })

  test(`${name}: a block outlasts an update of the policy`, () => {
    const { limiter, clock } = fixture(tenASecond)
    limiter.block('k', '10s')
    clock.advance(3000)
    limiter.update(policyOf({ limit: 7, window: '1m' }))
    assert.equal(limiter.take('k').retryAfterMs, 7000)
    clock.advance(7000)
    assert.equal(limiter.take('k').allowed, true)
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from '../run-length.js'
import { admitted, type Fixtures, type MakePolicy, times } from './fixture.js'

/** `block`: kept apart from a key's tokens, on every algorithm. */
export function blocks(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const tenASecond = policyOf({ limit: 10, window: '1s' })

  test(`${name}: a blocked key is denied until its block ends, to the millisecond`, async () => {
    const { limiter, checked, clock } = await fixture(tenASecond)
    assert.equal((await checked.block('k', 5000)).retryAfterMs, 5000)
    clock.advance(4999)
    const { allowed, retryAfterMs } = await checked.take('k')
    assert.deepEqual([allowed, retryAfterMs], [false, 1])
    clock.advance(1)
    assert.equal(await admitted(limiter, 'k', 20), 10)
  })

  test(`${name}: a blocked key keeps its tokens and shows them`, async () => {
    const { limiter, checked, clock } = await fixture(tenASecond)
    await checked.take('k', 7)
    await checked.block('k', 5000)
    assert.equal((await checked.take('k')).remaining, 3)
    clock.advance(5000)
    await checked.take('k')
    assert.equal(await admitted(limiter, 'k', 20), 9)
  })

  test(`${name}: retry-after is the later of the block's end and the tokens' coming`, async () => {
    const { checked } = await fixture(tenASecond)
    await checked.take('k', 10)
    await checked.block('k', 50)
    const { retryAfterMs } = await checked.block('k', 3_600_000)
    assert.equal(retryAfterMs, 3_600_000)
    assert.equal((await checked.peek('k', 10)).retryAfterMs, 3_600_000)
    assert.equal((await checked.peek('k', 11)).retryAfterMs, Number.POSITIVE_INFINITY)
  })

  test(`${name}: a blocked key is not full`, async () => {
    const { limiter } = await fixture(tenASecond)
    assert.equal((await limiter.block('k', '1m')).resetAfterMs, 60_000)
    assert.equal((await limiter.take('k')).resetAfterMs, 60_000)
  })

  test(`${name}: the longest block wins and 0 lifts it`, async () => {
    const { limiter, clock } = await fixture(tenASecond)
    await limiter.block('k', '1h')
    assert.equal((await limiter.block('k', '1s')).retryAfterMs, 3_600_000)
    clock.advance(1000)
    assert.equal((await limiter.block('k', '2h')).retryAfterMs, 7_200_000)
    assert.equal((await limiter.block('k', 0)).allowed, true)
    assert.equal((await limiter.take('k')).allowed, true)
    assert.equal((await limiter.block('k', '1s')).retryAfterMs, 1000)
  })

  test(`${name}: a block holds its own key alone`, async () => {
    const { limiter } = await fixture(tenASecond, { maxKeys: 2000 })
    await limiter.block('bad', '30d')
    // Each key may be an object with a core of its own, of which a process has room for some thousand.
    const taken = await times(shortOrLong(60, 100), (i) => limiter.take(`good:${i}`))
    const denied = taken.filter(({ allowed }) => !allowed)
    assert.deepEqual(denied, [])
    assert.equal((await limiter.take('bad')).allowed, false)
  })
}

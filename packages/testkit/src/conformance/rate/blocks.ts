import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admitted, type Fixtures } from '../fixture.js'
import type { MakeRate } from './make-rate.js'

/** `block`, with tokens that flow in continuously. */
export function rateBlocks(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const tenASecond = policyOf({ limit: 10, window: '1s' })

  test(`${name}: a blocked key keeps its tokens and shows them, and tokens flow in meanwhile`, () => {
    const { limiter, clock } = fixture(tenASecond)
    limiter.take('k', 10)
    limiter.block('k', 500)
    assert.equal(limiter.take('k').remaining, 0)
    clock.advance(300)
    const { allowed, remaining } = limiter.take('k')
    assert.deepEqual([allowed, remaining], [false, 3])
    clock.advance(200)
    assert.equal(admitted(limiter, 'k', 20), 5)
  })

  test(`${name}: retry-after is the later of the block's end and the tokens' coming`, () => {
    const { limiter } = fixture(tenASecond)
    limiter.take('k', 10)
    assert.equal(limiter.block('k', 50).retryAfterMs, 100)
    assert.equal(limiter.block('k', 150).retryAfterMs, 150)
    assert.equal(limiter.peek('k', 10).retryAfterMs, 1000)
    assert.equal(limiter.peek('k', 11).retryAfterMs, Number.POSITIVE_INFINITY)
  })
}

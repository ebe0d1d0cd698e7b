import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admitted, type Fixtures } from '../fixture.js'
import type { MakeRate } from './make-rate.js'

/** `update`, with bursts and tokens that flow in continuously. */
export function rateUpdates(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const hundred = policyOf({ limit: 100, window: '1s', burst: 200 })

  test(`${name}: after an update no key has a fresh burst: what was spent stays spent`, () => {
    const { limiter } = fixture(hundred)
    limiter.take('k', 150)
    limiter.update(policyOf({ limit: 50, window: '1s', burst: 200 }))
    assert.equal(limiter.peek('k').remaining, 50)
    limiter.update(policyOf({ limit: 50, window: '1s', burst: 1000 }))
    assert.equal(limiter.peek('k').remaining, 850)
  })

  test(`${name}: after an update no key is locked out for years: at most the new burst is owed`, () => {
    const { limiter } = fixture(policyOf({ limit: 1_000_000, window: '1s' }))
    limiter.take('k', 1_000_000)
    limiter.penalize('deep', 10_000_000)
    limiter.update(policyOf({ limit: 1, window: '1h', burst: 3 }))
    for (const key of ['k', 'deep']) assert.equal(limiter.peek(key).resetAfterMs, 3 * 3_600_000)
  })

  test(`${name}: tokens that came back before the update count as come back`, () => {
    const { limiter, clock } = fixture(hundred)
    limiter.take('k', 200)
    clock.advance(500)
    limiter.update(policyOf({ limit: 1, window: '1d', burst: 200 }))
    assert.equal(admitted(limiter, 'k', 100), 50)
  })

  test(`I12 ${name}: a policy that is not one is refused and changes nothing`, () => {
    const { limiter } = fixture(hundred)
    limiter.take('k', 20)
    assert.throws(() => limiter.update({ ...hundred, limit: 0 } as typeof hundred), { code: 'LIMIT_INVALID' })
    assert.deepEqual(limiter.policy, hundred)
    assert.equal(limiter.peek('k').remaining, 180)
  })
}

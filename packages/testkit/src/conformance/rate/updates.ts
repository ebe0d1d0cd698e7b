import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gcra, PolicyError, tokenBucket } from 'sluicegate'
import { admitted, type Fixtures } from '../fixture.js'
import type { MakeRate } from './make-rate.js'

/** `update`, with bursts and tokens that flow in continuously. */
export function rateUpdates(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const hundred = policyOf({ limit: 100, window: '1s', burst: 200 })

  test(`${name}: after an update nobody has a fresh burst: what was spent stays spent`, () => {
    const { limiter } = fixture(hundred)
    limiter.take('k', 150)
    limiter.update(policyOf({ limit: 50, window: '1s', burst: 200 }))
    assert.equal(limiter.peek('k').remaining, 50)
    limiter.update(policyOf({ limit: 50, window: '1s', burst: 1000 }))
    assert.equal(limiter.peek('k').remaining, 850)
  })

  test(`${name}: after an update nobody is locked out for years: at most the new burst is owed`, () => {
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

  test(`${name}: an update is seen by policy, by keys known before and by bound keys`, () => {
    const { limiter } = fixture(hundred)
    const bound = limiter.key('k')
    bound.take()
    const next = policyOf({ limit: 5, window: '1m', name: 'next' })
    limiter.update(next)
    assert.deepEqual(limiter.policy, next)
    assert.deepEqual([bound.take().policy, bound.take().limit, limiter.take('new').remaining], ['next', 5, 4])
  })

  test(`${name}: a thousand updates in a row lose no debt and give none`, () => {
    const { limiter } = fixture(hundred)
    for (let i = 0; i < 50; i++) limiter.take(`k${i}`, 60)
    for (let i = 0; i < 1000; i++) limiter.update(policyOf({ limit: 100 + (i % 7), window: '1s', burst: 200 }))
    limiter.update(hundred)
    for (let i = 0; i < 50; i++) assert.equal(limiter.peek(`k${i}`).remaining, 140)
  })

  test(`I12 ${name}: another algorithm is refused and changes nothing`, () => {
    const { limiter } = fixture(hundred)
    limiter.take('k', 20)
    const other = hundred.algorithm === 'gcra' ? tokenBucket({ limit: 1, window: '1s' }) : gcra({ limit: 1, window: '1s' })
    assert.throws(
      () => limiter.update(other),
      (error) => error instanceof PolicyError && error.code === 'ALGORITHM_CHANGE' && error.value === other.algorithm,
    )
    assert.throws(() => limiter.update({ ...hundred, limit: 0 }), { code: 'LIMIT_INVALID' })
    assert.throws(() => limiter.update(null as never), { code: 'POLICY_INVALID' })
    assert.deepEqual(limiter.policy, hundred)
    assert.equal(limiter.peek('k').remaining, 180)
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixedWindow, gcra, type Policy, PolicyError, tokenBucket } from 'sluicegate'
import { shortOrLong } from '../run-length.js'
import { admitted, type Fixtures, type MakePolicy } from './fixture.js'

/** `update`: a live change of the policy, with every algorithm. */
export function updates(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const hundred = policyOf({ limit: 100, window: '1h' })
  const { updatesLazily } = fixture.store

  test(`${name}: after an update no key has a fresh budget: what was spent stays spent`, async () => {
    const { checked } = await fixture(hundred)
    await checked.take('k', 80)
    checked.update(policyOf({ limit: 90, window: '1h' }))
    assert.equal((await checked.peek('k')).remaining, 10)
    checked.update(policyOf({ limit: 150, window: '1h' }))
    assert.ok((await checked.peek('k')).remaining <= 70)
    checked.update(policyOf({ limit: 20, window: '1h' }))
    assert.equal((await checked.peek('k')).remaining, 0)
  })

  test(`${name}: a block outlasts an update of the policy`, async () => {
    const { limiter, clock } = await fixture(hundred)
    await limiter.block('k', '10s')
    clock.advance(3000)
    limiter.update(policyOf({ limit: 7, window: '1m' }))
    assert.equal((await limiter.take('k')).retryAfterMs, 7000)
    clock.advance(7000)
    assert.equal((await limiter.take('k')).allowed, true)
  })

  test(`${name}: an update of the window keeps what was spent, too`, async () => {
    const { checked, clock } = await fixture(hundred)
    await checked.take('k', 80)
    await checked.penalize('deep', 5000)
    checked.update(policyOf({ limit: 100, window: '2h' }))
    assert.equal((await checked.peek('k')).remaining, 20)
    clock.advance(1000)
    checked.update(policyOf({ limit: 100, window: '1m' }))
    // What was not touched between two updates is carried over once.
    for (const key of updatesLazily ? ['new'] : ['k', 'deep', 'new']) await checked.peek(key)
  })

  test(`${name}: an update is seen by policy, by keys known before and by bound keys`, async () => {
    const { limiter } = await fixture(hundred)
    const bound = limiter.key('k')
    await bound.take()
    const next = policyOf({ limit: 5, window: '1h', name: 'next' })
    limiter.update(next)
    const seen = updatesLazily ? namedAs(next, hundred) : next
    assert.deepEqual(limiter.policy, seen)
    assert.deepEqual([(await bound.take()).limit, (await limiter.take('new')).remaining], [5, 4])
    if (next.policies === undefined) assert.equal((await bound.take()).policy, seen.name)
  })

  test(`${name}: updates in a row lose nothing and give nothing`, async () => {
    const { limiter } = await fixture(hundred)
    for (let i = 0; i < 50; i++) await limiter.take(`k${i}`, 60)
    for (let i = 0; i < Math.max(shortOrLong(60, 100), 1000 * fixture.store.share); i++)
      limiter.update(policyOf({ limit: 100 + (i % 7), window: '1h' }))
    limiter.update(hundred)
    for (let i = 0; i < 50; i++) assert.equal((await limiter.peek(`k${i}`)).remaining, 40)
    assert.equal(await admitted(limiter, 'new', 200), 100)
  })

  test(`I12 ${name}: another algorithm is refused and changes nothing`, async () => {
    const { limiter } = await fixture(hundred)
    await limiter.take('k', 20)
    for (const other of [tokenBucket, gcra, fixedWindow].map((make) => make({ limit: 1, window: '1s' }))) {
      if (other.algorithm === hundred.algorithm) continue
      await assert.rejects(
        async () => limiter.update(other),
        (error) => error instanceof PolicyError && error.code === 'ALGORITHM_CHANGE' && error.value === other.algorithm,
      )
    }
    await assert.rejects(async () => limiter.update(null as never), { code: 'POLICY_INVALID' })
    assert.deepEqual(limiter.policy, hundred)
    assert.equal((await limiter.peek('k')).remaining, 80)
  })
}

/** A policy, and each of its parts, by the names of another. */
function namedAs({ policies, ...policy }: Policy, { name, policies: named = [] }: Policy): Policy {
  if (policies === undefined) return { ...policy, name } as Policy
  return { ...policy, name, policies: policies.map((part, i) => ({ ...part, name: named[i]?.name ?? part.name })) } as unknown as Policy
}

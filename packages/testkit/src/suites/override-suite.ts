import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concurrency, fixedWindow, type Policy } from '../../../sluicegate/dist/index.js'
import type { Overrides } from '../../../sluicegate/dist/overrides.js'
import type { SharedOptions } from '../../../sluicegate/dist/shared/shared-options.js'
import type { ManualClock } from '../../../sluicegate/dist/time/clock.js'
import { type AnyLimiter, passed, refused } from './layer-suite.js'

export const STALE_MS = 1_000

type Overridden = AnyLimiter & { readonly overrides: Overrides }

/** Two limiters of one state, as two processes have it, on one clock. */
export interface OverridePair {
  readonly one: Overridden
  readonly other: Overridden
  readonly clock: ManualClock
}

export interface OverrideHarness {
  readonly name: string
  /** Then what one process holds is not for the other, while time stands still. */
  readonly isLeased: boolean
  make(policy: Policy, options?: Pick<SharedOptions, 'policyFor'>): OverridePair
}

const window = '365d'
const OWN = fixedWindow({ limit: 30, window, name: 'own' })
const PRO = fixedWindow({ limit: 60, window, name: 'pro' })
const TINY = fixedWindow({ limit: 25, window, name: 'tiny' })

/** Policies of single keys: the same over every kind of limiter. */
export function overrideSuite({ name, isLeased, make }: OverrideHarness): void {
  test(`${name}: an override is for its key alone, in all processes`, async () => {
    const { one, other, clock } = make(OWN)
    assert.equal((await other.take('acme')).policy, 'own')
    await one.overrides.set('acme', PRO)
    assert.equal((await one.take('acme')).policy, 'pro')
    clock.advance(STALE_MS)
    assert.equal((await other.take('acme')).policy, 'pro')
    const together = (await passed(one, 'acme', 40)) + (await passed(other, 'acme', 40))
    assert.ok(isLeased ? together > 30 && together <= 58 : together === 58, String(together))
    assert.deepEqual([(await other.take('else')).policy, (await one.take('else')).policy], ['own', 'own'])
  })

  test(`${name}: what is set in one process is read, listed and taken away in another`, async () => {
    const { one, other, clock } = make(OWN)
    const odd = `{a}:b%"\ud800`
    await one.overrides.set('acme', PRO)
    await other.overrides.set(odd, TINY)
    await other.overrides.set('acme', TINY)
    assert.deepEqual([await one.overrides.get('acme'), await one.overrides.get('else')], [TINY, undefined])
    const listed = await one.overrides.list()
    assert.deepEqual(
      new Set(listed),
      new Set([
        ['acme', TINY],
        [odd, TINY],
      ] as const),
    )
    assert.equal((await one.take(odd)).policy, 'tiny')
    assert.deepEqual([await one.overrides.delete('acme'), await other.overrides.delete('acme')], [true, false])
    clock.advance(STALE_MS)
    assert.deepEqual([(await one.take('acme')).policy, (await other.take(odd)).policy], ['own', 'tiny'])
  })

  test(`${name}: a key without its override finds its old account again`, async () => {
    const { one } = make(OWN)
    assert.equal(await passed(one, 'acme', 20), 20)
    await one.overrides.set('acme', PRO)
    assert.equal(await passed(one, 'acme', 70), 60)
    await one.overrides.delete('acme')
    assert.equal(await passed(one, 'acme', 20), 10)
    await one.overrides.set('acme', PRO)
    assert.equal(await passed(one, 'acme', 5), 0)
  })

  test(`${name}: every verb goes to the override, which comes before policyFor`, async () => {
    const { one } = make(OWN, { policyFor: () => TINY })
    assert.equal((await one.take('x')).policy, 'tiny')
    await one.overrides.set('acme', PRO)
    const bound = one.key('acme')
    assert.deepEqual([(await bound.take()).policy, (await bound.peek()).policy], ['pro', 'pro'])
    const answers = [
      await one.refund('acme', 1),
      await one.penalize('acme', 1),
      await one.wait('acme'),
      (await one.reserve('acme', 1)).decision,
      await one.block('acme', '1h'),
      await one.reset('acme'),
    ]
    for (const { policy } of answers) assert.equal(policy, 'pro')
    await one.overrides.delete('acme')
    assert.equal((await bound.take()).policy, 'tiny')
  })

  test(`${name}: what is no key and no policy is refused, also one that answers with permits`, async () => {
    const { one } = make(OWN)
    for (const key of ['', 5, null, ['a'], 'x'.repeat(1025)]) {
      for (const verb of ['get', 'delete'] as const) await refused(() => one.overrides[verb](key as string), { code: 'KEY_INVALID' })
      await refused(() => one.overrides.set(key as string, PRO), { code: 'KEY_INVALID', option: 'key' })
    }
    for (const policy of [undefined, 'pro', {}, concurrency({ limit: 2 })]) {
      await refused(() => one.overrides.set('acme', policy as Policy), { code: 'POLICY_INVALID', option: 'policy' })
    }
    assert.equal((await one.overrides.list()).size, 0)
    await refused(() => one.take(['a', 'b']), { code: 'KEY_INVALID' })
  })

  test(`${name}: closed is closed, with an override or without`, async () => {
    const { one, clock } = make(OWN)
    await one.overrides.set('acme', PRO)
    await one.take('acme')
    one.close()
    clock.advance(STALE_MS)
    for (const key of ['acme', 'else']) assert.throws(() => one.take(key), { code: 'CLOSED' })
  })
}

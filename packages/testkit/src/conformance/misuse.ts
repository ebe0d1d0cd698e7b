import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PolicyError, StoreError } from 'sluicegate'
import type { AnyLimiter, Fixture, Fixtures, MakePolicy } from './fixture.js'

const NO_COSTS: readonly unknown[] = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '1', null, true, [1], 1n, Symbol('1')]
const NO_KEYS: readonly unknown[] = ['', 'x'.repeat(1025), 1, null, undefined, {}, ['k'], Symbol('k'), 10n, [10n]]
const NO_DURATIONS: readonly unknown[] = [-1, Number.NaN, Number.POSITIVE_INFINITY, '', '1', '1 s', '-1s', '1w', null, {}]

/** Misuse throws where the mistake is made, says what it was, and changes nothing. */
export function misuse(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const policy = policyOf({ limit: 10, window: '1s' })

  const refusals =
    ({ limiter, keys }: Fixture) =>
    async (call: (limiter: AnyLimiter) => unknown, code: PolicyError['code'], option: string, value: unknown) => {
      const isMisuse = (error: unknown): boolean => {
        assert.ok(error instanceof PolicyError && error instanceof TypeError, String(error))
        assert.deepEqual([error.code, error.option, error.value], [code, option, value])
        assert.ok(error.message.startsWith(`${option}: `) && error.message.length < 300, error.message)
        return true
      }
      await assert.rejects(async () => call(limiter), isMisuse)
      assert.deepEqual([await keys(), (await limiter.peek('k')).remaining], [0, 10])
    }

  test(`${name}: a cost that is no integer >= 1 is refused by every verb that takes one`, async () => {
    const refuses = refusals(await fixture(policy))
    for (const cost of NO_COSTS) {
      const wrong = cost as number
      await refuses((limiter) => limiter.take('k', wrong), 'COST_INVALID', 'cost', cost)
      await refuses((limiter) => limiter.peek('k', wrong), 'COST_INVALID', 'cost', cost)
      await refuses((limiter) => limiter.key('k').take(wrong), 'COST_INVALID', 'cost', cost)
      await refuses((limiter) => limiter.key('k').peek(wrong), 'COST_INVALID', 'cost', cost)
      await refuses((limiter) => limiter.reserve('k', wrong), 'COST_INVALID', 'cost', cost)
      await refuses((limiter) => limiter.refund('k', wrong), 'COST_INVALID', 'tokens', cost)
      await refuses((limiter) => limiter.penalize('k', wrong), 'COST_INVALID', 'tokens', cost)
    }
  })

  test(`${name}: a key that is no string of 1 to 1,024 units is refused by every verb`, async () => {
    const refuses = refusals(await fixture(policy))
    for (const key of NO_KEYS) {
      const wrong = key as string
      await refuses((limiter) => limiter.take(wrong), 'KEY_INVALID', 'key', key)
      await refuses((limiter) => limiter.peek(wrong), 'KEY_INVALID', 'key', key)
      await refuses((limiter) => limiter.key(wrong), 'KEY_INVALID', 'key', key)
      await refuses((limiter) => limiter.refund(wrong, 1), 'KEY_INVALID', 'key', key)
      await refuses((limiter) => limiter.penalize(wrong, 1), 'KEY_INVALID', 'key', key)
      await refuses((limiter) => limiter.block(wrong, 1), 'KEY_INVALID', 'key', key)
      await refuses((limiter) => limiter.reset(wrong), 'KEY_INVALID', 'key', key)
      await refuses((limiter) => limiter.reserve(wrong, 1), 'KEY_INVALID', 'key', key)
    }
  })

  test(`${name}: a block needs a duration`, async () => {
    const refuses = refusals(await fixture(policy))
    for (const duration of NO_DURATIONS)
      await refuses((limiter) => limiter.block('k', duration as number), 'DURATION_INVALID', 'duration', duration)
  })

  test(`${name}: a cost, a penalty and a refund beyond all budgets are no misuse`, async () => {
    const { limiter } = await fixture(policy)
    for (const huge of [2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER, 1e300]) {
      assert.equal((await limiter.take('k', huge)).retryAfterMs, Number.POSITIVE_INFINITY)
      assert.equal((await limiter.penalize('p', huge)).remaining, 0)
      assert.equal((await limiter.refund('p', huge)).resetAfterMs, 0)
    }
    assert.equal((await limiter.take('k', 10)).allowed, true)
  })

  test(`${name}: after close every call throws CLOSED, and closing again does nothing`, async () => {
    const { limiter } = await fixture(policy, { hotKeys: 5 })
    const bound = limiter.key('k')
    await limiter.take('k')
    limiter.close()
    limiter.close()
    limiter[Symbol.dispose]()
    const calls: readonly (() => unknown)[] = [
      () => limiter.take('k'),
      () => limiter.peek('k'),
      () => limiter.refund('k', 1),
      () => limiter.penalize('k', 1),
      () => limiter.block('k', 1),
      () => limiter.reset('k'),
      () => limiter.reserve('k', 1),
      () => limiter.key('k'),
      () => limiter.update(policy),
      ...(limiter.handle && limiter.snapshot ? [() => limiter.handle?.(), () => limiter.snapshot?.()] : []),
      () => limiter.stats(),
      () => limiter.policy,
      () => limiter.hotKeys(),
      () => bound.take(),
      () => bound.peek(),
    ]
    for (const call of calls)
      await assert.rejects(
        async () => call(),
        (error) => error instanceof StoreError && error.code === 'CLOSED',
        String(call),
      )
  })

  test(`${name}: a clock that reads no finite time is misuse, and the next good reading decides again`, async () => {
    const { limiter, clock } = await fixture(policy)
    await limiter.take('k', 4)
    for (const reading of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      await assert.rejects(async () => clock.set(reading), { code: 'CLOCK_INVALID' })
    }
    assert.equal((await limiter.take('k')).remaining, 5)
  })

  test(`${name}: denial, impossible cost and outage are three different things`, async () => {
    const { limiter } = await fixture(policy)
    await limiter.take('k', 10)
    const denied = await limiter.take('k')
    const impossible = await limiter.take('k', 11)
    assert.ok(!denied.allowed && Number.isFinite(denied.retryAfterMs))
    assert.ok(!impossible.allowed && impossible.retryAfterMs === Number.POSITIVE_INFINITY)
    limiter.close()
    await assert.rejects(async () => limiter.take('k'), StoreError)
  })
}

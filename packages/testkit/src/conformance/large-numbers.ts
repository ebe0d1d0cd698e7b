import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixedWindow, type Policy, slidingWindow, tokenBucket } from 'sluicegate'
import type { Fixtures } from './fixture.js'

const ALL = Number.MAX_SAFE_INTEGER
/** The last minute before the month ends in Rome, with the hour that the clocks were set back in it. */
const MONTH_END_MS = Date.UTC(2026, 9, 31, 22, 59)
/** Edges of integers of 32 bits, of what limits once ended at, and of doubles. */
const EDGES = [2 ** 31 - 1, 2 ** 31, 2 ** 32, 1_000_000_000, 1_000_000_001, 50_000_000_000, 2 ** 52 + 1, ALL - 1, ALL]

/** What is true of limits and costs of any size: all of them are counted to the token. */
export function largeNumbers(name: string, fixture: Fixtures): void {
  const policies: readonly (readonly [what: string, of: (limit: number) => Policy, most: number])[] = [
    ['a month of Rome', (limit) => fixedWindow({ limit, window: 'month', timeZone: 'Europe/Rome' }), ALL],
    ['a fixed window of an hour', (limit) => fixedWindow({ limit, window: '1h' }), ALL],
    ['a sliding window', (limit) => slidingWindow({ limit, window: '1m' }), 799_644_820_200],
    ['a bucket', (limit) => tokenBucket({ limit, window: '30d' }), 749_088_000_000_000],
  ]

  for (const [what, policyOf, most] of policies) {
    test(`I1 ${name}: under ${what} the last token of a limit passes and none after it, up to ${most}`, async () => {
      for (const limit of new Set(EDGES.filter((edge) => edge < most).concat(most))) {
        const { checked } = await fixture(policyOf(limit), {}, MONTH_END_MS)
        assert.equal((await checked.take('k', limit - 1)).remaining, 1)
        assert.equal((await checked.take('k', 2)).allowed, false)
        assert.equal((await checked.take('k')).allowed, true)
        assert.equal((await checked.take('k')).allowed, false)
        // A cost above every limit never passes, whatever it is rounded to.
        for (const cost of [ALL, 2 ** 53, 1e300])
          assert.equal((await checked.peek('k', Math.max(cost, limit + 1))).retryAfterMs, Number.POSITIVE_INFINITY)
      }
    })

    test(`${name}: under ${what} debts, refunds and settled estimates of any size leave exact counts`, async () => {
      for (const limit of [50_000_000_000, Math.min(most, ALL)]) {
        const { checked } = await fixture(policyOf(limit), {}, MONTH_END_MS)
        const reserved = await checked.reserve('k', limit - 10)
        await checked.settle(reserved, limit - 3)
        assert.equal((await checked.peek('k')).remaining, 3)
        const second = await checked.reserve('k', 3)
        await checked.settle(second, 4)
        assert.equal((await checked.peek('k')).allowed, false)
        await checked.penalize('k', 2 ** 31)
        await checked.penalize('k', ALL)
        assert.equal((await checked.take('k')).allowed, false)
        await checked.refund('k', 2 ** 31 + 7)
        await checked.refund('k', ALL)
        await checked.refund('k', ALL)
        await checked.reset('k')
        assert.equal((await checked.take('k', limit)).allowed, true)
      }
    })
  }

  test(`${name}: a monthly budget in micro-dollars is kept over the end of a month and the hour that its clocks are set back`, async () => {
    const limit = 50_000_000_000
    const { checked, clock } = await fixture(
      fixedWindow({ limit, window: 'month', timeZone: 'Europe/Rome' }),
      {},
      Date.UTC(2026, 9, 24, 23, 30),
    )
    assert.equal((await checked.take('k', limit - 1)).allowed, true)
    for (let hours = 0; hours < 3; hours++) {
      clock.advance(3_600_000)
      assert.equal((await checked.take('k', 2)).allowed, false)
    }
    clock.set(MONTH_END_MS + 59_999.999)
    assert.equal((await checked.take('k', 2)).retryAfterMs, 1)
    clock.set(MONTH_END_MS + 60_000)
    assert.equal((await checked.take('k', limit)).resetAfterMs, Date.UTC(2026, 10, 30, 23) - clock.nowMs())
    for (let month = 0; month < 30; month++) {
      clock.advance((await checked.peek('k')).resetAfterMs)
      assert.equal((await checked.take('k', limit)).allowed, true)
      assert.equal((await checked.take('k')).allowed, false)
    }
  })

  test(`${name}: limits changed from 10^8 to 10^12 and back under a live key keep what was spent`, async () => {
    for (const policyOf of [
      (limit: number) => fixedWindow({ limit, window: 'month' }),
      (limit: number) => fixedWindow({ limit, window: '1h' }),
      (limit: number) => tokenBucket({ limit, window: '30d' }),
    ]) {
      const { limiter } = await fixture(policyOf(100_000_000), {}, MONTH_END_MS)
      await limiter.take('k', 60_000_000)
      limiter.update(policyOf(1_000_000_000_000))
      const { remaining } = await limiter.take('k', 900_000_000_000)
      assert.ok(remaining <= 99_940_000_000 && remaining >= 99_900_000_000 - 60_000_000, `${remaining}`)
      limiter.update(policyOf(100_000_000))
      assert.equal((await limiter.take('k')).allowed, false)
      limiter.update(policyOf(1_000_000_000_000))
      assert.ok((await limiter.peek('k')).remaining <= 1_000_000_000_000 - 100_000_000)
    }
  })
}

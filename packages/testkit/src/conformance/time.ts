import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyNth, shortOrLong } from '../run-length.js'
import { admitted, type Fixtures, type MakePolicy, START_MS } from './fixture.js'

const DAY_MS = 86_400_000
const YEAR_MS = 365.25 * DAY_MS

/** I3, and the faults in time that other limiters have had, with every algorithm. */
export function time(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const tenASecond = policyOf({ limit: 10, window: '1s' })

  const within = (stepMs: number): boolean => stepMs <= fixture.store.furthestBackMs

  for (const stepMs of [0.001, 1, 1000, 3_600_000, DAY_MS, 40 * DAY_MS, 10 * YEAR_MS].filter(within)) {
    test(`I3 ${name}: a step back of ${stepMs} ms grants nothing and delays no key longer than the step`, async () => {
      const { limiter, clock } = await fixture(tenASecond)
      await limiter.take('spent', 10)
      await limiter.take('half', 5)
      const before = (await limiter.peek('spent')).retryAfterMs
      clock.advance(-stepMs)
      assert.equal(await admitted(limiter, 'spent', 50), 0)
      assert.ok((await admitted(limiter, 'half', 50)) <= 5)
      assert.ok((await limiter.peek('spent')).retryAfterMs <= Math.ceil(stepMs) + before)
      clock.set(START_MS)
      assert.equal(await admitted(limiter, 'spent', 50), 0)
      clock.advance(before)
      assert.equal((await limiter.take('spent')).allowed, true)
    })
  }

  for (const stepMs of [0.001, 1, 300, 999, 1000, 2500, 3_600_000].filter(within)) {
    test(`I3 ${name}: after a step back of ${stepMs} ms every answer is what is declared, until the clock is back`, async () => {
      const { checked, clock } = await fixture(tenASecond)
      await checked.take('k', 6)
      clock.advance(-stepMs)
      await checked.take('k', 2)
      await checked.penalize('k', 3)
      for (const part of [0.25, 0.5, 0.99, 1, 1.01]) {
        clock.set(Math.round((START_MS - stepMs + part * stepMs) * 1000) / 1000)
        await checked.peek('k')
        await checked.peek('k', 9)
        await checked.take('k')
      }
    })
  }

  test(`I3 ${name}: nothing wraps in 30 years of use`, async () => {
    const { limiter, clock } = await fixture(tenASecond)
    const untilMs = clock.nowMs() + 30 * YEAR_MS
    for (let days = 0.1; clock.nowMs() < untilMs; days = days > shortOrLong(1000, 300) ? 0.1 : days * (1 + 0.3 / fixture.store.share)) {
      assert.equal(await admitted(limiter, 'k', 15), 10)
      assert.ok((await limiter.peek('k')).resetAfterMs <= 2000)
      clock.advance(days * DAY_MS)
    }
  })

  for (const [i, years] of [13, 12.7, 1, 35, 34.8, 60].entries()) {
    everyNth(i, 3)(`${name}: a key idle for ${years} years has what a new one has and not one more`, async () => {
      for (const policy of [tenASecond, policyOf({ limit: 7000, window: '1s' }), policyOf({ limit: 1, window: '30d' })]) {
        const { limiter, clock } = await fixture(policy)
        await limiter.take('k', policy.limit)
        clock.advance(years * YEAR_MS)
        assert.equal((await limiter.take('k', policy.limit)).allowed, true)
        assert.equal((await limiter.take('k')).allowed, false)
      }
    })
  }

  test(`${name}: retry-after is never 0 on a denial, at any rate`, async () => {
    for (const limit of [1, 7, 999, 1001, 10_000]) {
      const { limiter, clock } = await fixture(policyOf({ limit, window: '1s' }), { maxKeys: 5 })
      await limiter.take('k', limit)
      for (let step = 0; step < 20; step++) {
        const { allowed, retryAfterMs } = await limiter.peek('k', limit)
        assert.ok(allowed ? retryAfterMs === 0 : retryAfterMs >= 1, `${limit} per second: ${retryAfterMs}`)
        clock.advance(97.003)
      }
    }
  })

  for (const windowMs of [1, 100, 900, 1500]) {
    test(`${name}: a window of ${windowMs} ms ends when it says, neither floored to seconds nor rounded up to one`, async () => {
      const { limiter, clock } = await fixture(policyOf({ limit: 1, window: windowMs }))
      for (let round = 0; round < 20; round++) {
        assert.equal((await limiter.take('k')).allowed, true)
        const { allowed, retryAfterMs } = await limiter.take('k')
        assert.ok(!allowed && retryAfterMs >= 1 && retryAfterMs <= 2 * windowMs, `${retryAfterMs}`)
        clock.advance(retryAfterMs - 1)
        assert.equal((await limiter.take('k')).allowed, false)
        clock.advance(1)
      }
    })
  }

  test(`${name}: a window of 30 days holds for as long as it says, day by day`, async () => {
    const { limiter, clock } = await fixture(policyOf({ limit: 1, window: '30d' }))
    await limiter.take('k')
    let { retryAfterMs } = await limiter.take('k')
    assert.ok(retryAfterMs > DAY_MS)
    for (; retryAfterMs > DAY_MS; retryAfterMs -= DAY_MS) {
      assert.equal((await limiter.take('k')).retryAfterMs, retryAfterMs)
      clock.advance(DAY_MS)
    }
    clock.advance(retryAfterMs)
    assert.equal((await limiter.take('k')).allowed, true)
  })

  test(`${name}: readings in the first hours of the epoch are times like any other`, async () => {
    const { checked, clock } = await fixture(policyOf({ limit: 2, window: '1m' }), {}, 3_600_000)
    for (const atMs of [3_600_000, 3_600_000.4, 3_659_999.999, 3_660_000, 3_720_000]) {
      clock.set(atMs)
      await checked.take('k')
      await checked.peek('k', 2)
    }
  })
}

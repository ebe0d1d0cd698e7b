import assert from 'node:assert/strict'
import { test } from 'node:test'
import { slidingWindow } from 'sluicegate'
import { firstPositionExcess, firstWindowExcess } from '../history/excess.js'
import { alignedWindows } from '../oracle/window-oracles.js'
import { Random } from '../random.js'
import { admitted, type Fixtures } from './fixture.js'

const MIDNIGHT_MS = Date.UTC(2026, 8, 10)

/** What is true of sliding windows alone. */
export function slidingWindows(name: string, fixture: Fixtures): void {
  const tenASecond = slidingWindow({ limit: 10, window: '1s' })

  test(`${name}: the window before counts by the share of it that is still covered`, async () => {
    const { limiter, clock } = await fixture(tenASecond, {}, MIDNIGHT_MS + 900)
    assert.equal(await admitted(limiter, 'k', 20), 10)
    assert.equal((await limiter.take('k')).retryAfterMs, 200)
    clock.advance(200)
    assert.equal(await admitted(limiter, 'k', 20), 1)
    clock.advance(400)
    assert.equal(await admitted(limiter, 'k', 20), 4)
  })

  test(`${name}: windows are aligned to UTC: a key's first call sets none of its own`, async () => {
    const { limiter, clock } = await fixture(tenASecond, {}, MIDNIGHT_MS + 999)
    await limiter.take('k', 10)
    clock.advance(1)
    assert.equal((await limiter.take('k')).retryAfterMs, 100)
    assert.equal((await limiter.peek('k')).resetAfterMs, 1000)
  })

  for (const [limit, window] of [
    [10, '1s'],
    [1, '1ms'],
    [3, '219ms'],
    [65_535, '1s'],
    [65_536, '1s'],
    [1_000_000_000, '7d'],
  ] as const) {
    const policy = slidingWindow({ limit, window })

    test(`I1 ${name}, ${limit} per ${window}: never more than the limit in a window, nor twice as much in any position`, async () => {
      const random = new Random(limit)
      const windowUs = policy.windowMs * 1000
      const { checked, clock } = await fixture(policy)
      const admissions = []
      for (let i = 0; i < 2000; i++) {
        const leftUs = windowUs - (Math.round(clock.nowMs() * 1000) % windowUs)
        const gapUs = random.pick([0, 0, leftUs, leftUs - 1, random.integer(0, windowUs), 2 * windowUs, -1])
        clock.set((Math.round(clock.nowMs() * 1000) + gapUs) / 1000)
        const { remaining } = await checked.peek('k', random.integer(1, limit))
        const cost = random.pick([1, Math.max(1, remaining), Math.min(limit, remaining + 1), random.integer(1, limit)])
        if ((await checked.take('k', cost)).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost })
      }
      assert.ok(admissions.length > 200)
      assert.equal(firstWindowExcess(limit, alignedWindows(BigInt(windowUs)), admissions), undefined)
      assert.equal(firstPositionExcess(2 * limit - 1, windowUs, admissions), undefined)
    })
  }

  test(`${name}: counters of 16 bits do not run over: 65,535 and a penalty more is not 0`, async () => {
    for (const limit of [65_535, 65_536, 60_000]) {
      const { limiter, checked, clock } = await fixture(slidingWindow({ limit, window: '1s' }), {}, MIDNIGHT_MS)
      await checked.take('k', limit)
      for (const tokens of [1, 5535, 65_535, 65_536, 131_072]) {
        await checked.penalize('k', tokens)
        assert.equal((await limiter.take('k')).allowed, false)
      }
      clock.advance(1000)
      assert.equal((await checked.take('k')).allowed, false)
      await checked.penalize('k', 65_536)
      clock.advance(1000)
      assert.equal((await checked.take('k', limit)).allowed, false)
      clock.advance(1000)
      assert.equal((await checked.take('k', limit)).allowed, true)
    }
  })

  test(`${name}: a clock that steps back finds the key closed until its window, not full`, async () => {
    for (const policy of [tenASecond, slidingWindow({ limit: 10, window: '100ms' }), slidingWindow({ limit: 100_000, window: '1s' })]) {
      const { checked, clock } = await fixture(policy, {}, MIDNIGHT_MS)
      await checked.take('k', 10)
      clock.advance(-0.001)
      assert.deepEqual([(await checked.take('k')).allowed, (await checked.peek('k')).remaining], [false, 0])
      clock.advance(-3 * policy.windowMs)
      assert.equal((await checked.take('k', 10)).allowed, false)
      clock.set(MIDNIGHT_MS)
      await checked.take('k')
    }
  })

  test(`${name}: a refund does not reach into the window before`, async () => {
    const { limiter, clock } = await fixture(tenASecond, {}, MIDNIGHT_MS)
    await limiter.take('k', 10)
    clock.advance(1000)
    assert.equal((await limiter.refund('k', 10)).remaining, 0)
    clock.advance(100)
    assert.equal(await admitted(limiter, 'k', 20), 1)
  })

  // In memory a key whose counters change their width has spent in this window what counts at the change: that never grows less by time
  // until the window ends. A store carries a saved key over, which has both counts at any width: the one before goes on fading. Of
  // 800 before and 151 now, at most 951 count from the change on; 0.777777 s into 10 s it is 738 + 151 = 889, as with no change.
  test(`${name}: changes between limits of narrow and of wide counters lose nothing`, async () => {
    const isSaved = fixture.store.source === 'store'
    const { checked, clock } = await fixture(slidingWindow({ limit: 1000, window: '10s' }), {}, MIDNIGHT_MS)
    await checked.take('k', 800)
    clock.advance(10_000)
    await checked.take('k', 150)
    for (const limit of [100_000, 2000, 1_000_000_000, 900, 65_535, 65_536]) {
      checked.update(slidingWindow({ limit, window: '10s' }), { isSaved })
      await checked.peek('k', 1)
      await checked.take('k', 1)
      clock.advance(777.777)
    }
    for (const window of [219, 220, 60_000] as const) {
      checked.update(slidingWindow({ limit: 5000, window }))
      await checked.peek('k', 5000)
    }
  })
}

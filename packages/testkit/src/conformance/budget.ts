import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Policy } from 'sluicegate'
import { type Admission, firstOver } from '../history/excess.js'
import { specOf } from '../kit.js'
import { mostCost } from '../oracle/oracle.js'
import { Random } from '../random.js'
import { IS_LONG_RUN, shortOrLong } from '../run-length.js'
import type { Fixtures, MakePolicy } from './fixture.js'

const POLICIES = [
  { limit: 10, window: '1s' },
  { limit: 7, window: '1m' },
  { limit: 1, window: '1ms' },
  { limit: 300, window: '16ms' },
  { limit: 3, window: '30d' },
] as const
/** The first, the shortest and the longest in a short run. */
const IN_TIME = POLICIES.filter((_, i) => IS_LONG_RUN || i % 2 === 0)
/** Random costs of which the retry-after is tried. */
const RETRIES = shortOrLong(30, 60)

/** {@link budget} of policies with each algorithm. */
export function budgets(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  budget(name, fixture, IN_TIME.map(policyOf))
}

/** The invariants of the budget that one thread can show: I1 in its form, I4, I5. */
export function budget(name: string, fixture: Fixtures, policies: readonly Policy[]): void {
  for (const policy of policies) {
    const { windowMs } = policy
    const limit = mostCost(specOf(policy))
    const label = `${name}, ${policy.name}`

    test(`I1 ${label}: what is admitted stays within what the policy allows, whatever the clock does`, async () => {
      const random = new Random(limit)
      const { limiter, clock } = await fixture(policy)
      const admissions: Admission[] = []
      for (let i = 0; i < 3000 * fixture.store.share; i++) {
        const gapMs = random.pick([0, 0.001, windowMs / limit, windowMs * random.fraction(), windowMs, -windowMs * random.fraction()])
        // One that cannot tell a long step from what another clock wrote may let a key off some of it, each time.
        if (gapMs < 0 && Number.isFinite(fixture.store.furthestBackMs)) continue
        clock.advance(Math.round(gapMs * 1000) / 1000)
        const { remaining } = await limiter.peek('k')
        const cost = random.chance(0.5) ? 1 : random.chance(0.5) ? Math.max(1, remaining) : random.integer(1, limit)
        if ((await limiter.take('k', cost)).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost })
      }
      assert.ok(admissions.length > 100 * fixture.store.share)
      assert.equal(firstOver(specOf(policy), admissions), undefined)
    })

    test(`I4 ${label}: a denial costs nothing, also as windows go by`, async () => {
      const { limiter, clock } = await fixture(policy)
      const { limiter: quiet, clock: quietClock } = await fixture(policy)
      for (const each of [limiter, quiet]) await each.take('k', limit)
      const before = await limiter.peek('k')
      for (let i = 0; i < 1000 * fixture.store.share; i++)
        assert.equal((await limiter.take('k', i % 2 === 0 ? limit : limit + 1)).allowed, false)
      assert.deepEqual(await limiter.peek('k'), before)
      for (let i = 0; i < shortOrLong(20, 50); i++) {
        for (const each of [clock, quietClock]) each.advance(windowMs / 20)
        if (!(await limiter.peek('k', limit)).allowed) await limiter.take('k', limit)
        assert.deepEqual(await limiter.peek('k'), await quiet.peek('k'))
      }
    })

    test(`I5 ${label}: at +retryAfterMs the same request passes, 1 ms before it does not`, async () => {
      const random = new Random(limit)
      const { limiter, clock } = await fixture(policy)
      await limiter.take('k', limit)
      let denials = 0
      for (let i = 0; i < RETRIES; i++) {
        const cost = random.integer(1, limit)
        const { allowed, retryAfterMs } = await limiter.take('k', cost)
        if (allowed) continue
        denials++
        assert.ok(Number.isInteger(retryAfterMs) && retryAfterMs > 0)
        clock.advance(retryAfterMs - 1)
        assert.equal((await limiter.peek('k', cost)).allowed, false)
        clock.advance(1)
        assert.equal((await limiter.take('k', cost)).allowed, true)
      }
      assert.ok(denials > RETRIES / 4)
    })

    test(`${label}: at +resetAfterMs the key is full, 1 ms before it is not`, async () => {
      const { limiter, clock } = await fixture(policy)
      const { resetAfterMs } = await limiter.take('k', limit)
      clock.advance(resetAfterMs - 1)
      assert.ok((await limiter.peek('k')).resetAfterMs > 0)
      clock.advance(1)
      assert.deepEqual([(await limiter.peek('k')).resetAfterMs, (await limiter.peek('k')).remaining], [0, limit])
    })

    test(`${label}: every answer to a random caller is the oracle's`, async () => {
      const random = new Random(limit + 1)
      const { checked, clock } = await fixture(policy)
      for (let i = 0; i < 500 * fixture.store.share; i++) {
        clock.advance(Math.round(random.pick([0, 0, 0.001, windowMs / limit, windowMs * random.fraction()]) * 1000) / 1000)
        const cost = random.magnitude(1, limit + 1)
        await random.pick([() => checked.take('k', cost), () => checked.take('k', 1), () => checked.peek('k', cost)])()
      }
    })
  }
}

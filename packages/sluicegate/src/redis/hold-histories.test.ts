import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { fleetHoldMismatch, turnsPassed } from 'sluicegate-testkit/holds/fleet-history.js'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import type { ManualClock, Policy } from '../index.js'
import { redisOver } from './redis.js'

const HISTORIES = shortOrLong(12, 60)

for (const [mode, claim] of [
  ['exact', 'processes that share a Redis spend no more than the policy, and what lost ones held is free again'],
  ['leased', 'what is held in a Redis and what is leased of it are within the policy together'],
] as const) {
  test(`${claim}, in ${HISTORIES} random histories`, async (t) => {
    const redis = await ownRedis()
    t.after(() => redis.stop())
    for (const seed of seedsFrom(1, HISTORIES)) {
      const open = (clock: ManualClock) => {
        const time = new GivenTime(redis.runner, clock)
        const store = redisOver(time, { prefix: `history ${seed}` })
        return {
          limiter: (policy: Policy) => createLimiter(policy, { store, clock, mode, outage: 'closed', timeout: 60_000 }),
          async settled() {
            for (let idle = 0; idle < 2; idle = time.underway > 0 ? 0 : idle + 1) await turnsPassed()
          },
        }
      }
      assert.equal(await fleetHoldMismatch(seed, open, { mode }), undefined)
    }
  })
}

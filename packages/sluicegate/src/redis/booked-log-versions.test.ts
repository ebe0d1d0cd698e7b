import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Random, seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { slidingLog } from '../index.js'
import { encodingsOf, type PolicyEncoding } from '../shared/steps/policy-encoding.js'
import type { KeyState } from '../shared/steps/script-call.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'

/** Tokens that passed, spent at any time from `fromUs` to `untilUs`. */
interface Spent {
  readonly fromUs: number
  readonly untilUs: number
  readonly tokens: number
}

const redis = await ownRedis()
after(() => redis.stop())

function formOf(limit: number, windowMs: number, leaseUs: number): PolicyEncoding {
  return encodingsOf(slidingLog({ limit, window: windowMs, name: 'log' }), () => leaseUs).encodings[0] as PolicyEncoding
}

/** The most that can be spent in one window, when every leased token is spent at its worst time. */
function mostInAWindow(spent: readonly Spent[], windowUs: number): number {
  return Math.max(
    0,
    ...spent.map(({ untilUs }) =>
      spent.reduce((sum, other) => (other.untilUs >= untilUs && other.fromUs < untilUs + windowUs ? sum + other.tokens : sum), 0),
    ),
  )
}

/** No lease is longer than a twentieth of the window. Random calls of exact processes that book ahead, and of leased ones, under several limits and horizons of one window. */
async function played(given: GivenTime, seed: number): Promise<{ readonly most: number; readonly limit: number }> {
  const random = new Random(seed)
  const windowMs = random.pick([40, 150, 1000])
  const limits = [random.integer(2, 20), random.integer(2, 20)]
  const store = new RedisScripts(given, new RedisKeys(`booked ${seed}`))
  const spent: Spent[] = []
  given.nowUs = 1_000_000_000
  for (let i = 0; i < 80; i++) {
    given.nowUs += random.chance(0.3) ? 0 : random.magnitude(1, windowMs * random.pick([30, 30, 30, 300, 1000]))
    const { nowUs } = given
    const leaseUs = random.pick([0, 0, windowMs * 10, windowMs * 50])
    const encoding = formOf(random.pick(limits), windowMs, leaseUs)
    if (leaseUs > 0) {
      const { availableNow } = await store.lease(encoding, 'k', random.integer(1, 10), leaseUs, 1)
      if (availableNow > 0) spent.push({ fromUs: nowUs, untilUs: nowUs + leaseUs, tokens: availableNow })
      continue
    }
    const tokens = random.integer(1, 6)
    const verb = random.pick(['take', 'reserve'] as const)
    const { states } = await store.ask(verb, [{ encoding, key: 'k', tokens, mostUs: windowMs * random.pick([20, 1000]) }])
    const { done, waitUs } = states[0] as KeyState
    if (done) spent.push({ fromUs: nowUs + waitUs, untilUs: nowUs + waitUs, tokens })
  }
  return { most: mostInAWindow(spent, windowMs * 1000), limit: Math.max(...limits) }
}

test('a log that is booked ahead passes no more than the largest limit, whatever versions and leases share it', async () => {
  const given = new GivenTime(redis.runner)
  for (const seed of seedsFrom(1, shortOrLong(12, 50))) {
    const { most, limit } = await played(given, seed)
    assert.ok(most <= limit, `seed ${seed}: ${most} of ${limit} in one window`)
  }
})

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createClient } from '@redis/client'
import { everyNth, Random, type RateSpec, seedsFrom, shortOrLong, until } from 'sluicegate-testkit'
import { positionBudget, rateBudget, type Spent, surelyOver } from 'sluicegate-testkit/history/excess.js'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { type OwnRedis, ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, gcra, type Policy, type SharedLimiter, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { encodingsOf, type PolicyEncoding } from '../shared/steps/policy-encoding.js'
import type { KeyState } from '../shared/steps/step-answers.js'
import { type RedisClient, redis as redisStore } from './index.js'
import { RedisKeys } from './redis-keys.js'
import { RedisScripts } from './redis-scripts.js'

// Several versions of a policy saturate one key of a real server, as while a fleet is deployed: together they pass no more than the largest burst
// and the highest rate, or the largest limit, over every interval.

const FOR_MS = 700
const HORIZON_MS = 10
const MOST_MS = 30_000
const SEEDS = [1, 2, 3, 4].slice(0, shortOrLong(1, 4))
/** The least share of the budget that must pass: a mix of versions shuts out no process. */
const LEAST_SHARE = 0.5

type Options = Pick<SharedOptions, 'mode' | 'lease'>
type Version = readonly [policy: Policy, options?: Options]

const OTHER_HORIZON: Options = { lease: 15 }
const EXACT: Options = { mode: 'exact' }

const RATES = [tokenBucket, gcra] as const
const WINDOWS = [fixedWindow, slidingWindow, slidingLog] as const

let redis: OwnRedis
const clients: (ReturnType<typeof createClient> & RedisClient)[] = []

before(async () => {
  redis = await ownRedis()
  for (let i = 0; i < 3; i++) {
    const client = createClient({ url: redis.server.url })
    await client.connect()
    clients.push(client as ReturnType<typeof createClient> & RedisClient)
  }
})

after(async () => {
  for (const client of clients) client.destroy()
  await redis.stop()
})

/** Mixes by name, for a maker of policies with a burst, or a limit, and a rate. */
function mixesOf(make: (burst: number, rate?: number) => Policy): Readonly<Record<string, readonly Version[]>> {
  return {
    'two bursts': [[make(200)], [make(210)]],
    'two limits': [[make(200)], [make(200, 180)]],
    'three versions': [[make(200)], [make(220)], [make(150, 260)]],
    'exact and leased': [[make(200)], [make(200), EXACT]],
    'two horizons': [[make(200)], [make(200), OTHER_HORIZON]],
  }
}

for (const [a, make] of RATES.entries()) {
  const mixes = mixesOf((burst, limit = 400) => make({ limit, window: '1s', burst, name: 'api' }))
  for (const [m, [mix, versions]] of Object.entries(mixes).entries()) {
    // In a short run of the algorithms by turns.
    everyNth(m - 2 * a, 8)(
      `I1: ${make.name}, ${mix}, saturated on a real server, passes the largest burst and the highest rate`,
      async (t) => {
        const budgetOf = rateBudget(boundOf(versions))
        const latestUs = machineUs() + MOST_MS * 1000
        // Again where the machine had too little time to saturate anything: the bound holds each time.
        for (let run = 1, isSaturated = false; !isSaturated; run++) {
          const { spent, lengthUs, counts } = await saturated(`${make.name} ${mix} ${run}`, versions)
          t.diagnostic(`${counts} of ${Math.floor(budgetOf(lengthUs))}`)
          assert.equal(surelyOver(spent, budgetOf), undefined)
          isSaturated = spent.length > LEAST_SHARE * budgetOf(lengthUs)
          assert.ok(isSaturated || machineUs() < latestUs, `${spent.length} passed`)
        }
      },
    )
  }
}

for (const [a, make] of WINDOWS.entries()) {
  const window = 650
  const mixes = mixesOf((burst, limit = burst) => make({ limit, window, name: 'api' }))
  for (const [m, [mix, versions]] of Object.entries(mixes).entries()) {
    everyNth(m - a, 3 * WINDOWS.length)(`I1: ${make.name}, ${mix}, saturated on a real server, passes the largest limit`, async (t) => {
      const limit = Math.max(...versions.map(([policy]) => policy.limit))
      const least = LEAST_SHARE * limit
      const { spent, counts } = await saturated(`${make.name} ${mix}`, versions, { forMs: 2 * window, least })
      // Of aligned windows what holds in every position.
      const most = { fixedWindow: 2 * limit, slidingWindow: 2 * limit - 1, slidingLog: limit }[make.name as 'fixedWindow']
      t.diagnostic(`${counts}`)
      assert.equal(surelyOver(spent, positionBudget(most, window)), undefined)
      assert.ok(spent.length >= least, `${spent.length} passed`)
    })
  }
}

for (const seed of SEEDS) {
  test(`I1: a rolling deployment at random, seed ${seed}: versions change in the middle, by update or by a new limiter`, async (t) => {
    const random = new Random(seed)
    const make = random.pick(RATES)
    const versions = Array.from({ length: 3 }, (): Version => {
      const [burst, limit] = [random.integer(100, 300), random.integer(100, 400)]
      const options = random.pick([{}, {}, EXACT, OTHER_HORIZON])
      return [make({ limit, window: '1s', burst, name: 'api' }), options]
    })
    const { spent, lengthUs, counts } = await saturated(`seed ${seed}`, versions, { least: 101, random })
    const budgetOf = rateBudget(boundOf(versions))
    t.diagnostic(`${versions.map(([policy, options]) => `${policy.limit}/${policy.burst} ${JSON.stringify(options)}`)}: ${counts}`)
    assert.equal(surelyOver(spent, budgetOf), undefined)
    assert.ok(spent.length > 100 && lengthUs > 0)
  })
}

function boundOf(versions: readonly Version[]): RateSpec {
  const policies = versions.map(([policy]) => policy)
  const [limit, burst] = [Math.max(...policies.map((policy) => policy.limit)), Math.max(...policies.map((policy) => policy.burst))]
  return { limit, windowMs: 1000, burst }
}

interface Load {
  readonly forMs?: number
  /** It does not end before this number passed, however long a busy machine takes for it. */
  readonly least?: number
  readonly random?: Random
}

/** Each version by a limiter and a connection of its own; with `random` each goes over to the next one in the middle. */
async function saturated(prefix: string, versions: readonly Version[], { forMs = FOR_MS, least = 0, random }: Load = {}) {
  const spent: Spent[] = []
  const beginUs = machineUs()
  const untilUs = beginUs + forMs * 1000
  const latestUs = beginUs + MOST_MS * 1000
  const limiterOf = (i: number): SharedLimiter => {
    const [policy, options] = versions[i % versions.length] as Version
    const client = clients[i % clients.length] as (typeof clients)[number]
    const settings = { lease: HORIZON_MS, ...options }
    return createLimiter(policy, { store: redisStore(client, { prefix }), outage: 'closed', timeout: 60_000, ...settings })
  }
  const counts = versions.map(() => 0)
  const caller = async (_: Version, i: number): Promise<void> => {
    let limiter = limiterOf(i)
    const changeUs = random === undefined ? Number.POSITIVE_INFINITY : beginUs + random.integer(1, forMs) * 1000
    let isChanged = false
    while (machineUs() < untilUs || (spent.length < least && machineUs() < latestUs)) {
      if (!isChanged && machineUs() > changeUs) {
        isChanged = true
        if (random?.chance(0.5)) limiter.update((versions[(i + 1) % versions.length] as Version)[0])
        else {
          limiter.close()
          limiter = limiterOf(i + 1)
        }
      }
      for (let takes = 0; takes < 16; takes++) {
        const fromUs = machineUs()
        if (!(await limiter.take('k')).allowed) continue
        spent.push({ fromUs, toUs: machineUs() })
        counts[i] = (counts[i] ?? 0) + 1
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    limiter.close()
  }
  await Promise.all(versions.map(caller))
  return { spent, lengthUs: machineUs() - beginUs, counts }
}

function machineUs(): number {
  return Number(process.hrtime.bigint() / 1000n)
}

describe('accounted after bookings', async () => {
  const BURST = 50
  /** Hardly anything flows back by itself. */
  const POLICY = tokenBucket({ limit: BURST, window: '1d', burst: BURST, name: 'api' })
  /** Of the whole burst, a tenth. */
  const SHARE = 5
  /** The charge after the outage is sent once: on a busy machine its answer must not come too late. */
  const TIMEOUT_MS = 1_500

  const redis = await ownRedis()
  after(() => redis.stop())

  // valkey-glide cannot recall a command: what was given up may be charged after what follows it.
  for (const kind of clientsForRun(SERVER_CLIENTS.filter(({ library }) => library !== 'valkey-glide'))) {
    test(`with ${kind.name} late bookings are returned before the store is charged for the outage`, async () => {
      await using open = await kind.open([redis.server])
      const limiter = createLimiter(POLICY, { store: redisStore(open.client, { prefix: kind.name }), mode: 'exact', timeout: TIMEOUT_MS })
      await limiter.peek('k')
      redis.server.pause()
      const given = await Promise.all(Array.from({ length: BURST + 20 }, () => limiter.reserve('k', 1)))
      redis.server.resume()
      assert.ok(given.every(({ decision }) => decision.source === 'outage'))
      await until('the tokens of the outage are charged', () => limiter.stats().accountedTokens >= SHARE)
      const { remaining, source } = await limiter.peek('k')
      assert.equal(source, 'store')
      // Of the bookings whose time had come so much stays as could have flowed back meanwhile, less than a token.
      assert.ok(remaining >= BURST - SHARE - 1, `${remaining}`)
      limiter.close()
    })
  }
})

describe('booked log versions', async () => {
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
        const { tokens } = await store.lease(encoding, 'k', random.integer(1, 10), 1)
        if (tokens > 0) spent.push({ fromUs: nowUs, untilUs: nowUs + leaseUs, tokens })
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
})

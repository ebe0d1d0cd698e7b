import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { PostgresProcess } from 'sluicegate-testkit'
import { channelPair } from 'sluicegate-testkit/cluster/channel-pair.js'
import { type OwnRedis, ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { KeptObjects } from 'sluicegate-testkit/workers/kept-storage.js'
import { primary } from './cluster/primary.js'
import { serveLimiter } from './cluster/serve-limiter.js'
import { createLimiter } from './create-limiter.js'
import { durableObjects } from './durable-objects/durable-objects.js'
import { limiterObject } from './durable-objects/limiter-object.js'
import { PolicyError } from './errors.js'
import { concurrency, fixedWindow, levels, type ManualClock, manualClock, type Policy, slidingLog, tokenBucket } from './index.js'
import { postgres, postgresTable } from './postgres/index.js'
import { redis } from './redis/index.js'
import { region } from './regions/index.js'
import type { SharedLimiter } from './shared/shared-limiter.js'
import type { SharedOptions } from './shared/shared-options.js'
import type { Store } from './shared/store.js'
import { casStore } from './store/cas.js'
import { memoryStore } from './store-testing/memory-store.js'

const START_MS = 1_789_000_000_000
const OWN = levels({
  org: fixedWindow({ limit: 1000, window: '30d' }),
  team: fixedWindow({ limit: 10, window: '30d' }),
  key: tokenBucket({ limit: 100, window: '1h' }),
})
const PRO = fixedWindow({ limit: 50, window: '30d', name: 'pro' })
const LARGE = tokenBucket({ limit: 200, window: '1h' })

let server: OwnRedis
let database: PostgresProcess
let pool: pg.Pool
before(async () => {
  server = await ownRedis()
  database = await PostgresProcess.start()
  await database.ask(postgresTable())
  pool = new pg.Pool({ connectionString: database.url })
})
after(async () => {
  await pool.end()
  await database.stop()
  await server.stop()
})

/** Options by which limiters share what they count; in memory each counts by itself. */
const PLACES: Readonly<Record<string, () => Partial<SharedOptions>>> = {
  'in memory': () => ({}),
  'over a store that compares and swaps': () => over(casStore(memoryStore({ clock: manualClock(START_MS) }))),
  'over Redis': () => over(redis(server.client, { prefix: crypto.randomUUID() })),
  'over PostgreSQL': () => over(postgres(pool, { prefix: crypto.randomUUID() })),
  'over a primary': () => ({ store: overPrimary(), timeout: 10_000 }),
  'over Durable Objects': () => over(overObjects()),
  'in a region': () => {
    const clock = manualClock(START_MS)
    const stores = { local: casStore(memoryStore({ clock })), home: casStore(memoryStore({ clock })) }
    return { ...over(region({ name: 'west', share: 1, ...stores })), clock }
  },
}
const OWNED = ['over a primary', 'over Durable Objects']

function overPrimary(own: Policy = OWN): Store {
  const { worker, parent } = channelPair()
  serveLimiter(own).serve(worker)
  return primary({ process: parent })
}

/** All keys in one object. */
function overObjects(objects = new KeptObjects(limiterObject([OWN]))): Store {
  return durableObjects(objects, { waitUntil: () => undefined, objectFor: () => '' })
}

function over(store: SharedOptions['store']): Partial<SharedOptions> {
  return { store, mode: 'exact', timeout: 10_000 }
}

/** In memory a limiter, too: its answers are awaited all the same. */
function made(policy: Policy, options: object): SharedLimiter {
  return createLimiter(policy, options as SharedOptions)
}

for (const [name, placeOf] of Object.entries(PLACES)) {
  describe(`plans ${name}`, () => {
    function planned(options: Partial<SharedOptions> = {}) {
      const plans = new Map<string, Policy>([['research', PRO]])
      const place = placeOf()
      const limiter = made(OWN, { policyFor: { team: (id: string) => plans.get(id) }, ...place, ...options })
      return { plans, place, limiter }
    }

    test('a level has the plan of its key; a denial names the level; the organisation has one budget', async () => {
      const { limiter, place } = planned()
      const research = { org: 'acme', team: 'research', key: 'ada' }
      const sales = ['acme', 'sales', 'bob']
      assert.equal((await limiter.take(research, 50)).allowed, true)
      const denied = await limiter.take(research)
      assert.deepEqual([denied.allowed, denied.policy, denied.limit], [false, 'team', 50])
      assert.equal((await limiter.take(sales, 10)).allowed, true)
      const other = await limiter.take(sales)
      assert.deepEqual([other.allowed, other.policy, other.limit], [false, 'team', 10])
      const [org] = (await limiter.peek(['acme', 'new', 'new'])).parts ?? []
      assert.equal(org?.remaining, 940)
      if (place.store !== undefined && !OWNED.includes(name)) {
        using orgs = made(fixedWindow({ limit: 1000, window: '30d', name: 'org' }), place)
        assert.equal((await orgs.peek('acme')).remaining, 940)
      }
      limiter.close()
    })

    test('a key keeps what it has spent when its plan changes, up and down', async () => {
      const { limiter, plans } = planned()
      const key = ['acme', 'ops', 'eve']
      await limiter.take(key, 8)
      plans.set('ops', PRO)
      assert.equal((await limiter.take(key, 22)).remaining, 20)
      plans.delete('ops')
      assert.equal((await limiter.take(key)).allowed, false)
      plans.set('ops', PRO)
      assert.equal((await limiter.peek(key)).policy, 'team')
      limiter.close()
    })

    test('every level may have plans; equal ones, and those made anew, are one', async () => {
      const { limiter } = planned({
        policyFor: { team: () => fixedWindow({ limit: 500, window: '30d' }), key: (id) => (id === 'big' ? LARGE : undefined) },
      })
      assert.equal((await limiter.take(['acme', 'a', 'big'], 150)).allowed, true)
      const denied = await limiter.take(['acme', 'a', 'small'], 150)
      assert.deepEqual([denied.allowed, denied.policy], [false, 'key'])
      assert.equal((await limiter.take(['acme', 'a', 'big'], 50)).allowed, true)
      limiter.close()
    })

    test('work opens under the plan of each level, and spends there', async () => {
      const { limiter } = planned(name === 'in memory' || name === 'over a primary' ? {} : { mode: 'leased' })
      const key = { org: 'acme', team: 'research', key: 'ada' }
      const work = await limiter.open(key, { expect: 40, most: 45 })
      assert.deepEqual([work.allowed, await work.add(30)], [true, true])
      const refused = await limiter.open(key, { expect: 20 })
      assert.deepEqual([refused.allowed, refused.policy], [false, 'team'])
      await work.close(35)
      assert.equal((await limiter.peek(key)).remaining, 15)
      limiter.close()
    })

    test('a wait moves to the plan that its key has by then, and an update of the own policy is felt beside plans', async () => {
      const { limiter } = planned()
      const key = { org: 'acme', team: 'research', key: 'ada' }
      if (name === 'over Durable Objects') return limiter.close()
      limiter.update(
        levels({ org: fixedWindow({ limit: 20, window: '30d' }), team: fixedWindow({ limit: 10, window: '30d' }), key: LARGE }),
      )
      assert.equal((await limiter.take(key, 20)).allowed, true)
      const denied = await limiter.take(key)
      assert.deepEqual([denied.allowed, denied.policy, denied.limit], [false, 'org', 20])
      limiter.close()
    })
  })
}

for (const [place, optionsOn] of [
  ['in memory', () => ({})],
  ['over a store', (clock: ManualClock) => over(casStore(memoryStore({ clock })))],
] as const) {
  test(`a wait for levels goes on under the plan that its key has by then, ${place}`, async () => {
    const clock = manualClock(START_MS)
    const plans = new Map<string, Policy>()
    const own = levels({ org: tokenBucket({ limit: 1000, window: '1s' }), team: tokenBucket({ limit: 1, window: '1h' }) })
    const limiter = made(own, { ...optionsOn(clock), clock, policyFor: { team: (id: string) => plans.get(id) } })
    const key = { org: 'acme', team: 'ops' }
    await limiter.take(key)
    let allowed: boolean | undefined
    const waiting = limiter.wait(key).then((decision) => {
      allowed = decision.allowed
    })
    await passing(clock, 3)
    assert.equal(allowed, undefined)
    plans.set('ops', tokenBucket({ limit: 3600, window: '1h' }))
    await passing(clock, 4)
    assert.equal(allowed, true)
    await waiting
    limiter.close()
  })
}

async function passing(clock: ManualClock, seconds: number): Promise<void> {
  for (let ms = 0; ms < seconds * 1000; ms += 50) {
    clock.advance(50)
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

test('an object that was evicted knows the plan of a key, and what it has spent of it', async () => {
  const objects = new KeptObjects(limiterObject([OWN]))
  const limiter = made(OWN, { store: overObjects(objects), policyFor: { team: (id: string) => (id === 'research' ? PRO : undefined) } })
  const key = ['acme', 'research', 'ada']
  await limiter.take(key, 45)
  const work = await limiter.open(key, { expect: 3 })
  objects.evict()
  assert.deepEqual([(await limiter.peek(key)).remaining, (await limiter.take(key, 3)).allowed], [2, false])
  assert.deepEqual([await work.add(3), (await work.close()).remaining], [true, 2])
  limiter.close()
})

test('what is granted of a hold at a primary is charged where its key is when it ends', async () => {
  const clock = manualClock(START_MS)
  const served = serveLimiter(OWN, { clock, mode: 'exact' })
  const [planned, plain] = [{ team: () => PRO }, undefined].map((policyFor) => {
    const { worker, parent } = channelPair()
    served.serve(worker)
    return made(OWN, { store: primary({ process: parent }), clock, timeout: 10_000, ...(policyFor && { policyFor }) })
  }) as [SharedLimiter, SharedLimiter]
  const key = ['acme', 'research', 'ada']
  const work = await planned.open(key, { expect: 20, ttl: '2s' })
  await planned.take(key, 2)
  assert.equal(await work.add(1), true)
  planned.close()
  assert.equal((await plain.take(key)).allowed, false)
  clock.advance(10_000)
  const { parts = [] } = await plain.peek(key)
  // Of 20 six were granted.
  assert.deepEqual(
    parts.map(({ remaining }) => remaining),
    [992, 2, 92],
  )
  plain.close()
  served.close()
})

test('a level of permits has no plans at a primary', async () => {
  const seats = levels({ org: fixedWindow({ limit: 10, window: '1m' }), seats: concurrency({ limit: 5, ttl: '1m' }) })
  const limiter = made(seats, { store: overPrimary(seats), policyFor: { seats: () => concurrency({ limit: 9, ttl: '1m' }) } })
  await assert.rejects(async () => limiter.take(['acme', 'acme']), {
    code: 'POLICY_INVALID',
    message: /policyFor\.seats: is of concurrency/,
  })
  limiter.close()
})

test('what plans cannot be is said at once, with what to do', async () => {
  const store = casStore(memoryStore())
  const policyFor = { team: () => PRO }
  const seats = levels({ org: fixedWindow({ limit: 10, window: '1m' }), seats: concurrency({ limit: 5, ttl: '1m' }) })
  for (const [policy, options, message] of [
    [PRO, { policyFor }, /policyFor: .* are for levels/],
    [OWN, { policyFor: { squad: () => PRO } }, /policyFor\.squad: must be one of org, team, key/],
    [OWN, { policyFor: { team: PRO } }, /policyFor\.team: must be a function of a key/],
    [OWN, { policyFor: [] }, /policyFor: must be functions by level, such as/],
    [OWN, { policyFor: new Map([['team', () => PRO]]) }, /policyFor: must be functions by level, such as/],
    [OWN, { plans: policyFor }, /plans: .* did you mean policyFor\?/],
    [OWN, { policyFor, policies: [PRO] }, /policies: is for single keys/],
    [OWN, { policyFor, overrides: true }, /overrides: is for single keys/],
    [seats, { policyFor: { seats: () => undefined }, store: undefined }, /policyFor\.seats: is of concurrency/],
    [
      OWN,
      { policyFor, store: region({ name: 'a', tooSmall: 'share', share: 1, local: redis(server.client), home: redis(server.client) }) },
      /policyFor: of levels needs tooSmall: 'home'/,
    ],
  ] as const) {
    const make = (): void => made(policy, { store, ...options }).close()
    assert.throws(make, (error) => error instanceof PolicyError && message.test(error.message), String(message))
  }
  const key = ['acme', 'a', 'ada']
  for (const [plan, message] of [
    [slidingLog({ limit: 5, window: '1m' }), /policyFor\.team: must return fixed-window/],
    [{ limit: 5 }, /policyFor\.team/],
    [Promise.resolve(PRO), /policyFor\.team/],
  ] as const) {
    for (const place of [{}, { store }]) {
      const limiter = made(OWN, { ...place, policyFor: { team: () => plan as Policy } })
      await assert.rejects(
        async () => limiter.take(key),
        (error) => error instanceof PolicyError && message.test(error.message),
      )
      limiter.close()
    }
  }
  const single = createLimiter(OWN, { store, policyFor: () => undefined })
  await assert.rejects(
    async () => single.take({ org: 'a', team: 'b', key: 'c' }),
    /must be one string with policyFor or overrides: for levels/,
  )
  single.close()
})

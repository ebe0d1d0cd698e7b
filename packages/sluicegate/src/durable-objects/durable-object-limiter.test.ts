import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeptObjects } from 'sluicegate-testkit/workers/kept-storage.js'
import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision/decision.js'
import { allOf } from '../policy/all-of.js'
import type { Policy } from '../policy/policy.js'
import { concurrency, fixedWindow, slidingLog, slidingWindow, tokenBucket } from '../policy/single-policy.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { manualClock } from '../time/clock.js'
import { durableObjects } from './durable-objects.js'
import { limiterObject } from './limiter-object.js'

const waitUntil = (): void => undefined

function setUp(policy: Policy, given: Partial<SharedOptions> = {}) {
  const clock = manualClock(3_600_000)
  const { mode, lease = 50, ...options } = given
  const same = { lease, clock, ...(mode && { mode }) }
  const objects = new KeptObjects(limiterObject([policy], same))
  const limiter = (): SharedLimiter =>
    createLimiter(policy, {
      store: durableObjects(objects, { waitUntil }),
      ...same,
      timeout: 60_000,
      outage: 'closed',
      ...options,
    })
  return { clock, objects, limiter }
}

const count = (decisions: readonly Decision[]): number => decisions.filter(({ allowed }) => allowed).length

const POLICIES = [
  tokenBucket({ limit: 1000, window: '10s', burst: 500, name: 'bucket' }),
  fixedWindow({ limit: 500, window: '1m', name: 'fixed' }),
  slidingWindow({ limit: 500, window: '1m', name: 'sliding' }),
  slidingLog({ limit: 500, window: '1m', name: 'log' }),
  allOf([fixedWindow({ limit: 500, window: '1m', name: 'one' }), slidingWindow({ limit: 900, window: '1h', name: 'two' })], {
    name: 'all',
  }),
]

for (const policy of POLICIES) {
  for (const mode of ['exact', 'leased'] as const) {
    test(`many Workers together admit the burst and no token more, also over evictions: ${policy.name}, ${mode}`, async () => {
      const { objects, limiter } = setUp(policy, { mode })
      const workers = Array.from({ length: 8 }, limiter)
      let admitted = 0
      for (let round = 0; round < 20; round++) {
        if (round % 3 === 0) objects.evict()
        const taken = workers.flatMap((worker) => Array.from({ length: 10 }, async () => worker.take('ada')))
        admitted += count(await Promise.all(taken))
      }
      // Leased tokens that another Worker holds are not lost to the policy, only late.
      if (mode === 'exact') assert.equal(admitted, 500)
      else assert.ok(admitted <= 500 && admitted > 250, `${admitted} were admitted`)
      for (const worker of workers) worker.close()
    })
  }
}

test('takes of one turn are one request to the object of their key', async () => {
  const { objects, limiter } = setUp(POLICIES[0] as Policy, { mode: 'exact' })
  const worker = limiter()
  await Promise.all(Array.from({ length: 100 }, () => worker.take('ada')))
  assert.equal(objects.requests, 1)
  await Promise.all(['ada', 'bob'].map((key) => worker.take(key)))
  assert.equal(objects.requests, 3)
})

test('a leased Worker decides nearly all takes by itself', async () => {
  const { clock, objects, limiter } = setUp(POLICIES[0] as Policy)
  const worker = limiter()
  let admitted = 0
  for (let i = 0; i < 2_000; i++) {
    clock.advance(1)
    admitted += count([await worker.take('ada', 1)])
  }
  assert.ok(admitted > 600 && objects.requests < admitted / 5, `${objects.requests} requests for ${admitted} tokens`)
})

test('four takes a second of a key are leased where leases reach several takes ahead, and else cost a request each', async () => {
  const requestsFor = async (horizonMs: number): Promise<number> => {
    const { clock, objects, limiter } = setUp(fixedWindow({ limit: 100_000, window: '1d', name: 'day' }), { lease: horizonMs })
    const worker = limiter()
    for (let i = 0; i < 400; i++) {
      clock.advance(250)
      assert.ok((await worker.take('ada')).allowed)
    }
    return objects.requests
  }
  assert.equal(await requestsFor(50), 400)
  const requests = await requestsFor(1_000)
  assert.ok(requests < 200, `${requests} requests for 400 tokens`)
})

test('keys of several objects cannot be charged together, and with objectFor they can', async () => {
  const policy = allOf([tokenBucket({ limit: 5, window: '1h', name: 'user' }), tokenBucket({ limit: 8, window: '1h', name: 'tenant' })], {
    name: 'both',
  })
  const { objects, limiter } = setUp(policy, { mode: 'exact' })
  await assert.rejects(async () => limiter().take(['ada', 'acme']), { code: 'KEY_INVALID' })
  const together = createLimiter(policy, {
    store: durableObjects(objects, { waitUntil, objectFor: () => 'acme' }),
    mode: 'exact',
    outage: 'closed',
  })
  const users = ['ada', 'bob'].flatMap((user) => Array.from({ length: 6 }, async () => together.take([user, 'acme'])))
  assert.equal(count(await Promise.all(users)), 8)
  assert.equal(objects.kept.size, 1)
})

test('permits, reservations and corrections work as with other stores', async () => {
  const permits = setUp(concurrency({ limit: 1, ttl: '30s', name: 'permits' }))
  const worker = permits.limiter() as SharedLimiter<Decision & { release(): Promise<boolean> }>
  const held = await worker.take('ada')
  assert.equal((await worker.take('ada')).allowed, false)
  assert.equal(await held.release(), true)
  assert.equal((await worker.take('ada')).allowed, true)
  const { limiter } = setUp(tokenBucket({ limit: 10, window: '10s', name: 'bucket' }), { mode: 'exact' })
  const bucket = limiter()
  const first = await bucket.reserve('ada', 8)
  await first.settle(3)
  assert.equal((await bucket.peek('ada')).remaining, 7)
  const later = await bucket.reserve('ada', 10)
  assert.equal(later.waitMs, 3_000)
  await later.cancel()
  assert.equal((await bucket.penalize('ada', 2)).remaining, 5)
  assert.equal((await bucket.refund('ada', 1)).remaining, 6)
  await bucket.block('ada', '1m')
  assert.equal((await bucket.take('ada')).allowed, false)
  assert.equal((await bucket.reset('ada')).remaining, 10)
})

test('waits, queues, overrides and changes of policy are refused', async () => {
  const { objects, limiter } = setUp(POLICIES[0] as Policy)
  const worker = limiter()
  await assert.rejects(worker.wait('ada'), { code: 'OPTION_INVALID' })
  await assert.rejects(
    worker.run('ada', () => 1),
    { code: 'OPTION_INVALID' },
  )
  assert.throws(() => worker.update(POLICIES[0] as Policy), { code: 'OPTION_INVALID' })
  const make = (options: object) => () =>
    createLimiter(POLICIES[0] as Policy, { store: durableObjects(objects, { waitUntil }), ...options })
  for (const options of [{ maxWaiting: 1 }, { overrides: true }]) assert.throws(make(options), { code: 'OPTION_INVALID' })
  assert.throws(() => durableObjects(undefined as never, { waitUntil }), { code: 'OPTION_INVALID', option: 'namespace' })
  for (const wrong of [{ waitUntil: 1 }, { waitUntil, objectFor: 'ada' }, {}])
    assert.throws(() => durableObjects(objects, wrong as never), { code: 'OPTION_INVALID' })
})

test('an object that fails is an outage, never a denial, and its token is not charged twice', async () => {
  const { objects, limiter } = setUp(tokenBucket({ limit: 10, window: '1h', name: 'bucket' }), { mode: 'exact', outage: 'open' })
  const worker = limiter()
  objects.before = () => Promise.reject(new Error('overloaded'))
  const { allowed, source } = await worker.take('ada')
  assert.deepEqual([allowed, source], [true, 'outage'])
  assert.equal(objects.requests, 1)
})

test('an object that does not answer in time is an outage', async (context) => {
  const { objects, limiter } = setUp(tokenBucket({ limit: 10, window: '1h', name: 'bucket' }), { mode: 'exact', timeout: 50 })
  const worker = limiter()
  objects.before = () => new Promise(() => undefined)
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const taken = worker.take('ada')
  await Promise.resolve()
  context.mock.timers.tick(50)
  assert.equal((await taken).source, 'outage')
})

test('a policy that its objects do not hold is an outage', async () => {
  const { objects } = setUp(POLICIES[0] as Policy)
  const other = createLimiter(tokenBucket({ limit: 1, window: '1h', name: 'other' }), {
    store: durableObjects(objects, { waitUntil }),
    outage: 'open',
  })
  assert.equal((await other.take('ada')).source, 'outage')
})

test('a look at a key that never came stores nothing, and a ban of it is stored', async () => {
  const { objects, limiter } = setUp(POLICIES[0] as Policy, { mode: 'exact' })
  const worker = limiter()
  await worker.peek('ada')
  assert.deepEqual(
    Array.from(objects.kept.values(), ({ storage }) => [storage.entries.size, storage.alarmAtMs]),
    [[0, null]],
  )
  await worker.block('ada', '1h')
  objects.evict()
  assert.equal((await worker.take('ada')).allowed, false)
})

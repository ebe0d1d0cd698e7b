import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { SETTLED_ALGORITHMS, settledInMemory } from 'sluicegate-testkit/receipts/settled-history.js'
import { createLimiter, makeLimiter } from '../create-limiter.js'
import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import type { Limiter } from '../limiter.js'
import { type ManualClock, manualClock } from '../time/clock.js'
import type { RunningJob } from './queue-options.js'

// Jobs that are settled late: what they return is bounded by what is still owed, and goes to the account that was charged.

const START_MS = 1_790_000_000_000
const HISTORIES = shortOrLong(10, 30)

const MAKERS = { tokenBucket, gcra, fixedWindow, slidingWindow, slidingLog }

/** A job that runs for ever. */
async function held(limiter: Limiter, cost: number, key = 'k'): Promise<RunningJob> {
  return new Promise((started, refused) => {
    limiter.run(key, (job) => new Promise<void>(() => started(job)), { cost, maxWait: 0 }).catch(refused)
  })
}

function takeAll(limiter: Limiter, key = 'k'): number {
  let taken = 0
  while (limiter.take(key).allowed) taken++
  return taken
}

function limiterOf(policy: Policy, options: object = {}): { limiter: Limiter; clock: ManualClock } {
  const clock = manualClock(START_MS)
  return { limiter: createLimiter(policy, { clock, maxKeys: 100, ...options }), clock }
}

for (const [name, make] of Object.entries(MAKERS)) {
  test(`${name}: jobs that are settled late return nothing of what has refilled, however many`, async () => {
    for (const [limit, jobs] of [
      [10, 5],
      [100, 50],
    ] as const) {
      const { limiter, clock } = limiterOf(make({ limit, window: '1s' }))
      const under: RunningJob[] = []
      for (let i = 0; i < jobs; i++) {
        under.push(await held(limiter, limit))
        // Two windows: a sliding one forgets then.
        clock.advance(name === 'slidingWindow' ? 2_000 : 1_100)
      }
      let passed = takeAll(limiter)
      for (const job of under) {
        await job.settle(0)
        passed += takeAll(limiter)
      }
      assert.equal(passed, limit)
      limiter.close()
    }
  })

  test(`${name}: a job that is settled at once returns everything, and only once`, async () => {
    const { limiter } = limiterOf(make({ limit: 10, window: '1s' }))
    const job = await held(limiter, 10)
    await Promise.all([job.settle(0), job.settle(0)])
    assert.equal(takeAll(limiter), 10)
    await job.settle(0)
    assert.equal(takeAll(limiter), 0)
  })

  test(`${name}: a job returns to the account that was charged, and where the key takes along what it has spent, to that`, async () => {
    const [own, other] = [make({ limit: 10, window: '1h', name: 'own' }), make({ limit: 10, window: '1h', name: 'other' })]
    let chosen: Policy | undefined
    const { limiter } = limiterOf(own, { policyFor: () => chosen })
    const [early, late] = [await held(limiter, 4), await held(limiter, 6)]
    chosen = other
    await early.settle(0)
    assert.equal(takeAll(limiter), 4)
    await late.settle(0)
    assert.equal(takeAll(limiter), 6)
    chosen = undefined
    assert.equal(takeAll(limiter), 0)
  })

  test(`${name}: a job settled after an update returns nothing, so that up to a limit more never passes`, async () => {
    const { limiter } = limiterOf(make({ limit: 100, window: '1h' }))
    const job = await held(limiter, 100)
    limiter.update(make({ limit: 1, window: '1h' }))
    limiter.update(make({ limit: 100, window: '1h' }))
    const passed = takeAll(limiter)
    await job.settle(0)
    assert.equal(passed + takeAll(limiter), passed)
    assert.ok(passed <= 100)
    const reservation = limiter.reserve('r', 100)
    limiter.update(make({ limit: 50, window: '1h' }))
    assert.equal(reservation.settle(0).remaining, 0)
  })

  test(`${name}: an update of no number leaves a charge as it is`, async () => {
    const { limiter } = limiterOf(make({ limit: 10, window: '1h' }))
    const job = await held(limiter, 10)
    limiter.update(make({ limit: 10, window: '1h', name: 'renamed' }))
    await job.settle(0)
    assert.equal(takeAll(limiter), 10)
  })
}

test('with overrides a job returns to the account that was charged, also when its override is gone', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(fixedWindow({ limit: 10, window: '1h', name: 'own' }), { clock, overrides: true })
  limiter.overrides.set('k', fixedWindow({ limit: 20, window: '1h', name: 'more' }))
  const job = await held(limiter, 20)
  limiter.overrides.delete('k')
  assert.equal(takeAll(limiter), 10)
  await job.settle(0)
  assert.equal(takeAll(limiter), 0)
})

test('above its cost a job charges the account that was charged', async () => {
  const other = fixedWindow({ limit: 10, window: '1h', name: 'other' })
  let chosen: Policy | undefined
  const { limiter } = limiterOf(fixedWindow({ limit: 10, window: '1h', name: 'own' }), { policyFor: () => chosen })
  const job = await held(limiter, 4)
  chosen = other
  await job.settle(7)
  assert.equal(limiter.peek('k').remaining, 3)
  chosen = undefined
  assert.equal(limiter.peek('k').remaining, 3)
})

test('listed keys, shadow denials and keys without room charge nothing, and return nothing', async () => {
  const policy = fixedWindow({ limit: 10, window: '1h' })
  for (const options of [{ allow: ['k'] }, { shadow: true }]) {
    const { limiter } = limiterOf(policy, options)
    limiter.take('k', 10)
    const job = await held(limiter, 10)
    await job.settle(0)
    await job.settle(90)
    assert.equal(limiter.peek('k').wouldDeny, 'shadow' in options ? true : undefined)
    limiter.close()
  }
  const full = makeLimiter(policy, { clock: manualClock(START_MS), maxKeys: 1 }, { newcomers: { limit: 24, windowMs: 3_600_000 } })
  for (let i = 0; i < 12; i++) full.take(`spent ${i}`, 10)
  const job = await held(full, 1, 'new')
  const before = full.peek('new')
  await job.settle(0)
  assert.deepEqual(full.peek('new'), before)
})

test('after the limiter was closed a job is settled without an error', async () => {
  const { limiter } = limiterOf(fixedWindow({ limit: 10, window: '1h' }))
  const job = await held(limiter, 10)
  limiter.close()
  await job.settle(0)
})

for (const algorithm of SETTLED_ALGORITHMS) {
  test(`${algorithm}: in random histories no take passes that would not if only what was settled had been charged`, async () => {
    let returned = 0
    for (const seed of seedsFrom(1, HISTORIES)) {
      const result = await settledInMemory(seed, algorithm)
      assert.equal(result.excess, undefined, `seed ${seed}`)
      returned += result.returned
    }
    assert.ok(returned > 0)
  })
}

for (const fault of ['without a bound', 'to the account of now', 'twice'] as const) {
  test(`the histories find receipts that return ${fault}`, async () => {
    for (const algorithm of SETTLED_ALGORITHMS) {
      const results = await Promise.all(Array.from(seedsFrom(1, 12), (seed) => settledInMemory(seed, algorithm, fault)))
      assert.ok(
        results.some(({ excess }) => excess !== undefined),
        algorithm,
      )
    }
  })
}

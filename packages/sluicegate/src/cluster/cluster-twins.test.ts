import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ALGORITHM_NAMES,
  type Answer,
  mismatchIn,
  oracleAnswers,
  type Sequence,
  seedsOf,
  sequenceOf,
  shortOrLong,
} from 'sluicegate-testkit'
import { channelPair, fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { givenUpWaits } from 'sluicegate-testkit/suites/given-up-waits.js'
import { feltChanges } from 'sluicegate-testkit/suites/layer-suite.js'
import { FleetReplay, namedPolicy } from 'sluicegate-testkit/twins/fleet-replay.js'
import { createLimiter } from '../create-limiter.js'
import { concurrency, fixedWindow, gcra, type ManualClock, type SharedLimiter, tokenBucket } from '../index.js'
import { createQueue } from '../queue/create-queue.js'
import type { RunningJob } from '../queue/queue-options.js'
import { manualClock } from '../time/clock.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

const SEQUENCES = shortOrLong(5, 20)
const TIMEOUT_MS = 60_000

for (const algorithm of ALGORITHM_NAMES) {
  test(`${algorithm}: over a channel every verb answers what the oracle says, updates included, over ${SEQUENCES} random sequences`, async () => {
    for (const seed of seedsOf(algorithm, SEQUENCES)) {
      const sequence = sequenceOf(seed, algorithm)
      const mismatch = mismatchIn(sequence, oracleAnswers(sequence), await answersOverChannel(sequence))
      assert.equal(mismatch, undefined, `seed ${seed}: ${JSON.stringify(mismatch)}`)
    }
  })
}

async function answersOverChannel({ policy, steps }: Sequence): Promise<(Answer | undefined)[]> {
  const clock = manualClock(steps[0]?.atMs)
  const { worker, parent } = channelPair()
  const served = serveLimiter(namedPolicy(policy), { mode: 'exact', maxKeys: 64, clock })
  served.serve(worker)
  const limiter = createLimiter(namedPolicy(policy), {
    store: primary({ process: parent }),
    clock,
    timeout: TIMEOUT_MS,
    outage: 'closed',
  })
  const replay = new FleetReplay({ limiter, set: (ms) => clock.set(ms) })
  const answers: (Answer | undefined)[] = []
  for (const step of steps) {
    answers.push(await replay.answer(step))
    // It is sent without waiting for an answer.
    if (step.verb === 'update') await turns()
  }
  replay.close()
  served.close()
  return answers
}

feltChanges('cluster', (policy) => {
  const { served, limiter } = fleet(policy, { worker: { timeout: 60_000, outage: 'closed' } })
  return {
    limiter: limiter as never,
    settle: () => turns(80),
    stop: () => {
      limiter.close()
      served.close()
    },
  }
})

for (const make of [tokenBucket, fixedWindow]) {
  test(`${make.name}: what two workers have booked is charged once after an update, and passes in the order of before`, async () => {
    const policyOf = (limit: number) => make({ limit, window: '10d', name: 'p' })
    const { served, limiter } = fleet(policyOf(10), { worker: { timeout: 60_000, outage: 'closed' } })
    const pair = channelPair()
    served.serve(pair.worker)
    using other = createLimiter(policyOf(10), { store: primary({ process: pair.parent }), timeout: 60_000, outage: 'closed' })
    await limiter.take('k', 10)
    const passed: string[] = []
    const wait = async (who: string, by: SharedLimiter, cost: number): Promise<void> => {
      if ((await by.wait('k', { cost })).allowed) passed.push(who)
    }
    for (const [who, by, cost] of [
      ['a', limiter, 2],
      ['b', other, 3],
      ['c', limiter, 1],
    ] as const) {
      wait(who, by, cost).catch(() => undefined)
      await turns(40)
    }
    served.update(policyOf(24))
    await turns(200)
    assert.deepEqual(passed.sort(), ['a', 'b', 'c'])
    assert.equal(served.limiter.peek('k').remaining, 8)
    limiter.close()
    served.close()
  })
}

givenUpWaits(
  'cluster',
  (policy) => {
    const { clock, served, limiter } = fleet(policy, { worker: { timeout: 60_000, outage: 'closed' } })
    return {
      limiter,
      witness: served.limiter,
      isApart: true,
      settle: () => turns(40),
      advance: async (ms) => {
        clock.advance(ms)
        await turns(20)
      },
      stop: () => {
        limiter.close()
        served.close()
      },
    }
  },
  300,
)

// Jobs of a worker that are settled late: the primary gives back what is still owed.

async function held(limiter: SharedLimiter, cost: number): Promise<RunningJob> {
  return new Promise((started, refused) => {
    limiter.run('k', (job) => new Promise<void>(() => started(job)), { cost }).catch(refused)
  })
}

/** In milliseconds, so that a leased worker can refill. */
async function takeAll(limiter: SharedLimiter, clock: ManualClock): Promise<number> {
  let taken = 0
  for (let denied = 0; denied < 3; ) {
    const { allowed } = await limiter.take('k')
    if (allowed) taken++
    else denied++
    if (!allowed) clock.advance(1)
  }
  return taken
}

for (const mode of ['exact', 'leased'] as const) {
  test(`${mode}: jobs of a bucket that are settled late return nothing of what has refilled`, async () => {
    const { limiter, clock } = fleet(tokenBucket({ limit: 1_000, window: '1s', burst: 200 }), { serve: { mode } })
    const under: RunningJob[] = []
    for (let i = 0; i < 5; i++) {
      under.push(await held(limiter, 80))
      clock.advance(250)
      await turns(12)
    }
    const sinceMs = clock.nowMs()
    let passed = await takeAll(limiter, clock)
    for (const job of under) {
      await job.settle(0)
      await turns(12)
      passed += await takeAll(limiter, clock)
    }
    const most = 200 + clock.nowMs() - sinceMs
    assert.ok(passed <= most, `${passed} of ${most}`)
  })

  test(`${mode}: what a job does not use comes back at once, once, and not after an update`, async () => {
    const policyOf = (limit: number) => fixedWindow({ limit, window: '1d', name: 'quota' })
    const { limiter, served, clock } = fleet(policyOf(100), { serve: { mode } })
    const job = await held(limiter, 90)
    await Promise.all([job.settle(0), job.settle(0)])
    await turns(12)
    assert.ok((await takeAll(limiter, clock)) >= 90)
    // A leased worker holds a part of the limit: what it would wait for is the next window.
    if (mode === 'leased') return
    await limiter.reset('k')
    const late = await held(limiter, 100)
    served.update(policyOf(1))
    served.update(policyOf(100))
    await turns(12)
    await takeAll(limiter, clock)
    await late.settle(0)
    await turns(12)
    assert.equal(await takeAll(limiter, clock), 0)
  })
}

test('jobs of a worker start as the primary admits them', async () => {
  const { clock, limiter } = fleet(gcra({ limit: 1, window: '1s', burst: 1 }))
  const started: number[] = []
  const runs = [1, 2, 3].map((job) => limiter.run('key', () => started.push(job)))
  await turns(12)
  assert.deepEqual(started, [1])
  for (let i = 0; i < 2; i++) {
    clock.advance(1000)
    await turns(12)
  }
  await Promise.all(runs)
  assert.deepEqual(started, [1, 2, 3])
})

test('a place of the primary is held while a job runs, and is free for the next job after it', async () => {
  const { limiter, served } = fleet(concurrency({ limit: 1, ttl: '1h' }))
  const queue = createQueue(limiter, { maxWaiting: 1 })
  let end: () => void = () => undefined
  const first = queue.run('key', () => new Promise<void>((resolve) => (end = resolve)))
  await turns(12)
  assert.equal(served.limiter.peek('key').remaining, 0)
  const second = queue.run('key', () => 'second')
  await turns(12)
  await assert.rejects(
    queue.run('key', () => 'third'),
    { code: 'QUEUE_FULL' },
  )
  end()
  await first
  assert.equal(await second, 'second')
  await turns(12)
  assert.equal(served.limiter.peek('key').remaining, 1)
})

test('jobs that are aborted or cleared leave the budget of the primary as it was', async () => {
  const { limiter, served } = fleet(tokenBucket({ limit: 1, window: '1h' }))
  await limiter.run('key', () => undefined)
  const controller = new AbortController()
  const aborted = assert.rejects(
    limiter.run('key', () => undefined, { signal: controller.signal }),
    /enough/,
  )
  const cleared = assert.rejects(
    limiter.run('key', () => undefined),
    { code: 'CLEARED' },
  )
  await turns(12)
  controller.abort(new Error('enough'))
  limiter.queue.clear()
  await Promise.all([aborted, cleared])
  await turns(12)
  assert.equal(served.limiter.peek('key').retryAfterMs, 3_600_000)
})

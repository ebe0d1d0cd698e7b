import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { fixedWindow, type ManualClock, type SharedLimiter, tokenBucket } from '../index.js'
import type { RunningJob } from '../queue/queue-options.js'

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

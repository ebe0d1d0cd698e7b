import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { longTest, type SinglePolicySpec, shortOrLong } from 'sluicegate-testkit'
import { assertWithin, FLEETS, leasedFleet, leasedJobs } from 'sluicegate-testkit/leases/leased-fleet.js'
import type { LeasedJob } from 'sluicegate-testkit/leases/leased-process.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'

// Real processes that share a key. A leased token was spent when the machine's monotonic clock said so as it was decided. A take of the store
// was decided between its question and its answer: an answer that comes late moves it into another interval only in the eyes of its caller. So
// an interval counts what lies within it for sure, which on a machine of any speed is nothing beyond the budget.

const redis = await ownRedis()
after(() => redis.stop())

function jobs(count: number, spec: SinglePolicySpec, more: Partial<LeasedJob> = {}): LeasedJob[] {
  return leasedJobs(redis.server.url, count, spec, more)
}

for (const [count, spec] of FLEETS) {
  // A short run has a rate; twins.test.ts has all.
  const inTime = spec.algorithm === 'token-bucket' ? test : longTest
  inTime(
    `I1: ${count} processes whose clocks differ by minutes never let more pass than a ${spec.algorithm} of ${spec.limit}`,
    async (t) => {
      await redis.send('FLUSHALL')
      const workers = await leasedFleet(jobs(count, spec))
      assertWithin(spec, await Promise.all(workers.map(({ report }) => report)), t)
    },
  )
}

longTest(
  'a process that is stopped for longer than a lease with tokens in hand spends what it has left, and the budget holds',
  async (t) => {
    await redis.send('FLUSHALL')
    // A lease is good for 400 ms, for which 40 tokens of the burst are not lent.
    const spec = { algorithm: 'token-bucket', limit: 100, windowMs: 1000, burst: 300 } as const
    const all = { horizonMs: 200, forMs: shortOrLong(3500, 4000), quietUntilMs: 3200 }
    const [holder, other] = await leasedFleet([...jobs(1, spec, { ...all, first: 150 }), ...jobs(1, spec, all)])
    await new Promise((resolve) => setTimeout(resolve, 700))
    holder?.child.kill('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 2000))
    holder?.child.kill('SIGCONT')
    const reports = await Promise.all([holder?.report, other?.report])
    assert.ok(reports.every((report) => report !== undefined))
    assertWithin(spec, reports, t)
  },
)

longTest('a process that is stopped again and again while it spends never goes over the budget with the others', async (t) => {
  await redis.send('FLUSHALL')
  const spec = { algorithm: 'token-bucket', limit: 200, windowMs: 1000, burst: 200 } as const
  const paced = jobs(2, spec, { perSecond: 150, forMs: 3000, horizonMs: 200 })
  const [stopped, ...others] = await leasedFleet([...paced, ...jobs(1, spec, { forMs: 3000, horizonMs: 200 })])
  for (const forMs of [150, 300, 600]) {
    await new Promise((resolve) => setTimeout(resolve, 300))
    stopped?.child.kill('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, forMs))
    stopped?.child.kill('SIGCONT')
  }
  const reports = await Promise.all([stopped, ...others].map((worker) => worker?.report))
  assert.ok(reports.every((report) => report !== undefined))
  assertWithin(spec, reports, t)
})

longTest('I9: of a process that is killed only what it held is lost: the others go on within the budget', async (t) => {
  await redis.send('FLUSHALL')
  const spec = { algorithm: 'token-bucket', limit: 500, windowMs: 1000, burst: 200 } as const
  const [killed, ...others] = await leasedFleet(jobs(shortOrLong(2, 3), spec, { forMs: shortOrLong(1300, 2500) }))
  await new Promise((resolve) => setTimeout(resolve, 500))
  killed?.child.kill('SIGKILL')
  assert.equal(await killed?.report, undefined)
  const spent = assertWithin(spec, await Promise.all(others.map(({ report }) => report)), t)
  const times = spent.map(({ toUs }) => toUs)
  assert.ok(Math.max(...times) - Math.min(...times) > 600_000, 'those who are left are served after that')
})

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { PostgresProcess, type SinglePolicySpec } from 'sluicegate-testkit'
import { assertWithin, FLEETS, leasedFleet, leasedJobs } from 'sluicegate-testkit/leases/leased-fleet.js'
import type { LeasedJob } from 'sluicegate-testkit/leases/leased-process.js'
import { postgresTable } from './table-name.js'

// Real processes that share a key in PostgreSQL, judged as those over Redis are (redis/leased-fleet.test.ts): an interval counts what was surely
// spent within it.

let server: PostgresProcess
before(async () => {
  server = await PostgresProcess.start()
  await server.ask(postgresTable())
})
after(() => server.stop())

async function jobs(count: number, spec: SinglePolicySpec, more: Partial<LeasedJob> = {}): Promise<LeasedJob[]> {
  await server.ask('TRUNCATE sluicegate')
  return leasedJobs(server.url, count, spec, more)
}

for (const [count, spec] of FLEETS) {
  test(`I1 over PostgreSQL: ${count} processes whose clocks differ by minutes never let more pass than a ${spec.algorithm} of ${spec.limit}`, async (t) => {
    const workers = await leasedFleet(await jobs(count, spec))
    assertWithin(spec, await Promise.all(workers.map(({ report }) => report)), t)
  })
}

test('I9 over PostgreSQL: of a process that is stopped, and of one that is killed, nothing goes over the budget', async (t) => {
  const spec = { algorithm: 'token-bucket', limit: 500, windowMs: 1000, burst: 200 } as const
  const [killed, stopped, ...others] = await leasedFleet(await jobs(4, spec, { forMs: 2500 }))
  await new Promise((resolve) => setTimeout(resolve, 500))
  killed?.child.kill('SIGKILL')
  stopped?.child.kill('SIGSTOP')
  await new Promise((resolve) => setTimeout(resolve, 700))
  stopped?.child.kill('SIGCONT')
  assert.equal(await killed?.report, undefined)
  const spent = assertWithin(spec, await Promise.all([stopped, ...others].map((worker) => worker?.report)), t)
  const times = spent.map(({ toUs }) => toUs)
  assert.ok(Math.max(...times) - Math.min(...times) > 600_000, 'those that are left are served after that')
})

/** What refills meanwhile: without the burst of the beginning, and what leases still hold at the end. */
const FROM_MS = 1000
const UNTIL_MS = 3500
const LEAST_SHARE = 0.97
const MOST_RUNS = 4

for (const [cost, spec] of [
  [3, { algorithm: 'token-bucket', limit: 900, windowMs: 1000, burst: 300 }],
  [7, { algorithm: 'gcra', limit: 900, windowMs: 1000, burst: 300 }],
] as const) {
  test(`over PostgreSQL three processes that take ${cost} tokens at a time use 97 % of what refills of a ${spec.algorithm}`, async (t) => {
    // Again where the machine had too little time for the processes to ask: the bound holds each time.
    let best = 0
    for (let run = 1; run <= MOST_RUNS && best < LEAST_SHARE; run++) {
      const workers = await leasedFleet(await jobs(3, spec, { forMs: 4000, cost }))
      const spent = assertWithin(spec, await Promise.all(workers.map(({ report }) => report)), t)
      const fromUs = Math.min(...spent.map(({ toUs }) => toUs))
      const within = spent.filter(({ toUs }) => toUs >= fromUs + FROM_MS * 1000 && toUs < fromUs + UNTIL_MS * 1000).length
      const share = within / ((spec.limit * (UNTIL_MS - FROM_MS)) / 1000)
      t.diagnostic(`${(share * 100).toFixed(1)} %`)
      best = Math.max(best, share)
    }
    assert.ok(best >= LEAST_SHARE, `${(best * 100).toFixed(1)} %`)
  })
}

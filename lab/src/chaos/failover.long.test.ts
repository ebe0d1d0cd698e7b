import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FailoverReport } from './failover.js'
import { clusterFailovers, sentinelFailovers } from './redis-failovers.js'
import { resize } from './resize.js'
import { sharedOutage } from './shared-outage.js'

/** Far above what a call may take: this machine may have other things to do. */
const MOST_MS = 10_000

test('primaries of a 3+3 cluster are killed under load: no error reaches a caller, and what is admitted stays within the bound', async () => {
  checkReport(await clusterFailovers(3), 3)
})

test('primaries that sentinels watch are killed under load: no error reaches a caller, and what is admitted stays within the bound', async () => {
  checkReport(await sentinelFailovers(2), 2)
})

function checkReport({ recoveryMs, allowedOver, allowedShare, subjects }: FailoverReport, count: number): void {
  assert.equal(recoveryMs.length, count)
  assert.deepEqual(
    subjects.map(({ name }) => name),
    ['node-redis, exact', 'node-redis, leased', 'ioredis, exact', 'ioredis, leased'],
  )
  for (const { name, takes, admitted, errors, slowestMs, outageAdmitted, over, overWithShare, recoveryMs: own } of subjects) {
    assert.equal(errors, 0, name)
    assert.ok(admitted > 0 && takes > 1.05 * admitted, `${name}: who asks for no more than the rate sees nothing of the bound`)
    assert.ok(slowestMs < MOST_MS, `${name}: an answer after ${slowestMs} ms`)
    assert.ok(over <= allowedOver, `${name}: ${over} over, of ${allowedOver}`)
    assert.ok(overWithShare <= allowedOver + allowedShare, `${name}: ${overWithShare} over, ${outageAdmitted} without the store`)
    assert.ok(own.length === count && own.every((ms, i) => ms > 0 && ms <= (recoveryMs[i] as number)), `${name}: ${own}`)
  }
}

// `npm run chaos` moves 5,000.
test('a fourth primary joins under load, gets 1,000 slots, gives them back and leaves: no error, and every take is charged once', async () => {
  const { clients } = await resize(1_000)
  assert.equal(clients.length, 2)
  for (const { name, takes, errors, wrongKeys } of clients) {
    assert.deepEqual({ name, errors, wrongKeys }, { name, errors: 0, wrongKeys: 0 })
    assert.ok(takes > 1000)
  }
})

test('processes whose store is killed admit together no more than one policy, and a tenth for one that never saw it', async (t) => {
  const policy = { limit: 120, windowMs: 1000, burst: 120 }
  const report = await sharedOutage(12, 10, policy)
  t.diagnostic(JSON.stringify(report))
  assert.equal(report.errors, 0)
  assert.ok(report.over <= report.allowedOver, `${report.over} over`)
  assert.ok(report.admitted > report.budget * 0.6, 'the budget is used')
  assert.ok(report.leastNodes >= report.processes, 'a store that began empty is not believed')
})

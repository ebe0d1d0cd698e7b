import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clusterFailovers } from './cluster-failover.js'
import type { FailoverReport } from './failover.js'
import { sentinelFailovers } from './sentinel-failover.js'

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

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FailoverReport, failovers } from './failover.js'
import { sentinelFailover } from './sentinel.js'

/** Far above what a call may take: this machine may have other things to do. */
const MOST_MS = 10_000

test('primaries of a 3+3 cluster are killed under load: no error reaches a caller, and what is admitted stays within the bound', async () => {
  checkReport(await failovers(3), 3)
})

test('a primary that sentinels watch is killed under load: no error reaches a caller, and what is admitted stays within the bound', async () => {
  checkReport(await sentinelFailover(), 1)
})

function checkReport({ recoveryMs, allowedOver, allowedShare, subjects }: FailoverReport, count: number): void {
  assert.equal(recoveryMs.length, count)
  assert.equal(subjects.length, 4)
  for (const { name, takes, admitted, errors, slowestMs, outageAdmitted, over, overWithShare } of subjects) {
    assert.equal(errors, 0, name)
    assert.ok(admitted > 0 && takes > 2 * admitted, `${name}: who asks for no more than the rate sees nothing of the bound`)
    assert.ok(slowestMs < MOST_MS, `${name}: an answer after ${slowestMs} ms`)
    assert.ok(over <= allowedOver, `${name}: ${over} over, of ${allowedOver}`)
    assert.ok(overWithShare <= allowedOver + allowedShare, `${name}: ${overWithShare} over, ${outageAdmitted} without the store`)
  }
}

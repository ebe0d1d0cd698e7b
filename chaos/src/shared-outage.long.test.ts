import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sharedOutage } from './shared-outage.js'

test('processes whose store is killed admit together no more than one policy, and a tenth for one that never saw it', async (t) => {
  const policy = { limit: 120, windowMs: 1000, burst: 120 }
  const report = await sharedOutage(12, 10, policy)
  t.diagnostic(JSON.stringify(report))
  assert.equal(report.errors, 0)
  assert.ok(report.over <= report.allowedOver, `${report.over} over`)
  assert.ok(report.admitted > report.budget * 0.6, 'the budget is used')
  assert.ok(report.leastNodes >= report.processes, 'a store that began empty is not believed')
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sideTimes } from './side-runs.js'

test('a machine that is twice as slow for most of the time changes what is added only in proportion', () => {
  const steady = sideTimes({ unlimited: [10, 10, 10, 10, 10], sluicegate: [12, 12, 12, 12, 12], rival: [16, 16, 16, 16, 16] })
  const slowed = sideTimes({ unlimited: [10, 20, 20, 20, 10], sluicegate: [12, 24, 24, 24, 12], rival: [16, 32, 32, 32, 16] })
  assert.deepEqual(steady, { unlimited: 10, sluicegate: 12, rival: 16 })
  assert.deepEqual(slowed, { unlimited: 20, sluicegate: 24, rival: 32 })
})

test('a block that something disturbed does not count', () => {
  const times = sideTimes({ unlimited: [10, 10, 90, 10, 10], sluicegate: [12, 12, 12, 80, 12], rival: [16, 16, 16, 16, 16] })
  assert.deepEqual(times, { unlimited: 10, sluicegate: 12, rival: 16 })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grantOf } from 'sluicegate-testkit/leases/lease-records.js'
import { Batch } from './held-tokens.js'

const MS = 1000

test('tokens may be spent until a lease after the question, a thousandth less for the pace of clocks', () => {
  const batch = new Batch(grantOf({ tokens: 3, endUs: 100 * MS }), 0)
  assert.equal(batch.leftAt(10 * MS), 3)
  assert.equal(batch.untilUs, 99.9 * MS)
  assert.equal(batch.leftAt(99.9 * MS - 1), 3)
  assert.equal(batch.leftAt(99.9 * MS), 0)
  assert.equal(batch.left, 0)
})

test('what comes so late that it has ended is never spent', () => {
  const batch = new Batch(grantOf({ tokens: 1, endUs: 100 * MS }), 0)
  for (let us = 120 * MS; us < 400 * MS; us += 100) assert.equal(batch.leftAt(us), 0)
  assert.equal(batch.left, 0)
})

test('tokens end one after another', () => {
  const batch = new Batch({ ...grantOf({ tokens: 3 }), endUs: (token) => (110 + 10 * token) * MS }, 0)
  assert.deepEqual(
    [100, 110, 120, 130].map((ms) => batch.leftAt(ms * MS)),
    [3, 2, 1, 0],
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grantOf } from 'sluicegate-testkit/leases/lease-records.js'
import { Batch } from './held-tokens.js'

const MS = 1000

test('ready tokens may be spent from the arrival of the answer until a lease after the question, a thousandth less for the pace of clocks', () => {
  const batch = new Batch(grantOf({ ready: 3, endUs: 100 * MS }), 0, 10 * MS)
  assert.equal(batch.readyAt(10 * MS), 3)
  assert.equal(batch.untilUs, 99.9 * MS)
  assert.equal(batch.readyAt(99.9 * MS - 1), 3)
  assert.equal(batch.readyAt(99.9 * MS), 0)
  assert.equal(batch.left, 0)
})

test('a later token begins as it conforms, counted from the arrival, and ends a lease later, counted from the question', () => {
  const batch = new Batch(grantOf({ ready: 1, later: [20 * MS, 40 * MS], endUs: 100 * MS }), 0, 5 * MS)
  assert.deepEqual(
    [batch.readyFrom(1), batch.readyFrom(2), batch.readyFrom(3), batch.readyFrom(4)],
    [5 * MS, 25_020, 45_040, Number.POSITIVE_INFINITY],
  )
  assert.equal(batch.readyAt(25_019), 1)
  assert.equal(batch.readyAt(25_020), 2)
  batch.drop(2)
  assert.equal(batch.readyAt(45_039), 0)
  assert.equal(batch.readyAt(45_040), 1)
  assert.equal(batch.untilUs, 139_860)
})

test('what comes so late that it ends before it begins is never spent', () => {
  const batch = new Batch(grantOf({ later: [40 * MS], endUs: 100 * MS }), 0, 120 * MS)
  for (let us = 120 * MS; us < 400 * MS; us += 100) assert.equal(batch.readyAt(us), 0)
  assert.equal(batch.left, 0)
})

test('tokens end one after another', () => {
  const batch = new Batch(grantOf({ later: [10 * MS, 20 * MS, 30 * MS], endUs: 100 * MS }), 0, 0)
  assert.deepEqual(
    [100, 110, 120, 130].map((ms) => batch.readyAt(ms * MS)),
    [3, 2, 1, 0],
  )
})

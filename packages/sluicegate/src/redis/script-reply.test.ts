import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreError } from '../errors.js'
import { answerIn, leaseIn } from '../shared/steps/script-call.js'

const TIMES = { blockedUs: 0, untilFreeUs: 0, untilNewUs: 0, waitUs: 0 }

test('one number is the debt after a take that passed, below 0 that of a key that would not bear it', () => {
  const all = Number.MAX_SAFE_INTEGER - 1
  for (const [reply, standing] of [
    [7, { done: true, debt: 7 }],
    ['7', { done: true, debt: 7 }],
    [-1, { done: false, debt: 0 }],
    [-8, { done: false, debt: 7 }],
    [-1 - all, { done: false, debt: all }],
  ] as const) {
    assert.deepEqual(answerIn(reply, 1), { states: [{ ...TIMES, ...standing }] })
  }
})

test('three are that, and two times', () => {
  assert.deepEqual(answerIn([-4, 20, 30], 1), { states: [{ ...TIMES, done: false, debt: 3, untilFreeUs: 20, untilNewUs: 30 }] })
})

test('seven are the whole answer of one policy, thirteen of two', () => {
  const standing = { done: true, debt: 1, blockedUs: 2, untilFreeUs: 3, untilNewUs: 4, waitUs: 5 }
  assert.deepEqual(answerIn([9, 1, 1, 2, 3, 4, 5], 1), { nowUs: 9, states: [standing] })
  const other = { ...standing, done: false }
  assert.deepEqual(answerIn([9, 1, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5], 2), { nowUs: 9, states: [standing, other] })
})

test('whatever else a server says is an outage, and no decision', () => {
  const isOutage = (error: unknown): boolean => error instanceof StoreError && error.code === 'OUTAGE'
  for (const reply of [null, undefined, '', 'OK', {}, true, 1.5, Number.NaN, 2 ** 53, [], [1], [null, 1, 2], [1, 2, 3, 4, 5, 6]]) {
    assert.throws(() => answerIn(reply, 1), isOutage, JSON.stringify(reply))
    assert.throws(() => leaseIn(reply), isOutage, JSON.stringify(reply))
  }
  for (const reply of [7, [7, 1, 1], [9, 1, 1, 2, 3, 4, 5]]) assert.throws(() => answerIn(reply, 2), isOutage, JSON.stringify(reply))
})

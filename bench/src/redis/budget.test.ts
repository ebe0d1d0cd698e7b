import assert from 'node:assert/strict'
import { test } from 'node:test'
import { budgetUse } from './budget.js'

test('the budget is that of all keys', () => {
  assert.deepEqual(budgetUse({ admitted: [2_000, 1_500, 500, 0], elapsedMs: 2_000 }, 100), {
    admitted: 4_000,
    budget: 8_000,
    leasedBudget: 7_800,
    overGrant: 0,
  })
})

test('what one key got too much is not made good by what another left', () => {
  assert.equal(budgetUse({ admitted: [2_003, 0], elapsedMs: 2_000 }, 100).overGrant, 3)
})

test('a token that has not come back in full is over', () => {
  assert.equal(budgetUse({ admitted: [1_001], elapsedMs: 1.9 }, 100).overGrant, 1)
  assert.equal(budgetUse({ admitted: [1_001], elapsedMs: 2 }, 100).overGrant, 0)
})

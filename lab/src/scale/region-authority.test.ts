import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RegionAuthority, SOUND_AUTHORITY } from './region-authority.js'
import { type RegionBudget, sharesByDemand } from './region-budget.js'

const BUDGET: RegionBudget = { limit: 100, windowMs: 1_000, burst: 100, regions: 2, floor: 10, termMs: 10_000, leaseMs: 100 }
const TERM_US = BUDGET.termMs * 1_000

test('rates follow demand: floors first, then in proportion, and what no demand needs equally', () => {
  assert.deepEqual(sharesByDemand(BUDGET, [1_000, 0]), [90, 10])
  assert.deepEqual(sharesByDemand(BUDGET, [210, 110]), [63, 36])
  assert.deepEqual(sharesByDemand(BUDGET, [30, 10]), [60, 40])
})

test('a region gets the rate of another once that acknowledges a lower one', () => {
  const authority = new RegionAuthority(BUDGET, SOUND_AUTHORITY, 0)
  assert.deepEqual(authority.renew({ region: 0, demand: 1_000, applied: undefined }, 0), { id: 1, limit: 90 })
  assert.equal(authority.renew({ region: 1, demand: 1_000, applied: undefined }, 1)?.limit, 10)
  // The lower rate is granted, but nothing shows that it is in force.
  assert.deepEqual(authority.renew({ region: 0, demand: 0, applied: 1 }, 2), { id: 3, limit: 10 })
  assert.equal(authority.renew({ region: 1, demand: 1_000, applied: 2 }, 3)?.limit, 10)
  authority.renew({ region: 0, demand: 0, applied: 3 }, 4)
  assert.equal(authority.renew({ region: 1, demand: 1_000, applied: 4 }, 5)?.limit, 90)
})

test('the rate of a region that is cut off is free after its term, and its demand forgotten', () => {
  const authority = new RegionAuthority(BUDGET, SOUND_AUTHORITY, 0)
  authority.renew({ region: 0, demand: 1_000, applied: undefined }, 0)
  assert.equal(authority.renew({ region: 1, demand: 1_000, applied: undefined }, TERM_US - 1)?.limit, 10)
  assert.equal(authority.renew({ region: 1, demand: 1_000, applied: undefined }, TERM_US)?.limit, 90)
})

test('a restarted authority grants nothing until all earlier terms are over', () => {
  const authority = new RegionAuthority(BUDGET, SOUND_AUTHORITY, 0)
  authority.renew({ region: 0, demand: 1_000, applied: undefined }, 0)
  authority.restart(1_000)
  assert.equal(authority.renew({ region: 1, demand: 1_000, applied: undefined }, 1_000 + TERM_US - 1), undefined)
  assert.equal(authority.renew({ region: 1, demand: 1_000, applied: undefined }, 1_000 + TERM_US)?.limit, 90)
})

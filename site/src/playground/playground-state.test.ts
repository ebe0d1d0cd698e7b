import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MOST_ARRIVALS } from './arrivals.js'
import { EXAMPLES } from './examples.js'
import { DEFAULT_STATE, queryOf, stateOf } from './playground-state.js'

test('an address leads back to what was shown', () => {
  for (const { state } of EXAMPLES) assert.equal(queryOf(stateOf(queryOf(state))), queryOf(state))
  const clicked = { ...DEFAULT_STATE, demand: { ...DEFAULT_STATE.demand, source: 'clicks' as const, clicks: [1, 250, 251] } }
  assert.deepEqual(stateOf(queryOf(clicked)).demand.clicks, [1, 250, 251])
})

test('an address can be read', () => {
  const query = queryOf(DEFAULT_STATE)
  assert.equal(query, 'policy=token-bucket,10,10s,10&demand=poisson&rate=2&seed=1&seconds=60')
})

test('an address without numbers, with a script, or with a flood of clicks does no harm', () => {
  for (const policy of ['token-bucket,10,10s,NaN', 'gcra,NaN,1s', 'gcra,10,<script>', 'gcra,10,1s,', '<script>,1,1s']) {
    assert.deepEqual(stateOf(new URLSearchParams({ policy }).toString()).first, DEFAULT_STATE.first, policy)
  }
  const flood = Array.from({ length: MOST_ARRIVALS + 5 }, (_, i) => i + 1).join('-')
  assert.equal(stateOf(`demand=clicks&clicks=${flood}`).demand.clicks.length, MOST_ARRIVALS)
})

test('what an address says wrong is as at first', () => {
  const query = 'policy=leaky,10,10s&beside=gcra,0,1s&demand=flood&rate=-1&seconds=1e9&clicks=a-5'
  const { first, second, demand } = stateOf(query)
  assert.deepEqual(first, DEFAULT_STATE.first)
  assert.equal(second, undefined)
  assert.deepEqual({ ...demand, clicks: [] }, DEFAULT_STATE.demand)
})

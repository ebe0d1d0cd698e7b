import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowedOver } from './failover.js'
import { boundOf, MIXES } from './mix.js'

test('versions pass the largest burst and the highest rate together, wherever each of them comes from', () => {
  const versions = [
    { limit: 200, burst: 210 },
    { limit: 180, burst: 200 },
    { limit: 220, burst: 100 },
  ]
  assert.deepEqual(boundOf(versions), { limit: 220, windowMs: 5000, burst: 210 })
})

test('each failover may add one burst and what flows in during the replication lag and the node timeout', () => {
  const bound = { limit: 200, windowMs: 5000, burst: 210 }
  // 40 a second: 44 in 1.1 s, and 8 in two time-outs of 100 ms.
  assert.equal(allowedOver(bound, 1), 210 + 44 + 8)
  assert.equal(allowedOver(bound, 3), 3 * (210 + 44) + 8)
})

test('there are mixes of bursts, limits, modes and horizons, and one that changes while a primary is gone', () => {
  const all = MIXES.flatMap(({ versions }) => versions)
  assert.deepEqual([...new Set(all.map(({ burst }) => burst))].sort(), [200, 210])
  assert.deepEqual([...new Set(all.map(({ limit }) => limit))].sort(), [180, 200])
  assert.ok(all.some(({ options }) => options?.mode === 'exact') && all.some(({ options }) => options?.lease !== undefined))
  assert.equal(MIXES.filter(({ isRolling }) => isRolling).length, 1)
})

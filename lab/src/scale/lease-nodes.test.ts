import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokenBucket } from 'sluicegate'
import { everyNth } from 'sluicegate-testkit'
import { callsPerSecond, type KeyCost } from './key-cost.js'
import { simulateLeases } from './lease-nodes.js'
import { simulateLimiters } from './limiter-nodes.js'
import type { NodeGroup } from './node-group.js'

const GROUP: NodeGroup = {
  policy: tokenBucket({ limit: 20, window: '1s' }),
  nodes: 4,
  keys: 8,
  perSecond: 400,
  horizonMs: 50,
  roundTripUs: () => 1_000,
  serviceUs: 10,
  seconds: 6,
  warmUpSeconds: 2,
  seed: 42,
}
const BUSY_KEY: NodeGroup = {
  ...GROUP,
  policy: tokenBucket({ limit: 1_000, window: '1s' }),
  nodes: 16,
  keys: 1,
  perSecond: 2_000,
  seconds: 9,
}

for (const [i, [name, group]] of (
  [
    ['eight keys on four nodes', GROUP],
    ['a busy key on sixteen', BUSY_KEY],
  ] as const
).entries()) {
  everyNth(i, 2)(`the coarse simulation agrees with the library's limiters: ${name}`, async () => {
    const exact = await simulateLimiters(group)
    const coarse = simulateLeases(group)
    assert.ok(Math.abs(coarse.callsPerRequest - exact.callsPerRequest) < 0.05 * exact.callsPerRequest, JSON.stringify({ exact, coarse }))
    assert.ok(Math.abs(coarse.budgetUse - exact.budgetUse) < 0.04 * exact.budgetUse, JSON.stringify({ exact, coarse }))
    // No key is over its policy in any interval, but for the rounding of doubles.
    assert.ok(Math.max(exact.over, coarse.over) < 1e-6)
  })
}

test('without leases every request is a call, and the limit is used whole', async () => {
  const { callsPerRequest, budgetUse, over } = await simulateLimiters({ ...GROUP, horizonMs: 0 })
  assert.equal(Math.round(callsPerRequest * 100), 100)
  assert.ok(budgetUse > 0.99 && over < 1e-6)
})

test('nodes decide without the store while it has more calls than it can answer', async () => {
  const { withoutStore } = await simulateLimiters({ ...GROUP, horizonMs: 0, serviceUs: 5_000 })
  assert.ok(withoutStore > 0)
})

test('the cost of a key is that of the table, and lies between its values', () => {
  const costOf = (requestsPerLease: number, demand: number, share: number): KeyCost => ({
    requestsPerLease,
    demand,
    callsPerRequest: share,
    served: 1,
  })
  const costs = [costOf(1, 1, 0.8), costOf(1, 2, 0.6), costOf(2, 1, 0.4), costOf(2, 2, 0.2)]
  const callsOf = (perSecond: number, limitPerSecond: number): number =>
    callsPerSecond(costs, { perSecond, nodes: 1, limitPerSecond, leaseMs: 100 }) / perSecond
  assert.equal(callsOf(10, 10), 0.8)
  assert.equal(callsOf(20, 10), 0.2)
  const between = callsOf(10 * Math.SQRT2, 10 * Math.SQRT2)
  assert.ok(Math.abs(between - 0.6) < 1e-9, String(between))
  // Less than a token in a lease is not leased.
  assert.equal(callsOf(20, 9), 1)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { LearnedCost } from './learned-cost.js'

// Costs of one kind, costs that come in falling or rising order, and the smallest beside the largest.
for (const [name, costOf] of Object.entries({
  'of one kind': (random: Random) => 20 + Math.floor(random.exponential(300)),
  rising: (_: Random, i: number) => Math.round(1.06 ** i),
  falling: (_: Random, i: number) => Math.round(1.06 ** (500 - i)),
  'far apart': (random: Random) => (random.chance(0.5) ? 1 : Number.MAX_SAFE_INTEGER),
})) {
  test(`what is learned of costs ${name} is the cost that 99 % of them are at most, to 2.5 %`, () => {
    const random = new Random(7)
    const learned = new LearnedCost()
    const costs = Array.from({ length: 500 }, (_, i) => costOf(random, i))
    for (const cost of costs) learned.add('k', cost)
    // It is found out anew after some costs.
    const candidates = [468, 500].map((count) => costs.slice(0, count).sort((a, b) => a - b)[Math.ceil(0.99 * count) - 1] as number)
    const of = learned.of('k') as number
    assert.ok(
      candidates.some((cost) => Math.abs(of - cost) <= Math.max(0.5, 0.026 * cost)),
      `${of}, not one of ${candidates}`,
    )
  })
}

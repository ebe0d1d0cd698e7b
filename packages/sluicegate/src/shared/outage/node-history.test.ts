import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { FAULTY_SHARES, type HistoryRules, nodeHistory, type OutageShares, SOUND_SHARES } from 'sluicegate-testkit/outage/node-history.js'

/** Random histories, most of few nodes, some of up to a thousand. */
const HISTORIES = shortOrLong(150, 500)
const MOST_NODES = shortOrLong(100, 500)
const MOST_FOR_A_FAULT = 3_000
/** They once found something, in histories of up to a thousand nodes. */
const SAVED_SEEDS: readonly number[] = [138_311_762]

interface Found {
  readonly seed: number
  readonly over: OutageShares | undefined
  readonly outages: readonly OutageShares[]
}

async function first(seeds: Iterable<number>, rules: HistoryRules, mostNodes: number): Promise<Found> {
  const outages: OutageShares[] = []
  let last = 0
  for (const seed of seeds) {
    last = seed
    const found = await nodeHistory(seed, mostNodes, rules)
    outages.push(...found)
    const over = found.find(({ sum, bound }) => sum > bound + 1e-9)
    if (over !== undefined) return { seed, over, outages }
  }
  return { seed: last, over: undefined, outages }
}

test('the shares of an outage are together at most one budget, one more for each joiner beside those before, and a tenth for each unknown', async (t) => {
  const from = Math.floor(Math.random() * 2 ** 30)
  assert.equal((await first(SAVED_SEEDS, SOUND_SHARES, 1_000)).over, undefined)
  const { seed, over, outages } = await first(seedsFrom(from, HISTORIES), SOUND_SHARES, MOST_NODES)
  assert.equal(over, undefined, `seed ${seed}: ${JSON.stringify(over)}`)
  const worst = Math.max(...outages.map(({ sum }) => sum))
  const mean = outages.reduce((all, { sum }) => all + sum, 0) / outages.length
  assert.ok(mean > 0.3, 'the budget is used')
  t.diagnostic(`seeds from ${from}: ${outages.length} outages, budgets in use: ${mean.toFixed(2)} on average, ${worst.toFixed(1)} at most`)
})

for (const rules of FAULTY_SHARES) {
  test(`the histories find the planted fault: ${rules.name}`, async (t) => {
    const { seed, over } = await first(seedsFrom(1, MOST_FOR_A_FAULT), rules, 60)
    assert.notEqual(over, undefined)
    t.diagnostic(`found in history ${seed}: ${JSON.stringify(over)}`)
  })
}

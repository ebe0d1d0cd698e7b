import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, Zipf } from './random.js'

test('ranks are drawn as often as their weights say', () => {
  for (const exponent of [0, 0.8, 1, 2]) {
    const [ranks, draws] = [50, 200_000]
    const zipf = new Zipf(ranks, exponent)
    const random = new Random(1)
    const drawn = new Array<number>(ranks).fill(0)
    for (let i = 0; i < draws; i++) {
      const rank = zipf.draw(random)
      drawn[rank] = (drawn[rank] as number) + 1
    }
    const weights = drawn.map((_, rank) => (rank + 1) ** -exponent)
    const all = weights.reduce((sum, weight) => sum + weight, 0)
    for (const [rank, count] of drawn.entries()) {
      const expected = (draws * (weights[rank] as number)) / all
      assert.ok(Math.abs(count - expected) < 6 * Math.sqrt(expected), `exponent ${exponent}, rank ${rank}: ${count}, not ${expected}`)
    }
  }
})

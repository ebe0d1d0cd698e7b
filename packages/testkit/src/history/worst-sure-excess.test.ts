import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../random.js'
import { worstSureExcess } from './excess.js'

const SPEC = { limit: 3, windowMs: 10, burst: 2 }

/** Every pair of a start and an end. */
function slowly(spent: readonly { fromUs: number; toUs: number }[]): number {
  let worst = 0
  for (const { fromUs } of spent)
    for (const { toUs } of spent) {
      const within = spent.filter((each) => each.fromUs >= fromUs && each.toUs <= toUs).length
      if (toUs >= fromUs) worst = Math.max(worst, within - 2 - (3 * (toUs - fromUs)) / 10_000)
    }
  return worst
}

test('the worst interval is that of a search over all of them', () => {
  const random = new Random(5)
  for (let round = 0; round < 200; round++) {
    const spent = Array.from({ length: random.integer(1, 40) }, () => {
      const fromUs = random.integer(0, 50_000)
      return { fromUs, toUs: fromUs + random.integer(0, 3_000) }
    })
    assert.ok(Math.abs(worstSureExcess(SPEC, spent) - slowly(spent)) < 1e-9)
  }
})

test('tokens that may have been spent later are not counted against an interval', () => {
  assert.equal(worstSureExcess(SPEC, []), 0)
  assert.equal(worstSureExcess(SPEC, Array(5).fill({ fromUs: 0, toUs: 0 })), 3)
  assert.equal(worstSureExcess(SPEC, Array(5).fill({ fromUs: 0, toUs: 10_000 })), 0)
})

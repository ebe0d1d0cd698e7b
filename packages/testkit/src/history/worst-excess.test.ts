import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../random.js'
import { firstExcess } from './rate-history.js'
import { worstExcess } from './worst-excess.js'

const SPEC = { limit: 10, windowMs: 1000, burst: 5 }

test('what is over in the worst interval is counted, however much was admitted in all', () => {
  const burst = Array.from({ length: 8 }, () => ({ atUs: 1_000_000, cost: 1 }))
  assert.equal(worstExcess(SPEC, burst), 3)
  const calm = Array.from({ length: 100 }, (_, i) => ({ atUs: 3_000_000 + i * 100_000, cost: 1 }))
  assert.equal(worstExcess(SPEC, [...calm, ...burst]), 3)
})

test('nothing is over exactly where the exact bound holds', () => {
  const random = new Random(3)
  let over = 0
  for (let i = 0; i < 2000; i++) {
    // Whole tokens at whole hundreds of milliseconds: all sums are exact.
    const admissions = Array.from({ length: 12 }, () => ({ atUs: random.integer(0, 12) * 100_000, cost: random.integer(1, 2) }))
    const isOver = worstExcess(SPEC, admissions) > 1e-6
    assert.equal(isOver, firstExcess(SPEC, admissions) !== undefined)
    if (isOver) over++
  }
  assert.ok(over > 100 && over < 1900)
})

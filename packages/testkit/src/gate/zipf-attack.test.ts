import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { longTest, shortOrLong } from '../run-length.js'
import { type AttackOptions, type AttackResult, zipfAttack } from './zipf-attack.js'

const TRAFFIC: Omit<AttackOptions, 'seed' | 'floodPerSecond' | 'width'> = {
  seconds: shortOrLong(8, 30),
  requestsPerSecond: 4_000,
  honestKeys: 50_000,
  exponent: 0.9,
  attackers: shortOrLong(40, 200),
  windowMs: 7_000,
  above: 700,
  depth: 4,
}
const LEAST_SHARE = 0.99

function checkBounds({
  compared,
  under,
  beyond,
  stats,
  found,
  rises,
  right,
  verdicts,
  attackersFound,
  attackersAbove,
}: AttackResult): void {
  assert.equal(under, 0, 'a count below the exact one')
  assert.ok(beyond <= stats.delta * compared, `${beyond} of ${compared} beyond epsilon`)
  assert.ok(found >= LEAST_SHARE * rises, `recall: ${found} of ${rises} in time`)
  assert.ok(right >= LEAST_SHARE * verdicts, `precision: ${right} of ${verdicts}`)
  assert.ok(attackersAbove > 0 && attackersFound >= LEAST_SHARE * attackersAbove, `${attackersFound} of ${attackersAbove} attackers`)
}

describe('on Zipf traffic with attackers at least 99 % of the keys above the threshold get a verdict in time, and at least 99 % of the verdicts are right', () => {
  test('in a sketch of the default size', () => checkBounds(zipfAttack({ ...TRAFFIC, seed: 1, floodPerSecond: 0, width: 32_768 })))

  test('through a flood of distinct keys', () => checkBounds(zipfAttack({ ...TRAFFIC, seed: 2, floodPerSecond: 20_000, width: 32_768 })))

  longTest('in a sketch so small that each counter has many keys', () => {
    const result = zipfAttack({ ...TRAFFIC, seed: 3, floodPerSecond: 0, width: 2_048 })
    checkBounds(result)
    assert.ok(result.mostMargin > 0 && result.error.most > 0)
  })
})

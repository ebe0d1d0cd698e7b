import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixedWindow } from 'sluicegate'
import { attack } from './adversary.js'
import { LOG, PACKED } from './forms.js'

const FIXED = { ...LOG, policy: (limit: number, window: number) => fixedWindow({ limit, window }) }

test('the adversary gets the limit twice out of a fixed window, once out of a log, and once short of twice out of a sliding window', () => {
  for (const limit of [2, 10, 100]) {
    assert.equal(attack(FIXED, limit, 4).most, 2 * limit)
    assert.equal(attack(LOG, limit, 4).most, limit)
    assert.equal(attack(PACKED, limit, 8).most, 2 * limit - 1)
  }
})

test('an attack tells what passed in its window, and no more', () => {
  const { most, attempts } = attack(PACKED, 10, 4)
  const [first, last] = [attempts[0], attempts.at(-1)]
  assert.equal(
    attempts.reduce((sum, { admitted }) => sum + admitted, 0),
    most,
  )
  assert.ok(first !== undefined && last !== undefined && last.atUs - first.atUs < 1_000_000)
})

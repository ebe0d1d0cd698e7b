import assert from 'node:assert/strict'
import { test } from 'node:test'
import { budgetUse, type RecordedAnswer, worstKey, worstSureWindow } from './admissions.js'

const POLICY = { limit: 10, windowMs: 1_000, burst: 5 }

/** Answers of a key every 10 ms for two seconds, of which `admits` decides. */
function history(key: string, admits: (i: number) => boolean): RecordedAnswer[] {
  return Array.from({ length: 201 }, (_, i) => ({ fromUs: i * 10_000, toUs: i * 10_000, outcome: admits(i) ? 'allowed' : 'denied', key }))
}

test('a key that is over its policy is found among those that are not', () => {
  const kept = history('kept', (i) => i < 5 || i % 10 === 0)
  assert.deepEqual(worstKey(POLICY, kept), { key: '', over: 0 })
  const { key, over } = worstKey(POLICY, [...kept, ...history('over', (i) => i < 9)])
  assert.equal(key, 'over')
  // Nine at once, less what refills in 80 ms.
  assert.ok(Math.abs(over - (9 - 5 - 0.8)) < 1e-9)
})

test('the use of the budget is that of keys with more demand than budget', () => {
  const idle = [{ fromUs: 0, toUs: 0, outcome: 'allowed', key: 'idle' }]
  assert.equal(budgetUse(POLICY, idle), undefined)
  assert.equal(budgetUse(POLICY, [...history('busy', (i) => i % 8 === 0 && i < 160), ...idle]), 20 / 25)
})

test('a window counts what was surely spent within it', () => {
  const policy = { limit: 10, windowMs: 1_000, burst: 10 }
  const spent = history('window', (i) => i % 5 === 0).filter(({ outcome }) => outcome === 'allowed')
  // 20 in each second, of which those at its ends may belong to the next.
  assert.equal(worstSureWindow(policy, spent, 0), 9)
  assert.equal(worstSureWindow({ ...policy, limit: 20 }, spent, 0), 0)
})

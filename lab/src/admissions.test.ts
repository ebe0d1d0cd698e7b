import assert from 'node:assert/strict'
import { test } from 'node:test'
import { budgetUse, type RecordedAnswer, recoveryOf, worstKey, worstSureWindow } from './admissions.js'

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

/** Quarters of a second, with this rate in each second. */
function overTime(...rates: readonly number[]): { xs: number[]; admitted: number[] } {
  const admitted = rates.flatMap((rate) => [rate, rate, rate, rate])
  return { xs: admitted.map((_, i) => i / 4), admitted }
}

const FAULT = { fromX: 4, toX: 6, label: 'fault' }

test('a rate that never falls has recovered at once, and lost nothing', () => {
  assert.deepEqual(recoveryOf(overTime(900, 100, 100, 100, 100, 100, 100, 100), [FAULT]), { seconds: 0, lost: 0 })
})

test('recovered is the first second after the fault with four fifths of the rate before it', () => {
  assert.deepEqual(recoveryOf(overTime(900, 100, 100, 100, 0, 0, 40, 80, 100), [FAULT]), { seconds: 1, lost: 260 })
})

test('half a second is enough at the end of the run', () => {
  const { xs, admitted } = overTime(900, 100, 100, 100, 0, 0, 100)
  assert.deepEqual(recoveryOf({ xs: xs.slice(0, -2), admitted: admitted.slice(0, -2) }, [FAULT]), { seconds: 0, lost: 200 })
  assert.deepEqual(recoveryOf({ xs: xs.slice(0, -3), admitted: admitted.slice(0, -3) }, [FAULT]), { seconds: null, lost: 200 })
})

test('a rate that stays low has not recovered', () => {
  assert.deepEqual(recoveryOf(overTime(900, 100, 100, 100, 0, 0, 0, 50, 50), [FAULT]), { seconds: null, lost: 400 })
})

test('of several faults the slowest recovery counts, and each loss', () => {
  const faults = [
    { fromX: 2, toX: 3, label: 'first' },
    { fromX: 5, toX: 6, label: 'second' },
  ]
  assert.deepEqual(recoveryOf(overTime(900, 100, 0, 100, 100, 0, 0, 0, 100), faults), { seconds: 2, lost: 400 })
})

test('without a fault, or without a time before it, there is nothing to say', () => {
  assert.equal(recoveryOf(overTime(900, 100, 100), []), null)
  assert.equal(recoveryOf(overTime(900, 100, 100), [{ fromX: 1, toX: 2, label: 'early' }]), null)
  assert.equal(recoveryOf({ xs: [], admitted: [] }, [FAULT]), null)
})

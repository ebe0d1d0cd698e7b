import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recoveryOf } from './recovery.js'

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

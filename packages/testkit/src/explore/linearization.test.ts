import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isWithinBudget } from './admitted.js'
import type { Outcome } from './call.js'
import { PLAIN } from './explored-policy.js'
import { emptyLedger, type Ledger, NEVER } from './ledger.js'
import { explanation, type History } from './linearization.js'
import { RateModel } from './rate-model.js'

const NOW = 10_000

function taken(thread: number, value: number, when: readonly [number, number], more: Partial<Outcome> = {}): Outcome {
  const call = { verb: 'take', key: 0, nowUs: NOW, amount: 1 } as const
  return { call, thread, began: when[0], ended: when[1], why: 'answered', value, more: Number.NaN, forgotten: -1, ...more }
}

function owing(debt: number): Ledger {
  return { ...emptyLedger(PLAIN, 2), keys: [new RateModel(PLAIN, NOW + debt), undefined] }
}

function history(outcomes: readonly Outcome[], more: Partial<History> = {}): History {
  return { before: emptyLedger(PLAIN, 2), outcomes, takeoverHighUs: NEVER, evictions: 0, uncounted: 0, mayRefuse: false, ...more }
}

test('takes at once are explained by one after the other', () => {
  const end = explanation(history([taken(0, 2000, [0, 2]), taken(1, 1000, [1, 1])]))
  assert.equal(end?.keys[0]?.debtAt(NOW), 2000)
})

test('a charge that was lost has no explanation', () => {
  assert.equal(explanation(history([taken(0, 1000, [0, 2]), taken(1, 1000, [1, 1])])), undefined)
})

test('a call that had ended before another began comes first', () => {
  assert.equal(explanation(history([taken(0, 2000, [0, 0]), taken(1, 1000, [1, 1])])), undefined)
})

test('a thread stopped for good may have been charged or not', () => {
  const stopped = taken(0, 0, [0, Number.POSITIVE_INFINITY])
  assert.notEqual(explanation(history([stopped, taken(1, 1000, [1, 1])])), undefined)
  assert.notEqual(explanation(history([stopped, taken(1, 2000, [1, 1])])), undefined)
  assert.equal(explanation(history([stopped, taken(1, 3000, [1, 1])])), undefined)
})

test('a key may be forgotten only as often as evictions were counted, by another key, and never when it is denied', () => {
  const before = owing(2000)
  const other = taken(0, 1000, [0, 0], { call: { verb: 'take', key: 1, nowUs: NOW, amount: 1 } })
  const again = taken(1, 1000, [1, 1])
  assert.equal(explanation(history([other, again], { before })), undefined)
  assert.notEqual(explanation(history([other, again], { before, evictions: 1 })), undefined)
  assert.equal(explanation(history([again], { before, evictions: 1 })), undefined)
  const denied = owing(3000)
  assert.equal(explanation(history([other, again], { before: denied, evictions: 1 })), undefined)
})

test('a newcomer whose clock is behind owes up to the time by which a key was forgotten', () => {
  const late = taken(0, 1500, [0, 0], { why: 'LATE', call: { verb: 'take', key: 0, nowUs: NOW, amount: 2 } })
  assert.notEqual(explanation(history([late], { takeoverHighUs: NOW + 1500 })), undefined)
  assert.equal(explanation(history([late], { takeoverHighUs: NOW + 1400 })), undefined)
})

test('the budget holds in every interval of clock readings', () => {
  const at = (nowUs: number): { nowUs: number; tokens: number } => ({ nowUs, tokens: 1 })
  assert.ok(isWithinBudget([at(0), at(0), at(0), at(1000)], PLAIN, 0))
  assert.ok(!isWithinBudget([at(0), at(0), at(0), at(999)], PLAIN, 0))
  assert.ok(isWithinBudget([at(0), at(0), at(0), at(999)], PLAIN, 1))
  assert.ok(!isWithinBudget([at(5000), at(9000), at(9000), at(9000), at(9000)], PLAIN, 0))
})

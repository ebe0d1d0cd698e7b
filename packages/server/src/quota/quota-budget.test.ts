import assert from 'node:assert/strict'
import { test } from 'node:test'
import { longTest, shortOrLong } from 'sluicegate-testkit'
import { quotaHistory } from 'sluicegate-testkit/service/quota-history.js'
import { type QuotaLoad, runLoad, utilisation } from 'sluicegate-testkit/service/quota-load.js'
import { faultyBudget, QUOTA_MUTANTS } from 'sluicegate-testkit/service/quota-mutants.js'
import { BurstLedger } from './burst-ledger.js'
import type { Holder } from './holder.js'
import { longestMs, QuotaBudget } from './quota-budget.js'

const HISTORIES = shortOrLong(50, 300)
const TTL = { ttlSeconds: 10, idleMs: 600_000 }

test('in random histories no interval admits more than the stated bound', () => {
  let admitted = 0
  for (let seed = 1; seed <= HISTORIES; seed++) {
    const run = quotaHistory(seed)
    assert.equal(run.excess, undefined, `seed ${seed}: ${JSON.stringify(run.excess)}`)
    admitted += run.admitted
  }
  assert.ok(admitted > 1_000 * HISTORIES, `${admitted} admitted`)
})

test('the histories find planted faults', async () => {
  for (const mutant of QUOTA_MUTANTS) {
    const run = quotaHistory(mutant.seed, await faultyBudget(mutant))
    assert.notEqual(run.excess, undefined, mutant.name)
  }
})

const steady = (requests: number) => (): number => requests
const LOAD: QuotaLoad = {
  numbers: { ratePerSecond: 1_000, burst: 1_000 },
  ttlSeconds: 15,
  reportMs: 5_000,
  delayMs: 20,
  seconds: 60,
  demands: [steady(3_000), steady(5), steady(5), steady(5)],
}

test('what data planes leave of a budget goes to the one that has more requests', () => {
  assert.ok(utilisation(runLoad(LOAD), LOAD, 20, 60) > 0.93)
})

test('data planes that all have too many requests use the budget, and their assignments do not change all the time', () => {
  const load = { ...LOAD, demands: Array.from({ length: 4 }, () => steady(3_000)) }
  const result = runLoad(load)
  assert.ok(utilisation(result, load, 10, 60) > 0.93)
  const late = result.changes.slice(40).reduce((sum, changes) => sum + changes, 0)
  assert.ok(late <= 8, `${late} changes in 20 s`)
})

test('requests below the budget pass', () => {
  const load = { ...LOAD, demands: [100, 50, 200, 10].map(steady) }
  assert.ok(utilisation(runLoad(load), load, 15, 60) > 0.95)
})

test('the part of a broken stream goes to the others', () => {
  const load = { ...LOAD, demands: [steady(3_000), steady(3_000), steady(5)], breaks: new Map([[0, 25]]) }
  const result = runLoad(load)
  assert.ok(utilisation(result, load, 27, 36) < 0.7, 'not before its assignment has ended')
  assert.ok(utilisation(result, load, 48, 60) > 0.9, 'and then all of it')
})

longTest('twenty data planes of which two have requests', () => {
  const load = { ...LOAD, seconds: 120, demands: Array.from({ length: 20 }, (_, i) => steady(i < 2 ? 2_000 : 10)) }
  assert.ok(utilisation(runLoad(load), load, 40, 120) > 0.88)
})

test('a payment that is under way leaves no room to fill', () => {
  const ledger = new BurstLedger(10)
  ledger.pay(4)
  ledger.fill(100)
  assert.equal(ledger.level, 6)
  ledger.settle(4, true)
  ledger.fill(100)
  assert.equal(ledger.level, 10)
})

test('a budget of a restarted service waits for the assignments of before, and begins without a burst', () => {
  const quietUntilMs = longestMs(TTL.ttlSeconds)
  const budget = new QuotaBudget({ ratePerSecond: 1, burst: 100 }, { ...TTL, quietUntilMs }, 0)
  const holder = budget.join(0)
  budget.report(holder, 100, quietUntilMs - 1_000)
  assert.deepEqual(budget.plan(quietUntilMs - 1), [])
  const assigned = budget.plan(quietUntilMs).map(({ assignment }) => assignment)
  assert.deepEqual(assigned, [{ kind: 'deny', ttlSeconds: 10 }])
})

/** What an honest data plane of 1,000 a second has each second beside one that opens a stream four times a second, which is told by its address or not. */
function besideReconnects(isTold: boolean): number[] {
  const budget = new QuotaBudget({ ratePerSecond: 1_000, burst: 1_000 }, TTL, 0)
  const fills: number[] = []
  const honest = budget.join(0)
  let other: Holder | undefined
  for (let nowMs = 0; nowMs < 60_000; nowMs += 50) {
    if (nowMs % 1_000 === 0) budget.report(honest, 1_000, nowMs)
    if (nowMs >= 10_000 && nowMs % 250 === 0) {
      if (other !== undefined) budget.leave(other, nowMs)
      if (other !== undefined && isTold) budget.comeBack(other, nowMs)
      else other = budget.join(nowMs)
    } else if (other !== undefined) budget.report(other, 1_000_000, nowMs)
    for (const { holder } of budget.plan(nowMs)) budget.confirm(holder, nowMs)
    if (nowMs % 1_000 === 0) fills.push(honest.tokensPerFill)
  }
  const full = fills[9] as number
  return fills.slice(12).map((fill) => fill / full)
}

test('a data plane that reconnects all the time takes no more than its part, whether it is known again or not', () => {
  for (const isTold of [true, false]) {
    const parts = besideReconnects(isTold)
    assert.ok(Math.min(...parts) > 0.45, `${Math.min(...parts)}`)
  }
})

test('a budget that is full and has no data plane can be made anew', () => {
  const forgotten: unknown[] = []
  const budget = new QuotaBudget({ ratePerSecond: 100, burst: 10 }, { ...TTL, onForgotten: (holder) => forgotten.push(holder) }, 0)
  assert.equal(budget.isFresh, true)
  const holder = budget.join(0)
  budget.plan(0)
  budget.confirm(holder, 0)
  assert.ok(budget.assignedPerSecond > 0)
  budget.leave(holder, 1)
  budget.plan(longestMs(10) - 1)
  assert.ok(budget.assignedPerSecond > 0, 'its assignment may be in force')
  budget.plan(longestMs(10))
  assert.deepEqual([budget.assignedPerSecond, forgotten], [0, [holder]])
  budget.plan(longestMs(10) + 1_000)
  assert.equal(budget.isFresh, true)
})

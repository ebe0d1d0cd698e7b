import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FixedWindowOracle } from '../oracle/fixed-window-oracle.js'
import type { Oracle } from '../oracle/oracle.js'
import { SlidingLogOracle } from '../oracle/sliding-log-oracle.js'
import { SlidingWindowOracle } from '../oracle/sliding-window-oracle.js'
import { alignedWindows, calendarWindows } from '../oracle/windows.js'
import { Random } from '../random.js'
import { randomPolicyOf } from '../sequences/random-policy.js'
import { type Admission, firstPositionExcess, firstShortfall, firstWindowExcess } from './excess.js'

const SECONDS = alignedWindows(1_000_000n)

test('the limit in each window is no excess, one token more in one of them is', () => {
  const within = [
    { atUs: 999_998, cost: 3 },
    { atUs: 1_000_000, cost: 2 },
    { atUs: 1_999_999, cost: 1 },
  ]
  assert.equal(firstWindowExcess(3, SECONDS, within), undefined)
  const over = [...within, { atUs: 1_500_000, cost: 1 }]
  assert.deepEqual(firstWindowExcess(3, SECONDS, over), { fromUs: 1_000_000, toUs: 1_999_999, admitted: 4, budget: 3 })
  assert.ok(firstWindowExcess(3, SECONDS, [...within, { atUs: 0, cost: 1 }]))
})

test('windows of the calendar are those of the calendar', () => {
  const midnightUs = Date.UTC(2026, 8, 10) * 1000
  const admissions = [-1, 0].map((us) => ({ atUs: midnightUs + us, cost: 1 }))
  assert.equal(firstWindowExcess(1, calendarWindows({ unit: 'day', timeZone: 'UTC' }), admissions), undefined)
  assert.ok(firstWindowExcess(1, calendarWindows({ unit: 'day', timeZone: 'Europe/Rome' }), admissions))
})

test('the budget in every position is no excess, and a window ends before the moment that is its length later', () => {
  const admissions = [0, 400_000, 1_000_000, 1_400_000].map((atUs) => ({ atUs, cost: 1 }))
  assert.equal(firstPositionExcess(2, 1_000_000, admissions), undefined)
  assert.deepEqual(firstPositionExcess(2, 1_000_001, admissions), { fromUs: 0, toUs: 1_000_000, admitted: 3, budget: 2 })
  assert.ok(firstPositionExcess(2, 1_000_000, [...admissions, { atUs: 1_399_999, cost: 1 }]))
})

test('what no aligned window shows is seen in the position between two', () => {
  const admissions = [999_999, 1_000_000].map((atUs) => ({ atUs, cost: 3 }))
  assert.equal(firstWindowExcess(3, SECONDS, admissions), undefined)
  assert.deepEqual(firstPositionExcess(5, 1_000_000, admissions), { fromUs: 999_999, toUs: 1_000_000, admitted: 6, budget: 5 })
})

test('a moment at which a log held back is found, and none where every window up to a moment is full', () => {
  const admissions = [0, 300_000, 1_000_000, 1_300_000].map((atUs) => ({ atUs, cost: 2 }))
  const full = [300_000, 999_999, 1_000_000, 1_299_999, 1_300_000, 1_999_999]
  assert.equal(firstShortfall(4, 1_000_000, admissions, full), undefined)
  // What passed a window ago is over, and what passes a microsecond later is not there yet.
  assert.deepEqual(firstShortfall(4, 1_000_000, admissions, [...full, 2_000_000]), { atUs: 2_000_000, admitted: 2 })
  assert.deepEqual(firstShortfall(4, 1_000_000, admissions, [299_999]), { atUs: 299_999, admitted: 2 })
  assert.deepEqual(firstShortfall(4, 1_000_000, admissions.toSpliced(2, 1), full), { atUs: 1_000_000, admitted: 2 })
  assert.equal(firstShortfall(4, 1_000_000, admissions, []), undefined)
})

test('a history is over as soon as one admission comes a microsecond early', () => {
  const random = new Random(3)
  for (let run = 0; run < 50; run++) {
    const admissions: Admission[] = []
    for (let i = 0; i < 200; i++) {
      const atUs = i < 10 ? random.integer(0, 999_999) : (admissions[i - 10] as Admission).atUs + 1_000_000
      admissions.push({ atUs, cost: 1 })
      admissions.sort((a, b) => a.atUs - b.atUs)
    }
    assert.equal(firstPositionExcess(10, 1_000_000, admissions), undefined)
    const early = random.integer(10, 199)
    const { atUs } = admissions[early] as Admission
    const moved = admissions.with(early, { atUs: atUs - 1, cost: 1 })
    assert.equal(firstPositionExcess(10, 1_000_000, moved)?.toUs, atUs - 1)
  }
})

test('the oracles of windows keep their bounds, whatever the clock does', () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = new Random(seed)
    const algorithm = random.pick(['fixed-window', 'sliding-window', 'sliding-log'] as const)
    const spec = randomPolicyOf(random, algorithm)
    assert.ok(spec.algorithm === algorithm)
    const windowUs = Math.round(spec.windowMs * 1000)
    const admissions = greedyHistory(random, spec.limit, windowUs, oracleOf(spec))
    const label = `seed ${seed}: ${JSON.stringify(spec)}`
    if (algorithm === 'sliding-log') assert.equal(firstPositionExcess(spec.limit, windowUs, admissions), undefined, label)
    else assert.equal(firstWindowExcess(spec.limit, alignedWindows(BigInt(windowUs)), admissions), undefined, label)
    if (algorithm === 'sliding-window') assert.equal(firstPositionExcess(2 * spec.limit - 1, windowUs, admissions), undefined, label)
  }
})

function oracleOf(spec: ReturnType<typeof randomPolicyOf>): Oracle {
  if (spec.algorithm === 'fixed-window') return new FixedWindowOracle(spec)
  if (spec.algorithm === 'sliding-window') return new SlidingWindowOracle(spec)
  assert.ok(spec.algorithm === 'sliding-log')
  return new SlidingLogOracle(spec)
}

function greedyHistory(random: Random, limit: number, windowUs: number, oracle: Oracle): Admission[] {
  const admissions: Admission[] = []
  let atUs = random.integer(0, 1e15)
  for (let i = 0; i < 150; i++) {
    const toEndUs = windowUs - (atUs % windowUs)
    const partUs = random.integer(0, windowUs)
    atUs = Math.max(0, atUs + random.pick([0, 1, toEndUs, toEndUs - 1, windowUs, partUs, -1, -partUs]))
    const cost = random.chance(0.3) ? 1 : random.integer(1, limit)
    const { remaining } = oracle.peek('k', 1, atUs / 1000)
    const asked = random.chance(0.5) && remaining > 0 ? remaining : cost
    if (oracle.take('k', asked, atUs / 1000).allowed) admissions.push({ atUs, cost: asked })
  }
  return admissions
}

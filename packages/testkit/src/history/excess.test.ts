import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConcurrencyOracle } from '../oracle/concurrency-oracle.js'
import type { Oracle, RateSpec } from '../oracle/oracle.js'
import { RateOracle } from '../oracle/rate-oracle.js'
import { SlidingLogOracle } from '../oracle/sliding-log-oracle.js'
import { alignedWindows, calendarWindows, FixedWindowOracle, SlidingWindowOracle } from '../oracle/window-oracles.js'
import { Random } from '../random.js'
import { shortOrLong } from '../run-length.js'
import { randomPolicyOf } from '../sequences/random-policy.js'
import { randomRate } from '../sequences/rate-sequences.js'
import {
  type Admission,
  type Flight,
  firstCrowding,
  firstExcess,
  firstPositionExcess,
  firstShortfall,
  firstWindowExcess,
  shareOfBudget,
  worstExcess,
  worstSureExcess,
} from './excess.js'

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

test('as many in flight as the limit are no crowd, one more at any moment is', () => {
  const flights = [
    { fromUs: 0, untilUs: 100, cost: 2 },
    { fromUs: 50, untilUs: 200, cost: 1 },
    { fromUs: 100, untilUs: 150, cost: 2 },
  ]
  assert.equal(firstCrowding(3, flights), undefined)
  assert.deepEqual(firstCrowding(2, flights), { atUs: 50, inFlight: 3 })
  assert.deepEqual(firstCrowding(3, [...flights, { fromUs: 149, untilUs: 150, cost: 1 }]), { atUs: 149, inFlight: 4 })
})

test('the oracle of concurrency never has more in flight than its limit', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new Random(seed)
    const limit = random.integer(1, 5)
    const oracle = new ConcurrencyOracle({ algorithm: 'concurrency', limit, windowMs: 1 })
    const flights: (Flight & { permit: bigint })[] = []
    let nowUs = 0
    for (let i = 0; i < 60; i++) {
      nowUs += random.integer(0, 400)
      const cost = random.integer(1, limit)
      const { permit } = oracle.take('k', cost, nowUs / 1000)
      if (permit !== undefined) flights.push({ fromUs: nowUs, untilUs: nowUs + 1000, cost, permit })
      const some = random.integer(0, flights.length)
      const held = flights[some]
      if (held !== undefined && oracle.release('k', held.permit, nowUs / 1000)) flights[some] = { ...held, untilUs: nowUs }
    }
    assert.ok(flights.length > 10)
    assert.equal(firstCrowding(limit, flights), undefined, `seed ${seed}`)
  }
})

test('exactly the budget of an interval is no excess, one token more is', () => {
  const within = [
    { atUs: 0, cost: 5 },
    { atUs: 100_000, cost: 1 },
    { atUs: 200_000, cost: 1 },
  ]
  assert.equal(firstExcess(SPEC, within), undefined)
  assert.deepEqual(firstExcess(SPEC, [...within, { atUs: 299_999, cost: 1 }]), { fromUs: 0, toUs: 299_999, admitted: 8, budget: 7 })
})

test('an excess inside a long quiet history is found', () => {
  const admissions = [
    { atUs: 0, cost: 1 },
    { atUs: 10 ** 9, cost: 3 },
    { atUs: 10 ** 9 + 10, cost: 3 },
    { atUs: 2 * 10 ** 9, cost: 1 },
  ]
  assert.deepEqual(firstExcess(SPEC, admissions), { fromUs: 10 ** 9, toUs: 10 ** 9 + 10, admitted: 6, budget: 5 })
})

test('the check of n log n steps agrees with the check of every pair', () => {
  for (let seed = 0; seed < shortOrLong(100, 200); seed++) {
    const random = new Random(seed)
    const admissions = Array.from({ length: 12 }, () => ({ atUs: random.integer(0, 2_000_000), cost: random.integer(1, 3) }))
    assert.equal(firstExcess(SPEC, admissions) !== undefined, anyPairExceeds(admissions), `seed ${seed}`)
  }
})

test('the oracle of the declared rounding keeps the exact budget over every interval, whatever the clock does', () => {
  for (let seed = 1; seed <= shortOrLong(40, 200); seed++) {
    const random = new Random(seed)
    const spec = randomRate(random)
    assert.equal(firstExcess(spec, greedyHistory(random, spec)), undefined, `seed ${seed}: ${JSON.stringify(spec)}`)
  }
})

test('who always asks gets at least 99.9 % of the exact budget from the oracle of the declared rounding', () => {
  let asked = 0
  for (let seed = 1; seed <= shortOrLong(40, 300); seed++) {
    const random = new Random(seed)
    const spec = randomRate(random)
    const perUs = spec.limit / (spec.windowMs * 1000)
    // A key is asked at most once a microsecond: what flows in meanwhile must not fill the bucket, nor be most of a token.
    if ((spec.burst < 2 + 2 * perUs && perUs > 0.001) || perUs < 1e-12) continue
    asked++
    const oracle = new RateOracle(spec)
    let admitted = 0
    let atUs = 0
    for (let turn = 0; turn < 1000; turn++) {
      if (turn > 0) atUs = firstPass(oracle, atUs, atUs + oracle.peek('k', 1, atUs / 1000).retryAfterMs * 1000)
      const cost = oracle.peek('k', 1, atUs / 1000).remaining
      assert.ok(oracle.take('k', cost, atUs / 1000).allowed)
      admitted += cost
    }
    assert.ok(shareOfBudget(spec, admitted, atUs) >= 999_000, `seed ${seed}: ${JSON.stringify(spec)}`)
  }
  assert.ok(asked > shortOrLong(13, 100), `${asked} policies asked`)
})

/** The first microsecond of (from, to] at which one token passes. */
function firstPass(oracle: RateOracle, fromUs: number, toUs: number): number {
  let [no, yes] = [fromUs, toUs]
  while (yes - no > 1) {
    const middle = Math.floor((no + yes) / 2)
    if (oracle.peek('k', 1, middle / 1000).allowed) yes = middle
    else no = middle
  }
  return yes
}

function greedyHistory(random: Random, spec: RateSpec): Admission[] {
  const oracle = new RateOracle(spec)
  const admissions: Admission[] = []
  const intervalUs = Math.max(1, Math.round((spec.windowMs * 1000) / spec.limit))
  let atUs = random.integer(0, 1e15)
  for (let i = 0; i < 200; i++) {
    atUs = Math.max(0, atUs + random.pick([0, 1, intervalUs - 1, intervalUs, intervalUs * spec.burst, -1, -random.integer(1, 1e10)]))
    const cost = random.chance(0.5) ? 1 : random.magnitude(1, spec.burst)
    if (oracle.take('k', cost, atUs / 1000).allowed) admissions.push({ atUs, cost })
  }
  return admissions
}

function anyPairExceeds(admissions: readonly Admission[]): boolean {
  return admissions.some(({ atUs: fromUs }) =>
    admissions.some(({ atUs: toUs }) => {
      const admitted = admissions.filter(({ atUs }) => atUs >= fromUs && atUs <= toUs).reduce((sum, { cost }) => sum + cost, 0)
      return toUs >= fromUs && admitted > SPEC.burst + (SPEC.limit * (toUs - fromUs)) / 1_000_000
    }),
  )
}

const SURE_SPEC = { limit: 3, windowMs: 10, burst: 2 }

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
    assert.ok(Math.abs(worstSureExcess(SURE_SPEC, spent) - slowly(spent)) < 1e-9)
  }
})

test('tokens that may have been spent later are not counted against an interval', () => {
  assert.equal(worstSureExcess(SURE_SPEC, []), 0)
  assert.equal(worstSureExcess(SURE_SPEC, Array(5).fill({ fromUs: 0, toUs: 0 })), 3)
  assert.equal(worstSureExcess(SURE_SPEC, Array(5).fill({ fromUs: 0, toUs: 10_000 })), 0)
})

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
    const admissions = greedyWindows(random, spec.limit, windowUs, oracleOf(spec))
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

function greedyWindows(random: Random, limit: number, windowUs: number, oracle: Oracle): Admission[] {
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

import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { BudgetNumbers } from 'sluicegate-server/dist/quota/quota-budget.js'
import { longTest, Random, shortOrLong } from 'sluicegate-testkit'
import { type BudgetClass, quotaHistory } from 'sluicegate-testkit/service/quota-history.js'
import { SimulatedEnvoy } from 'sluicegate-testkit/service/simulated-envoy.js'
import { Timeline } from 'sluicegate-testkit/virtual-time.js'
import { BurstLedger } from './burst-ledger.js'
import type { Holder } from './holder.js'
import { longestMs, QuotaBudget } from './quota-budget.js'

/** A fault that random histories have to find: texts of a compiled file, and what they become. */
interface QuotaMutant {
  readonly name: string
  readonly file: 'quota-budget.js' | 'holder.js'
  readonly edits: readonly (readonly [from: string, to: string])[]
  /** The first of the random histories that finds it. */
  readonly seed: number
}

const inFile =
  (file: QuotaMutant['file']) =>
  (name: string, seed: number, ...edits: QuotaMutant['edits']): QuotaMutant => ({ name, file, edits, seed })
const inBudget = inFile('quota-budget.js')
const inHolder = inFile('holder.js')

const QUOTA_MUTANTS: readonly QuotaMutant[] = [
  inBudget('a broken stream gives back at once', 13, [
    'holder.goneUntilMs = Math.max(nowMs, holder.inForce?.expiresByMs ?? 0, mayArrive)',
    'holder.goneUntilMs = nowMs',
  ]),
  inBudget('what was on its way when the stream broke does not arrive', 275, [
    'holder.sent !== undefined ? nowMs + this.#longestMs : 0',
    '0',
  ]),
  inHolder('a cut is free before it has arrived', 372, [
    'return Math.max(this.inForce?.tokensPerFill ?? 0, this.sent?.tokensPerFill ?? 0)',
    'return this.latest?.tokensPerFill ?? 0',
  ]),
  inBudget('new buckets are not paid', 4, ['this.#ledger.pay(paid)', 'paid = 0']),
  inBudget('assigned rates fill the ledger, too', 26, [
    'this.#numbers.ratePerSecond - this.assignedPerSecond * (1 + PACE)',
    'this.#numbers.ratePerSecond',
  ]),
  inBudget('the end is counted from the sending', 2992, [
    'expiresByMs: nowMs + this.#longestMs',
    'expiresByMs: sent.sentAtMs + this.#longestMs',
  ]),
  inBudget('buckets are as large as the ledger pays', 31, [
    'Math.min(this.#tokensFor(tokensPerFill), 1 + Math.floor(room))',
    'this.#numbers.burst',
  ]),
  inBudget(
    'a restarted service assigns at once',
    80,
    ['options.quietUntilMs ?? Number.NEGATIVE_INFINITY', 'Number.NEGATIVE_INFINITY'],
    ['options.quietUntilMs === undefined ? Number.POSITIVE_INFINITY : 0', 'Number.POSITIVE_INFINITY'],
    ['options.quietUntilMs ?? nowMs', 'nowMs'],
  ),
  inBudget('rates are given beyond the budget', 1, ['Math.min(lack + surplus / (2 * short.length), free)', 'lack']),
  inBudget('what comes back has nothing in force', 870, ['holder.inForce = (inForce ?? latest) && {', 'holder.inForce = undefined && {']),
  inBudget('timers that fire late are not allowed for', 275, ['ttlSeconds * 1_000 * (1 + PACE) + EXPIRY_SLACK_MS', 'ttlSeconds * 1_000']),
]

/** The budget with a fault: the compiled folder, copied, with one text changed. */
async function faultyBudget({ file, edits }: QuotaMutant): Promise<BudgetClass> {
  const compiled = fileURLToPath(import.meta.resolve('sluicegate-server/dist/quota/'))
  const folder = mkdtempSync(join(tmpdir(), 'quota-mutant-'))
  try {
    for (const name of readdirSync(compiled)) if (/^(?!.*\.test\.).*\.js$/.test(name)) cpSync(join(compiled, name), join(folder, name))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    let source = readFileSync(join(folder, file), 'utf8')
    for (const [from, to] of edits) {
      if (!source.includes(from)) throw new Error(`${file} does not contain: ${from}`)
      source = source.replace(from, to)
    }
    writeFileSync(join(folder, file), source)
    const { QuotaBudget } = (await import(pathToFileURL(join(folder, 'quota-budget.js')).href)) as { QuotaBudget: BudgetClass }
    return QuotaBudget
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Envoys under a steady load, over streams that work. */
interface QuotaLoad {
  readonly numbers: BudgetNumbers
  readonly ttlSeconds: number
  readonly reportMs: number
  readonly delayMs: number
  readonly seconds: number
  /** Requests a second at each Envoy, as a function of the second. */
  readonly demands: readonly ((second: number) => number)[]
  /** When the stream of the Envoy at this index breaks for good, with the requests of it. */
  readonly breaks?: ReadonlyMap<number, number>
  readonly seed?: number
}

/** What a load had. */
interface LoadResult {
  /** Admitted in each second, by all. */
  readonly admitted: readonly number[]
  /** Messages that changed or ended what an Envoy had, in each second. */
  readonly changes: readonly number[]
}

const STEP_MS = 5
const PLAN_MS = 50

function runLoad({ numbers, ttlSeconds, reportMs, delayMs, seconds, demands, breaks, seed = 1 }: QuotaLoad): LoadResult {
  const random = new Random(seed)
  const timeline = new Timeline()
  const budget = new QuotaBudget(numbers, { ttlSeconds, idleMs: 600_000 }, 0)
  const admitted = new Array<number>(seconds).fill(0)
  const changes = new Array<number>(seconds).fill(0)
  const envoys = demands.map(() => ({ envoy: new SimulatedEnvoy(), holder: undefined as Holder | undefined, counted: 0, isGone: false }))
  for (const [index, each] of envoys.entries()) {
    const step = (): void => {
      if (each.isGone) return
      const second = Math.floor(timeline.now / 1_000)
      const arrived = poisson(random, ((demands[index]?.(second) ?? 0) * STEP_MS) / 1_000)
      each.counted += arrived
      admitted[second] = (admitted[second] ?? 0) + each.envoy.admit(arrived, timeline.now / 1_000)
      timeline.at(timeline.now + STEP_MS, step)
    }
    const report = (): void => {
      if (each.isGone) return
      const { counted } = each
      each.counted = 0
      timeline.at(timeline.now + delayMs, () => {
        if (each.isGone) return
        if (each.holder === undefined) each.holder = budget.join(timeline.now)
        else budget.report(each.holder, counted, timeline.now)
      })
      timeline.at(timeline.now + reportMs, report)
    }
    timeline.at(random.fraction() * STEP_MS, step)
    timeline.at(random.fraction() * reportMs, report)
    const breakAt = breaks?.get(index)
    if (breakAt !== undefined)
      timeline.at(breakAt * 1_000, () => {
        each.isGone = true
        if (each.holder !== undefined) budget.leave(each.holder, timeline.now)
      })
  }
  const plan = (): void => {
    for (const { holder, assignment } of budget.plan(timeline.now)) {
      const to = envoys.find((each) => each.holder === holder)
      if (holder.sent?.kind !== 'renewal') {
        const second = Math.floor(timeline.now / 1_000)
        changes[second] = (changes[second] ?? 0) + 1
      }
      timeline.at(timeline.now + delayMs, () => to?.envoy.apply(assignment, timeline.now / 1_000))
      timeline.at(timeline.now + 2 * delayMs, () => budget.confirm(holder, timeline.now))
    }
    timeline.at(timeline.now + PLAN_MS, plan)
  }
  timeline.at(0, plan)
  timeline.runUntil(seconds * 1_000)
  return { admitted, changes }
}

/** The part of what the budget allows, or of what was wanted if that is less, from second `from` to before `to`. */
function utilisation({ admitted }: LoadResult, { numbers, demands }: QuotaLoad, from: number, to: number): number {
  let passed = 0
  let possible = 0
  for (let second = from; second < to; second++) {
    passed += admitted[second] ?? 0
    const wanted = demands.reduce((sum, demand) => sum + demand(second), 0)
    possible += Math.min(numbers.ratePerSecond, wanted)
  }
  return passed / possible
}

/** By Knuth for small means, by the normal approximation above. */
function poisson(random: Random, mean: number): number {
  if (mean > 30) {
    const normal = Math.sqrt(-2 * Math.log(1 - random.fraction())) * Math.cos(2 * Math.PI * random.fraction())
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal))
  }
  const limit = Math.exp(-mean)
  let count = 0
  for (let product = random.fraction(); product > limit; product *= random.fraction()) count++
  return count
}

const HISTORIES = shortOrLong(50, 120)
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

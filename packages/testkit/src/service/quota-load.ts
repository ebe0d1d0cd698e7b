import type { Holder } from 'sluicegate-server/dist/quota/holder.js'
import { type BudgetNumbers, QuotaBudget } from 'sluicegate-server/dist/quota/quota-budget.js'
import { Random } from 'sluicegate-testkit'
import { SimulatedEnvoy } from './simulated-envoy.js'
import { Timeline } from './timeline.js'

/** Envoys under a steady load, over streams that work. */
export interface QuotaLoad {
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
export interface LoadResult {
  /** Admitted in each second, by all. */
  readonly admitted: readonly number[]
  /** Messages that changed or ended what an Envoy had, in each second. */
  readonly changes: readonly number[]
}

const STEP_MS = 5
const PLAN_MS = 50

export function runLoad({ numbers, ttlSeconds, reportMs, delayMs, seconds, demands, breaks, seed = 1 }: QuotaLoad): LoadResult {
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
      timeline.add(timeline.now + STEP_MS, step)
    }
    const report = (): void => {
      if (each.isGone) return
      const { counted } = each
      each.counted = 0
      timeline.add(timeline.now + delayMs, () => {
        if (each.isGone) return
        if (each.holder === undefined) each.holder = budget.join(timeline.now)
        else budget.report(each.holder, counted, timeline.now)
      })
      timeline.add(timeline.now + reportMs, report)
    }
    timeline.add(random.fraction() * STEP_MS, step)
    timeline.add(random.fraction() * reportMs, report)
    const breakAt = breaks?.get(index)
    if (breakAt !== undefined)
      timeline.add(breakAt * 1_000, () => {
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
      timeline.add(timeline.now + delayMs, () => to?.envoy.apply(assignment, timeline.now / 1_000))
      timeline.add(timeline.now + 2 * delayMs, () => budget.confirm(holder, timeline.now))
    }
    timeline.add(timeline.now + PLAN_MS, plan)
  }
  timeline.add(0, plan)
  timeline.runUntil(seconds * 1_000)
  return { admitted, changes }
}

/** The part of what the budget allows, or of what was wanted if that is less, from second `from` to before `to`. */
export function utilisation({ admitted }: LoadResult, { numbers, demands }: QuotaLoad, from: number, to: number): number {
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

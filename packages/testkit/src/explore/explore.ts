import { describeOutcome } from './call.js'
import { isRate } from './explored-policy.js'
import type { ExploredThread } from './explored-thread.js'
import { admittedOf, isWithinBudget } from './ledger.js'
import { explanation, type History } from './linearization.js'
import { hasVerb, type Scenario } from './scenario.js'
import { Search, type SearchBounds, type Stretch, Walk, type WalkBounds } from './search.js'
import { World } from './world.js'

const MOST_CALLS = 64
const numbers = new Float64Array(1 + MOST_CALLS * 5)
const halves = new Int32Array(numbers.buffer)

/**
 * 53 bits of everything that judges a schedule: answers, their reasons, which call had ended before which began. Schedules with
 * the same outcome are judged once; among a million outcomes two share a number by chance once in 10^4 runs.
 */
function signatureOf(threads: readonly ExploredThread[], evictions: number): number {
  let used = 0
  numbers[used++] = evictions
  for (let a = 0; a < threads.length; a++) {
    const { values, mores, untils, whys, forgotten, began, ended } = threads[a] as ExploredThread
    for (let i = 0; i < values.length; i++) {
      const endedAt = ended[i] as number
      numbers[used++] = endedAt === Number.POSITIVE_INFINITY ? -0.5 : (values[i] as number)
      numbers[used++] =
        ((whys[i] as number) * 4_294_967_296 + (began[i] === Number.POSITIVE_INFINITY ? 1 : 0)) *
        (endedAt === Number.POSITIVE_INFINITY ? 0.5 : 1)
      numbers[used++] = endedAt === Number.POSITIVE_INFINITY ? (untils[i] as number) : (mores[i] as number)
      numbers[used++] = whys[i] === 0 ? -1 : (forgotten[i] as number)
      numbers[used++] = precededBy(threads, a, began[i] as number)
    }
  }
  let one = 0x811c9dc5
  let two = 0x9e3779b9
  for (let i = 0; i < used * 2; i++) {
    const half = halves[i] as number
    one = Math.imul(one ^ half, 0x01000193)
    one ^= one >>> 15
    two = Math.imul(two ^ half, 0x85ebca6b)
    two ^= two >>> 13
  }
  return (one >>> 0) * 2_097_152 + (two >>> 11)
}

/** A bit for each call of another thread that had ended before. */
function precededBy(threads: readonly ExploredThread[], self: number, began: number): number {
  let bits = 0
  for (let b = 0; b < threads.length; b++) {
    const { ended } = threads[b] as ExploredThread
    for (let i = 0; i < ended.length; i++) bits = bits * 2 + (b !== self && (ended[i] as number) < began ? 1 : 0)
  }
  return bits
}

/** A schedule that went wrong. */
export interface Violation {
  readonly what: string
  readonly schedule: readonly Stretch[]
  readonly calls: readonly string[]
}

export interface Exploration {
  readonly schedules: number
  /** Distinct outcomes, each judged once. */
  readonly outcomes: number
  /** Whether all schedules within the bounds, or all that were to be drawn, were run. */
  readonly complete: boolean
  readonly seconds: number
  readonly violation: Violation | undefined
}

const ENDLESS = 'a call does not end'
const TRAPPED = 'the core met what cannot be'

/** Runs a scenario through all schedules within bounds, or some at random, and judges each; stops at the first that goes wrong. */
export function explore(module: WebAssembly.Module, scenario: Scenario, bounds: SearchBounds | WalkBounds): Exploration {
  const startMs = performance.now()
  const world = new World(module, scenario)
  const judged = new Set<number>()
  let what: string | undefined
  const visit = (): boolean => {
    world.reset()
    if (isTrapped(() => search.runAll())) {
      what = TRAPPED
      return false
    }
    const kills = search.kills
    what = !kills && world.threads.some(({ isDone }) => !isDone) ? ENDLESS : world.table.fault(kills)
    world.audit()
    if (!world.isAudited) what = ENDLESS
    what ??= world.table.fault(kills)
    const signature = signatureOf(world.results, world.table.evictions)
    if (what === undefined && !judged.has(signature)) {
      judged.add(signature)
      what = judge(scenario, world.history())
    }
    return what === undefined
  }
  const search = 'walks' in bounds ? new Walk(world.threads, bounds, visit) : new Search(world.threads, bounds, visit)
  const complete = search.run()
  const violation =
    what === undefined ? undefined : { what, schedule: search.stretchesRun, calls: world.history().outcomes.map(describeOutcome) }
  if (violation === undefined && !world.isClean()) throw new Error(`"${scenario.name}": a schedule wrote where none was expected to`)
  return { schedules: search.schedules, outcomes: judged.size, complete, seconds: (performance.now() - startMs) / 1000, violation }
}

function isTrapped(run: () => void): boolean {
  try {
    run()
    return false
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) return true
    throw error
  }
}

/** What is wrong with a history; undefined when nothing is. */
function judge(scenario: Scenario, history: History): string | undefined {
  const { outcomes, evictions, uncounted } = history
  if (outcomes.some(({ why }) => why === 'CONTENDED')) return 'a call gave up'
  if (outcomes.filter(({ why }) => why === 'EVICTED').length > evictions) return 'a call reports that it forgot a key, and did not'
  const lowers = (['refund', 'reset', 'update'] as const).some((verb) => hasVerb(scenario, verb))
  for (let key = 0; isRate(scenario.policy) && !lowers && key < scenario.homes.length; key++) {
    // What is forgotten is worth at most a burst less one token.
    const excused = (evictions + uncounted) * (scenario.policy.burst - 1) * scenario.policy.unitsPerToken
    if (!isWithinBudget(admittedOf(outcomes, key), scenario.policy, excused))
      return `more was admitted of key ${key} than its policy allows`
  }
  return explanation(history) === undefined ? 'no order of the calls explains their answers' : undefined
}

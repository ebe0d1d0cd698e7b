import type { LoadResult } from 'sluicegate-commands/load/load-result.js'
import type { ReportMark } from 'sluicegate-commands/report/report.js'
import { Random } from 'sluicegate-testkit'
import { type RecordedAnswer, worstKey } from '../admissions.js'
import { admittedOverTime, machineUs, rounded } from '../lab-load.js'
import { type Recovery, recoveryOf } from '../recovery.js'
import { type LabPolicy, sumOfCounters } from '../service-node.js'
import { OCEAN_POLICIES, type Ocean, type OceanPolicy } from './ocean.js'
import { OceanLoad } from './ocean-load.js'
import { type OceanScenario, PARTS } from './ocean-scenarios.js'

const SAMPLE_MS = 500
/** How far a replica may be behind. */
const FORGOTTEN_MS = 1_100
/** Of the budget, taken at once before the load. */
const DRAINED = 0.9
const DEMAND = 2
const LIMIT = 100

/** What one scenario measured, and whether its invariants held. */
export interface OceanResult {
  readonly name: string
  readonly policy: OceanPolicy
  readonly seed: number
  readonly seconds: number
  readonly sent: number
  readonly allowed: number
  readonly denied: number
  readonly errors: number
  readonly unanswered: number
  readonly errorTexts: Readonly<Record<string, number>>
  readonly perSecond: number
  /** From sending to the answer. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly slowDecisions: number
  /** A second and region. */
  readonly homeCalls: number
  /** Tokens over the policy, of all regions together. */
  readonly over: number
  readonly allowedOver: number
  /** Tokens that regions admitted without the home. */
  readonly outageTokens: number
  /** Steps ahead of the clocks of regions, each of which may have refilled a share. */
  readonly shareRefills: number
  readonly plot: { readonly xs: readonly number[]; readonly byRegion: readonly (readonly number[])[]; readonly budget: number }
  readonly marks: readonly ReportMark[]
  readonly recovery: Recovery | null
  readonly violations: readonly string[]
}

export async function runOcean(ocean: Ocean, scenario: OceanScenario, seed: number): Promise<OceanResult> {
  const random = new Random(seed)
  const policyName = scenario.policy ?? random.pick(['bucket', 'window'] as const)
  const given: LabPolicy = OCEAN_POLICIES[policyName]
  const policy = { ...given, limit: scenario.highestLimit ?? given.limit }
  const load = new OceanLoad(ocean, policyName, random)
  const sample = (): Promise<unknown> => Promise.all(ocean.nodes.map((node) => node.sample()))
  const counters = (): ReturnType<typeof sumOfCounters> => sumOfCounters(ocean.nodes.map((node) => node.counters))
  await sample()
  const before = counters()
  const refillsBefore = refillsOf(ocean)
  await load.drain(Math.floor(DRAINED * given.burst))
  await load.demand(PARTS.map((part) => Math.round(part * (scenario.demand ?? DEMAND) * LIMIT)))
  const startUs = machineUs()
  const sampling = setInterval(() => void sample(), SAMPLE_MS)
  const marks: ReportMark[] = []
  const sinceS = (): number => (machineUs() - startUs) / 1_000_000
  try {
    await scenario.run({
      ocean,
      load,
      random,
      fault: async (label, run) => {
        const fromX = sinceS()
        await run()
        marks.push({ fromX, toX: sinceS(), label })
      },
    })
  } finally {
    clearInterval(sampling)
    await load.stop()
  }
  const seconds = sinceS()
  await sample()
  const after = counters()
  const byRegion = load.answers()
  const answers = byRegion.flat()
  const { over } = worstKey(policy, answers)
  const outageTokens = after.outageTokens - before.outageTokens
  const bySecond = (LIMIT * FORGOTTEN_MS) / 1_000
  const refills = refillsOf(ocean)
  const homeRefills = refills.home - refillsBefore.home
  const plotted = byRegion.map((each) => admittedOverTime(each, startUs, seconds))
  const xs = plotted[0]?.xs ?? []
  const all = admittedOverTime(answers, startUs, seconds)
  const measured = {
    name: scenario.name,
    policy: policyName,
    seed,
    seconds: rounded(seconds),
    ...countsOf(load.results),
    perSecond: rounded(load.results.reduce((sum, { sent }) => sum + sent, 0) / seconds),
    ...latencyOf(answers),
    slowDecisions: after.slowDecisions - before.slowDecisions,
    homeCalls: rounded((after.homeCalls - before.homeCalls) / seconds / ocean.regions.length),
    over: rounded(over),
    allowedOver: rounded(outageTokens + (scenario.failovers ?? 0) * (policy.burst + bySecond) + homeRefills * policy.burst),
    outageTokens,
    shareRefills: refills.shares - refillsBefore.shares,
    plot: { xs, byRegion: plotted.map(({ admitted }) => admitted), budget: LIMIT },
    marks,
    recovery: recoveryOf(all, marks) ?? null,
  }
  return { ...measured, violations: violationsOf(measured, policy) }
}

/** Steps of clocks ahead so far: as much time seems to have passed, and what is full then admits a burst more. */
function refillsOf({ home, regions }: Ocean): { readonly home: number; readonly shares: number } {
  return { home: home.stepsAhead, shares: regions.reduce((sum, { stepsAhead }) => sum + stepsAhead, 0) }
}

type Counts = Pick<OceanResult, 'sent' | 'allowed' | 'denied' | 'errors' | 'unanswered' | 'errorTexts'>

function countsOf(results: readonly LoadResult[]): Counts {
  const sum = (of: (result: LoadResult) => number): number => results.reduce((all, each) => all + of(each), 0)
  return {
    sent: sum(({ sent }) => sent),
    allowed: sum(({ allowed }) => allowed),
    denied: sum(({ denied }) => denied),
    errors: sum(({ errors }) => errors),
    unanswered: sum(({ unanswered }) => unanswered),
    errorTexts: Object.assign({}, ...results.map(({ errorTexts }) => errorTexts)),
  }
}

function latencyOf(answers: readonly RecordedAnswer[]): { p50Ms: number; p99Ms: number } {
  const took = answers.map(({ fromUs, toUs }) => toUs - fromUs).sort((a, b) => a - b)
  const at = (part: number): number => rounded((took[Math.floor(part * took.length)] ?? 0) / 1_000)
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}

function violationsOf(result: Omit<OceanResult, 'violations'>, { burst, limit, windowMs }: LabPolicy): string[] {
  const { over, allowedOver, outageTokens, shareRefills, errors, errorTexts, unanswered, allowed, seconds } = result
  const violations: string[] = []
  if (over > allowedOver) violations.push(`regions are ${over} tokens over the policy, ${allowedOver} are allowed`)
  // The shares of all regions are one policy.
  const shares = (1 + shareRefills) * burst + (limit * seconds * 1_000) / windowMs
  if (outageTokens > shares) violations.push(`${outageTokens} tokens were admitted without the home, ${shares} are allowed`)
  if (allowed === 0) violations.push('nothing was admitted')
  if (errors > 0) violations.push(`${errors} requests failed: ${JSON.stringify(errorTexts)}`)
  if (unanswered > 0) violations.push(`${unanswered} requests have no answer`)
  return violations
}

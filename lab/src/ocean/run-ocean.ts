import { Random } from 'sluicegate-testkit'
import { type RecordedAnswer, worstKey } from '../admissions.js'
import { admittedOverTime, countsOf, type LoadCounts, machineUs, marked, rounded, sampled } from '../lab-load.js'
import { recoveryOf } from '../recovery.js'
import { type LabPolicy, sumOfCounters } from '../service-node.js'
import { OCEAN_POLICIES, type Ocean, OceanLoad } from './ocean.js'
import { type OceanScenario, PARTS } from './ocean-scenarios.js'

/** How far a replica may be behind. */
const FORGOTTEN_MS = 1_100
/** Of the budget, taken at once before the load. */
const DRAINED = 0.9
const DEMAND = 2
const LIMIT = 100

/** What one scenario measured, and whether its invariants held. */
export type OceanResult = Awaited<ReturnType<typeof runOcean>>

export async function runOcean(ocean: Ocean, scenario: OceanScenario, seed: number) {
  const random = new Random(seed)
  const policyName = scenario.policy ?? random.pick(['bucket', 'window'] as const)
  const given: LabPolicy = OCEAN_POLICIES[policyName]
  const policy = { ...given, limit: scenario.highestLimit ?? given.limit }
  const load = new OceanLoad(ocean, policyName, random)
  const counters = (): ReturnType<typeof sumOfCounters> => sumOfCounters(ocean.nodes.map((node) => node.counters))
  await sampled(ocean.nodes)
  const before = counters()
  const refillsBefore = refillsOf(ocean)
  await load.drain(Math.floor(DRAINED * given.burst))
  await load.demand(PARTS.map((part) => Math.round(part * (scenario.demand ?? DEMAND) * LIMIT)))
  const { startUs, marks } = await marked(
    ocean.nodes,
    (fault) => scenario.run({ ocean, load, random, fault }),
    () => load.stop(),
  )
  const seconds = (machineUs() - startUs) / 1_000_000
  await sampled(ocean.nodes)
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
    /** From sending to the answer. */
    ...latencyOf(answers),
    slowDecisions: after.slowDecisions - before.slowDecisions,
    /** A second and region. */
    homeCalls: rounded((after.homeCalls - before.homeCalls) / seconds / ocean.regions.length),
    /** Tokens over the policy, of all regions together. */
    over: rounded(over),
    allowedOver: rounded(outageTokens + (scenario.failovers ?? 0) * (policy.burst + bySecond) + homeRefills * policy.burst),
    /** Tokens that regions admitted without the home. */
    outageTokens,
    /** Steps ahead of the clocks of regions, each of which may have refilled a share. */
    shareRefills: refills.shares - refillsBefore.shares,
    plot: { xs, byRegion: plotted.map(({ admitted }) => admitted), budget: LIMIT },
    marks,
    recovery: recoveryOf(all, marks),
  }
  return { ...measured, violations: violationsOf(measured, policy) }
}

/** Steps of clocks ahead so far: as much time seems to have passed, and what is full then admits a burst more. */
function refillsOf({ home, regions }: Ocean): { readonly home: number; readonly shares: number } {
  return { home: home.stepsAhead, shares: regions.reduce((sum, { stepsAhead }) => sum + stepsAhead, 0) }
}

function latencyOf(answers: readonly RecordedAnswer[]): { p50Ms: number; p99Ms: number } {
  const took = answers.map(({ fromUs, toUs }) => toUs - fromUs).sort((a, b) => a - b)
  const at = (part: number): number => rounded((took[Math.floor(part * took.length)] ?? 0) / 1_000)
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}

type Checked = Readonly<Record<'seconds' | 'over' | 'allowedOver' | 'outageTokens' | 'shareRefills', number>>

function violationsOf(result: LoadCounts & Checked, { burst, limit, windowMs }: LabPolicy): string[] {
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

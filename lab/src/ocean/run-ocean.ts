import { Random } from 'sluicegate-testkit'
import { quantile } from 'sluicegate-testkit/samples.js'
import { admittedOverTime, recoveryOf } from '../admissions.js'
import { rounded } from '../lab-load.js'
import { figuresOf, forgottenBy, observed, violationsIn } from '../run-scenario.js'
import type { LabPolicy } from '../service-node.js'
import { OCEAN_POLICIES, type Ocean, OceanLoad } from './ocean.js'
import { type OceanScenario, PARTS } from './ocean-scenarios.js'

/** Of the budget, taken at once before the load. */
const DRAINED = 0.9
const DEMAND = 2
const LIMIT = 100

/** What one scenario of regions measured, and whether its invariants held. */
export type OceanResult = Awaited<ReturnType<typeof runOcean>>

export async function runOcean(ocean: Ocean, scenario: OceanScenario, seed: number) {
  const random = new Random(seed)
  const policyName = scenario.policy ?? random.pick(['bucket', 'window'] as const)
  const given: LabPolicy = OCEAN_POLICIES[policyName]
  const policy = { ...given, limit: scenario.highestLimit ?? given.limit }
  const load = new OceanLoad(ocean, policyName, random)
  const refillsBefore = refillsOf(ocean)
  const seen = await observed(
    ocean.nodes,
    async () => {
      await load.drain(Math.floor(DRAINED * given.burst))
      await load.demand(PARTS.map((part) => Math.round(part * (scenario.demand ?? DEMAND) * LIMIT)))
      return load
    },
    (_, fault) => scenario.run({ ocean, load, random, fault }),
  )
  const { startUs, seconds, marks, answers, since } = seen
  const all = answers.flat()
  const tookMs = all.map(({ fromUs, toUs }) => (toUs - fromUs) / 1_000).sort((a, b) => a - b)
  const refills = refillsOf(ocean)
  const homeRefills = refills.home - refillsBefore.home
  const plotted = answers.map((each) => admittedOverTime(each, startUs, seconds))
  const figures = figuresOf(seen, policy)
  const measured = {
    name: scenario.name,
    policy: policyName,
    seed,
    seconds: rounded(seconds),
    perSecond: rounded(figures.sent / seconds),
    /** From sending to the answer. */
    p50Ms: rounded(quantile(tookMs, 0.5)),
    p99Ms: rounded(quantile(tookMs, 0.99)),
    ...figures,
    /** A second and region. */
    homeCalls: rounded(since('homeCalls') / seconds / ocean.regions.length),
    /** Of all regions together. */
    allowedOver: rounded(figures.outageTokens + forgottenBy(scenario.failovers, policy) + homeRefills * policy.burst),
    /** Steps ahead of the clocks of regions, each of which may have refilled a share. */
    shareRefills: refills.shares - refillsBefore.shares,
    plot: { xs: plotted[0]?.xs ?? [], byRegion: plotted.map(({ admitted }) => admitted), budget: LIMIT },
    recovery: recoveryOf(admittedOverTime(all, startUs, seconds), marks),
  }
  const { burst, limit, windowMs } = policy
  const violations = violationsIn(measured)
  // The shares of all regions are one policy.
  const shares = (1 + measured.shareRefills) * burst + (limit * seconds * 1_000) / windowMs
  if (figures.outageTokens > shares) violations.push(`${figures.outageTokens} tokens were admitted without the home, ${shares} are allowed`)
  return { ...measured, violations }
}

/** Steps of clocks ahead so far: as much time seems to have passed, and what is full then admits a burst more. */
function refillsOf({ home, regions }: Ocean): { readonly home: number; readonly shares: number } {
  return { home: home.stepsAhead, shares: regions.reduce((sum, { stepsAhead }) => sum + stepsAhead, 0) }
}

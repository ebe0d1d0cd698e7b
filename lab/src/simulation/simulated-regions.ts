import { tokenBucket } from 'sluicegate'
import { type DemandOf, regionUse } from 'sluicegate-testkit/regions/region-world.js'

/** A part of the demand in three regions: requests a second in each. */
interface Phase {
  readonly name: 'full' | 'again' | 'below' | 'before' | 'shift'
  readonly seconds: number
  readonly rates: readonly number[]
}

/** What passed in a part, of what the limit lets pass, and the calls to the home, a second and region. */
export interface SimulatedPhase {
  readonly name: Phase['name']
  readonly use: number
  readonly calls: number
}

const LIMIT = 100
/** Each way between a region and the home. */
const DELAYS_MS = [40, 80, 150] as const
/** What regions without demand saved is spent before a part that counts. */
const PHASES: readonly Phase[] = [
  { name: 'full', seconds: 5, rates: [300, 180, 120] },
  { name: 'again', seconds: 8, rates: [45, 27, 18] },
  { name: 'below', seconds: 60, rates: [45, 27, 18] },
  { name: 'before', seconds: 4, rates: [90, 0, 0] },
  { name: 'shift', seconds: 120, rates: [0, 0, 90] },
]
const COUNTED: readonly Phase['name'][] = ['below', 'shift']

/** Three regions of the library and their home in virtual time, as a mean of some runs. */
export async function simulatedRegions(seed: number, runs: number): Promise<readonly SimulatedPhase[]> {
  const rates = PHASES.flatMap((phase) => Array.from({ length: phase.seconds }, () => phase.rates))
  const demand = DELAYS_MS.map(
    (_, i): DemandOf =>
      (second) =>
        rates[second]?.[i] ?? 0,
  )
  const policy = tokenBucket({ limit: LIMIT, window: '1s', burst: 1_000, name: 'api' })
  const phases = COUNTED.map((name) => ({ name, use: 0, calls: 0 }))
  for (let run = 0; run < runs; run++) {
    const use = await regionUse({ policy, delaysMs: DELAYS_MS, demand, seconds: rates.length, warmUpS: 0, seed: seed + run })
    for (const phase of phases) {
      const [from, to] = secondsOf(phase.name)
      const sum = (seconds: readonly number[]): number => seconds.slice(from, to).reduce((all, each) => all + each, 0)
      const [asked, admitted] = [use.askedBySecond, use.bySecond].map((rows) => rows.reduce((all, row) => all + sum(row), 0)) as [
        number,
        number,
      ]
      phase.use += admitted / Math.min(asked, LIMIT * (to - from)) / runs
      phase.calls += sum(use.callsBySecond) / (to - from) / DELAYS_MS.length / runs
    }
  }
  return phases
}

function secondsOf(name: Phase['name']): readonly [from: number, to: number] {
  const at = PHASES.findIndex((phase) => phase.name === name)
  const from = PHASES.slice(0, at).reduce((sum, { seconds }) => sum + seconds, 0)
  return [from, from + (PHASES[at]?.seconds ?? 0)]
}

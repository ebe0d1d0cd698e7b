import { tokenBucket } from 'sluicegate'
import { type DemandOf, regionUse } from 'sluicegate-testkit/regions/region-use.js'
import { CHECKED, type Phase } from './region-traffic.js'
import { REGIONS, SHARED } from './region-ways.js'
import type { SimulatedPhase } from './regions-page.js'

/** A key that is cold for a moment makes one run of some seconds differ much from the next. */
const RUNS = 10

/** The same traffic in virtual time, up to the end of a phase: what passed in the phase, and its messages. */
export async function simulated(delaysMs: readonly number[], seed: number): Promise<SimulatedPhase[]> {
  return [await simulatedPhase('below', delaysMs, seed), await simulatedPhase('shift', delaysMs, seed)]
}

async function simulatedPhase(name: Phase['name'], delaysMs: readonly number[], seed: number): Promise<SimulatedPhase> {
  const last = CHECKED.findIndex((phase) => phase.name === name)
  const rates = CHECKED.slice(0, last + 1).flatMap((phase) => Array.from({ length: phase.seconds }, () => phase.rates))
  const seconds = CHECKED[last]?.seconds ?? 0
  const warmUpS = rates.length - seconds
  const demand = Array.from(
    { length: REGIONS },
    (_, i): DemandOf =>
      (second) =>
        rates[second]?.[i] ?? 0,
  )
  const policy = tokenBucket({ limit: 100, window: '1s', burst: 1_000, name: 'api' })
  let [used, messages] = [0, 0]
  for (let run = 0; run < RUNS; run++) {
    const use = await regionUse({ policy, delaysMs, demand, seconds: rates.length, warmUpS, seed: seed + run })
    const asked = use.askedBySecond.reduce((sum, row) => sum + row.slice(warmUpS).reduce((all, each) => all + each, 0), 0)
    used += use.admitted / Math.min(asked, SHARED.limit * seconds) / RUNS
    messages += use.messages / RUNS
  }
  return { name, use: used, messages }
}

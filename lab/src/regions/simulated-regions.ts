import { tokenBucket } from 'sluicegate'
import { type DemandOf, regionUse } from 'sluicegate-testkit/regions/region-use.js'
import { PHASES, type Phase } from './region-traffic.js'
import { REGIONS } from './region-ways.js'
import type { SimulatedPhase } from './regions-page.js'

/** The same traffic in virtual time, up to the end of a phase: what passed in the phase, and its messages. */
export async function simulated(delaysMs: readonly number[], seed: number): Promise<SimulatedPhase[]> {
  return [await simulatedPhase('twice', delaysMs, seed), await simulatedPhase('shift', delaysMs, seed)]
}

async function simulatedPhase(name: Phase['name'], delaysMs: readonly number[], seed: number): Promise<SimulatedPhase> {
  const last = PHASES.findIndex((phase) => phase.name === name)
  const rates = PHASES.slice(0, last + 1).flatMap((phase) => Array.from({ length: phase.seconds }, () => phase.rates))
  const seconds = PHASES[last]?.seconds ?? 0
  const warmUpS = rates.length - seconds
  const demand = Array.from(
    { length: REGIONS },
    (_, i): DemandOf =>
      (second) =>
        rates[second]?.[i] ?? 0,
  )
  const policy = tokenBucket({ limit: 100, window: '1s', burst: 1_000, name: 'api' })
  const use = await regionUse({ policy, delaysMs, demand, seconds: rates.length, warmUpS, seed })
  const asked = use.askedBySecond.reduce((sum, row) => sum + row.slice(warmUpS).reduce((all, each) => all + each, 0), 0)
  return { name, use: use.admitted / Math.min(asked, 100 * seconds), messages: use.messages }
}

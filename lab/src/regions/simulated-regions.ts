import { tokenBucket } from 'sluicegate'
import { type DemandOf, regionUse } from 'sluicegate-testkit/regions/region-use.js'
import { CHECKED, type Phase, RUNS } from './region-traffic.js'
import { REGIONS, SHARED } from './region-ways.js'
import type { SimulatedPhase } from './regions-page.js'

const NAMES = ['below', 'shift'] as const

/** The same traffic in virtual time, as a mean of some runs: what passed in two phases of it, and their calls to the home. */
export async function simulated(delaysMs: readonly number[], seed: number, runs = RUNS): Promise<SimulatedPhase[]> {
  const rates = CHECKED.flatMap((phase) => Array.from({ length: phase.seconds }, () => phase.rates))
  const demand = Array.from(
    { length: REGIONS },
    (_, i): DemandOf =>
      (second) =>
        rates[second]?.[i] ?? 0,
  )
  const policy = tokenBucket({ limit: 100, window: '1s', burst: 1_000, name: 'api' })
  const phases = NAMES.map((name) => ({ name, use: 0, calls: 0 }))
  for (let run = 0; run < runs; run++) {
    const { bySecond, askedBySecond, callsBySecond } = await regionUse({
      policy,
      delaysMs,
      demand,
      seconds: rates.length,
      warmUpS: 0,
      seed: seed + run,
    })
    for (const phase of phases) {
      const [from, to] = secondsOf(phase.name)
      const sum = (seconds: readonly number[]): number => seconds.slice(from, to).reduce((all, each) => all + each, 0)
      const [asked, admitted] = [askedBySecond, bySecond].map((rows) => rows.reduce((all, row) => all + sum(row), 0)) as [number, number]
      phase.use += admitted / Math.min(asked, SHARED.limit * (to - from)) / runs
      phase.calls += sum(callsBySecond) / (to - from) / REGIONS / runs
    }
  }
  return phases
}

function secondsOf(name: Phase['name']): readonly [from: number, to: number] {
  const at = CHECKED.findIndex((phase) => phase.name === name)
  const from = CHECKED.slice(0, at).reduce((sum, { seconds }) => sum + seconds, 0)
  return [from, from + (CHECKED[at]?.seconds ?? 0)]
}

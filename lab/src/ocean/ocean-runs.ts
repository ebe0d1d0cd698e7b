import type { Random } from 'sluicegate-testkit'
import { Ocean } from './ocean.js'
import type { OceanScenario } from './ocean-scenarios.js'
import { type OceanResult, runOcean } from './run-ocean.js'

/** Scenarios with three regions, one after the other, or in random order for a time. */
export interface OceanRuns {
  readonly scenarios: readonly OceanScenario[]
  readonly soakMs: number | undefined
  readonly random: Random
  /** After each scenario: what fails later takes nothing back. */
  ran(results: readonly OceanResult[]): void
}

export async function runOceans({ scenarios, soakMs, random, ran }: OceanRuns): Promise<OceanResult[]> {
  const results: OceanResult[] = []
  await using ocean = await Ocean.start()
  const endMs = performance.now() + (soakMs ?? 0)
  for (let i = 0; soakMs === undefined ? i < scenarios.length : performance.now() < endMs; i++) {
    const scenario = soakMs === undefined ? scenarios[i] : random.pick(scenarios)
    if (scenario === undefined) break
    const result = await runOcean(ocean, scenario, random.integer(0, 2 ** 31))
    results.push(result)
    console.log(oceanText(result))
    ran(results)
  }
  return results
}

function oceanText({ name, policy, perSecond, p99Ms, homeCalls, over, allowedOver, violations }: OceanResult): string {
  const figures = `${perSecond}/s, 99 % ${p99Ms} ms, ${homeCalls} calls to the home a second and region, ${over} over of ${allowedOver}`
  return `${name} (${policy}): ${figures}; ${violations.join('; ') || 'invariants hold'}`
}

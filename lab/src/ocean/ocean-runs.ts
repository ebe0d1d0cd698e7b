import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import type { Random } from 'sluicegate-testkit'
import { Ocean } from './ocean.js'
import { oceanSoakResult, type SavedOcean, type SavedOceanSoak, type SavedOceans } from './ocean-page.js'
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

const RESULTS = new URL('../../results/', import.meta.url)

/** The results that are committed. */
export function savedOceans(): SavedOceans {
  const read = <Saved>(name: string): Saved | undefined => {
    const file = new URL(name, RESULTS)
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Saved) : undefined
  }
  const [ocean, oceanSoak] = [read<SavedOcean>('ocean.json'), read<SavedOceanSoak>('ocean-soak.json')]
  return { ...(ocean && { ocean }), ...(oceanSoak && { oceanSoak }) }
}

/** Saves a run, a scenario a line. @param minutes of a soak, of which less is kept. */
export function saveOcean({ results, ...setting }: SavedOcean, minutes?: number): void {
  mkdirSync(RESULTS, { recursive: true })
  const head = minutes === undefined ? setting : { ...setting, minutes }
  const lines = results.map((each) => ` ${JSON.stringify(minutes === undefined ? each : oceanSoakResult(each))}`)
  const text = `${JSON.stringify(head).slice(0, -1)},"results":[\n${lines.join(',\n')}\n]}\n`
  writeFileSync(new URL(minutes === undefined ? 'ocean.json' : 'ocean-soak.json', RESULTS), text)
}

import { mkdirSync, writeFileSync } from 'node:fs'
import type { OceanResult } from './ocean/run-ocean.js'
import type { ScenarioResult } from './run-scenario.js'
import type { NodeSettings } from './service-node.js'

export type { OceanResult, ScenarioResult }

/** Where, when and how results were measured. */
export interface Saved {
  /** The machine and the date. */
  readonly where: string
  readonly seed: number
  readonly nodes?: number
  /** Requests a second. */
  readonly rate?: number
  /** Of a soak. */
  readonly minutes?: number
}

/** A file of `lab/results`. */
export interface SavedLab<Result> extends Saved {
  readonly results: readonly Result[]
}

/** What of a scenario in a soak is kept. */
export type SoakResult = Pick<ScenarioResult, 'name' | 'seed' | 'sent' | 'errors' | 'over' | 'allowedOver' | 'violations'> & {
  readonly recovery?: ScenarioResult['recovery']
  readonly endedMinute: number
}

/** A way to hold one limit on many servers. */
export interface Way {
  readonly name: string
  readonly title: string
  /** By node: of the whole policy. */
  readonly share: number
  readonly isShared: boolean
  readonly mode: NodeSettings['mode']
  /** Whether the load balancer sends a key always to the same node. */
  readonly isAffine: boolean
}

/** What one way measured. */
export interface Compared {
  readonly way: Way
  readonly result: ScenarioResult
  readonly useWhole: number
  readonly useDead: number
}

export interface LabFiles {
  readonly lab: SavedLab<ScenarioResult>
  readonly soak: SavedLab<SoakResult>
  readonly ocean: SavedLab<OceanResult>
  readonly 'ocean-soak': SavedLab<SoakResult>
  readonly 'many-servers': SavedLab<Compared>
}

const RESULTS = new URL('../results/', import.meta.url)

export function soakResult(result: ScenarioResult | OceanResult, endedMinute: number): SoakResult {
  const { name, seed, sent, errors, over, allowedOver, recovery, violations } = result
  return { name, seed, sent, errors, over, allowedOver, recovery, violations, endedMinute }
}

/** Saves a run as a file of results, a scenario a line. */
export function saveRun<Name extends keyof LabFiles>(name: Name, { results, where, seed, nodes, rate, minutes }: LabFiles[Name]): void {
  mkdirSync(RESULTS, { recursive: true })
  const head = JSON.stringify({ kind: name, where, seed, nodes, rate, minutes }).slice(0, -1)
  const lines = results.map((each) => ` ${JSON.stringify(each)}`).join(',\n')
  writeFileSync(new URL(`${name}.json`, RESULTS), `${head},"results":[\n${lines}\n]}\n`)
}

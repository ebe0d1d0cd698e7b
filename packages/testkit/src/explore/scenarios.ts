import { HITS } from './hit-scenarios.js'
import { CLAIMS, FORGETTING, TAKE_OVERS } from './newcomer-scenarios.js'
import type { Scenario } from './scenario.js'
import { UPDATES } from './update-scenarios.js'

/** Every question asked of the core, in the order in which they were found worth asking. */
export const SCENARIOS: readonly Scenario[] = [...HITS, ...CLAIMS, ...TAKE_OVERS, ...FORGETTING, ...UPDATES]

/** @throws {Error} when there is none of that name. */
export function scenarioNamed(name: string): Scenario {
  const found = SCENARIOS.find((one) => one.name === name)
  if (found === undefined) throw new Error(`no scenario "${name}"`)
  return found
}

import { BOTH } from './both-scenarios.js'
import { GROWTH, OVERFLOWS } from './growth-scenarios.js'
import { HITS } from './hit-scenarios.js'
import { LOGS } from './log-scenarios.js'
import { CLAIMS, FORGETTING, TAKE_OVERS } from './newcomer-scenarios.js'
import { PERMITS } from './permit-scenarios.js'
import type { Scenario } from './scenario.js'
import { UPDATES } from './update-scenarios.js'
import { WINDOWS } from './window-scenarios.js'

/** Every question asked of the core, in the order in which they were found worth asking. */
export const SCENARIOS: readonly Scenario[] = [
  ...HITS,
  ...CLAIMS,
  ...TAKE_OVERS,
  ...FORGETTING,
  ...UPDATES,
  ...BOTH,
  ...WINDOWS,
  ...LOGS,
  ...PERMITS,
  ...GROWTH,
  ...OVERFLOWS,
]

/** @throws {Error} when there is none of that name. */
export function scenarioNamed(name: string): Scenario {
  const found = SCENARIOS.find((one) => one.name === name)
  if (found === undefined) throw new Error(`no scenario "${name}"`)
  return found
}

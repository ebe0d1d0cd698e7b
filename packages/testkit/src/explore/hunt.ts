import type { Mutant } from './core-sources.js'
import type { Exploration } from './explore.js'
import { ExploredModules } from './explored-modules.js'
import { inEachEncoding } from './scenario.js'
import { scenarioNamed } from './scenarios.js'

/** Looks for a planted fault, in each encoding of its scenario until it is found; `schedules` are all of them together. */
export async function hunt(
  { scenario, preemptions, deaths, substitutions }: Mutant,
  most: number,
): Promise<Pick<Exploration, 'schedules' | 'violation'>> {
  const question = scenarioNamed(scenario)
  const planted = await ExploredModules.compile([question], substitutions)
  let schedules = 0
  for (const asked of inEachEncoding(question)) {
    const found = planted.explore(asked, { preemptions, deaths, most })
    schedules += found.schedules
    if (found.violation !== undefined) return { schedules, violation: found.violation }
  }
  return { schedules, violation: undefined }
}

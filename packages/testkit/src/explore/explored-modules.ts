import { compileExplored } from './compile-explored.js'
import { coreSources, exploredSources, type Substitution, substituted } from './core-sources.js'
import { type Exploration, explore } from './explore.js'
import type { Scenario } from './scenario.js'
import type { SearchBounds } from './search.js'
import type { WalkBounds } from './walk.js'

/** The core as it stands, or with faults planted in it, ready to be explored in tables of any line length. */
export class ExploredModules {
  private readonly byLine = new Map<number, WebAssembly.Module>()

  private constructor() {}

  /**
   * Faults are compiled quickly: they are found early, and there are many.
   *
   * @throws {Error} when a planted fault no longer applies, or the core does not compile.
   */
  static async compile(scenarios: readonly Scenario[], substitutions: readonly Substitution[] = []): Promise<ExploredModules> {
    const sources = substituted(coreSources(), substitutions)
    const modules = new ExploredModules()
    for (const entries of new Set(scenarios.map(({ entriesPerLine }) => entriesPerLine))) {
      modules.byLine.set(entries, await compileExplored(exploredSources(sources, entries), substitutions.length > 0))
    }
    return modules
  }

  explore(scenario: Scenario, bounds: SearchBounds | WalkBounds): Exploration {
    const module = this.byLine.get(scenario.entriesPerLine)
    if (module === undefined) throw new Error(`nothing was compiled for lines of ${scenario.entriesPerLine} entries`)
    return explore(module, scenario, bounds)
  }
}

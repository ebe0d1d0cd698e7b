import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type CoreSources, coreSources, exploredSources, type Substitution, substituted } from './core-sources.js'
import { type Exploration, explore } from './explore.js'
import type { Scenario } from './scenario.js'
import type { SearchBounds, WalkBounds } from './search.js'

const MEMORY = ['--importMemory', '--sharedMemory', '--initialMemory', '1', '--maximumMemory', '65536']
const FLAGS = ['--noAssert', '--enable', 'threads', '--runtime', 'stub', ...MEMORY, '--runPasses', 'asyncify']
const CACHE = fileURLToPath(new URL('../../../../.cache/explored', import.meta.url))

/**
 * Compiles sources of the core so that a call can be suspended at a yield point (Binaryen's Asyncify) and resumed there.
 * What was compiled before is kept by its content. `quickly`: without optimizing, in a fifth of the time.
 *
 * @throws {Error} with the compiler's messages.
 */
async function compileExplored(sources: CoreSources, quickly = false): Promise<WebAssembly.Module> {
  const flags = [quickly ? '-O0' : '-O3', ...FLAGS]
  const content = JSON.stringify([flags, ...sources])
  const kept = join(CACHE, `${createHash('sha256').update(content).digest('hex')}.wasm`)
  if (!existsSync(kept)) {
    const binary = await compiled(sources, flags)
    mkdirSync(CACHE, { recursive: true })
    // Renamed into place, so that another process never reads half a file.
    writeFileSync(`${kept}.${process.pid}`, binary)
    renameSync(`${kept}.${process.pid}`, kept)
  }
  return new WebAssembly.Module(readFileSync(kept))
}

async function compiled(sources: CoreSources, flags: readonly string[]): Promise<Uint8Array> {
  const { default: asc } = await import('assemblyscript/asc')
  const messages: string[] = []
  let binary: Uint8Array | undefined
  const { error } = await asc.main(['index.ts', '--outFile', 'core.wasm', ...flags], {
    stderr: { write: (text: string) => void messages.push(text) },
    readFile: (name: string) => sources.get(name) ?? null,
    listFiles: () => null,
    writeFile(name: string, contents: string | Uint8Array) {
      if (name === 'core.wasm' && typeof contents !== 'string') binary = contents
    },
  })
  if (error !== null || binary === undefined) throw new Error(`${messages.join('')}${error?.message ?? 'the compiler wrote nothing'}`)
  return binary
}

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

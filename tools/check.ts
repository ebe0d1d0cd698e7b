import { checkBoundaries } from './boundaries.js'
import { checkDocs } from './check-docs.js'
import { checkGithub } from './check-github.js'
import { checkImportCircles } from './check-import-circles.js'
import { checkModuleState } from './check-module-state.js'
import { checkPackages } from './check-packages.js'
import { checkPublicApi } from './check-public-api.js'
import { faultsOfCommand, faultsOfCompiler, faultsOfTool } from './faults-of-command.js'
import { checkLockfiles, checkSignatures } from './lockfile-platforms.js'
import { checkOptions } from './options-page.js'

// The gate: everything but the tests. Every step runs, even after a failed one; one fault fails the gate.

/** The faults, as printed; empty without faults. */
type Step = () => readonly string[] | Promise<readonly string[]>

const STEPS: Readonly<Record<string, Step>> = {
  'generated sources': () => faultsOfCommand(process.execPath, ['tools/dist/generate.js']),
  types: () => faultsOfCompiler('-b'),
  'CommonJS form': () => faultsOfCommand(process.execPath, ['tools/dist/write.js', 'commonjs']),
  'lint and format': () => faultsOfTool('biome', 'ci', '--colors=off'),
  'import boundaries': checkBoundaries,
  'import circles': checkImportCircles,
  'module state': checkModuleState,
  'dead code': () => faultsOfTool('knip'),
  packages: checkPackages,
  'public API': checkPublicApi,
  options: checkOptions,
  'bundle size': () => faultsOfTool('size-limit'),
  lockfiles: checkLockfiles,
  'signatures of packages': checkSignatures,
  'GitHub and Renovate': checkGithub,
  documentation: checkDocs,
}

async function passes(name: string, faults: Step): Promise<boolean> {
  const startedMs = performance.now()
  const found = await attempt(faults)
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1).padStart(5)
  console.log(`${found.length === 0 ? 'ok    ' : 'FAILED'} ${seconds} s  ${name}`)
  for (const fault of found) console.log(`\n${fault}\n`)
  return found.length === 0
}

async function attempt(faults: Step): Promise<readonly string[]> {
  try {
    return await faults()
  } catch (error) {
    return [String(error instanceof Error ? error.stack : error)]
  }
}

const failed: string[] = []
for (const [name, faults] of Object.entries(STEPS)) if (!(await passes(name, faults))) failed.push(name)
const count = Object.keys(STEPS).length
if (failed.length > 0) {
  console.log(`\n${failed.length} of ${count} steps failed: ${failed.join(', ')}`)
  process.exitCode = 1
} else {
  console.log(`\nAll ${count} steps passed`)
}

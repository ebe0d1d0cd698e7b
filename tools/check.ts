import { checkBoundaries } from './check-boundaries.js'
import { checkDocs } from './check-docs.js'
import { checkFileSizes } from './check-file-sizes.js'
import { checkGithub } from './check-github.js'
import { checkImportCircles } from './check-import-circles.js'
import { checkLockfiles } from './check-lockfiles.js'
import { checkModuleState } from './check-module-state.js'
import { checkPackages } from './check-packages.js'
import { checkPublicApi } from './check-public-api.js'
import { checkSignatures } from './check-signatures.js'
import { checkWords } from './check-words.js'
import { faultsOfCommand, faultsOfCompiler, faultsOfTool } from './faults-of-command.js'
import { checkOptions } from './options-page.js'

// The gate: everything but the tests. Every step runs, even after a failed one; one fault fails the gate.

interface Step {
  readonly name: string
  /** The faults, as printed; empty without faults. */
  readonly faults: () => readonly string[] | Promise<readonly string[]>
}

const STEPS: readonly Step[] = [
  { name: 'generated sources', faults: () => faultsOfCommand(process.execPath, ['tools/dist/generate.js']) },
  { name: 'types', faults: () => faultsOfCompiler('-b') },
  { name: 'CommonJS form', faults: () => faultsOfCommand(process.execPath, ['tools/dist/write-commonjs.js']) },
  { name: 'lint and format', faults: () => faultsOfTool('biome', 'ci', '--colors=off') },
  { name: 'import boundaries', faults: checkBoundaries },
  { name: 'import circles', faults: checkImportCircles },
  { name: 'module state', faults: checkModuleState },
  { name: 'dead code', faults: () => faultsOfTool('knip') },
  { name: 'packages', faults: checkPackages },
  { name: 'public API', faults: checkPublicApi },
  { name: 'options', faults: checkOptions },
  { name: 'bundle size', faults: () => faultsOfTool('size-limit') },
  { name: 'file sizes', faults: checkFileSizes },
  { name: 'lockfiles', faults: checkLockfiles },
  { name: 'signatures of packages', faults: checkSignatures },
  { name: 'GitHub and Renovate', faults: checkGithub },
  { name: 'words', faults: checkWords },
  { name: 'documentation', faults: checkDocs },
]

async function passes({ name, faults }: Step): Promise<boolean> {
  const startedMs = performance.now()
  const found = await attempt(faults)
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1).padStart(5)
  console.log(`${found.length === 0 ? 'ok    ' : 'FAILED'} ${seconds} s  ${name}`)
  for (const fault of found) console.log(`\n${fault}\n`)
  return found.length === 0
}

async function attempt(faults: Step['faults']): Promise<readonly string[]> {
  try {
    return await faults()
  } catch (error) {
    return [String(error instanceof Error ? error.stack : error)]
  }
}

const failed: Step[] = []
for (const step of STEPS) if (!(await passes(step))) failed.push(step)
if (failed.length > 0) {
  console.log(`\n${failed.length} of ${STEPS.length} steps failed: ${failed.map(({ name }) => name).join(', ')}`)
  process.exitCode = 1
} else {
  console.log(`\nAll ${STEPS.length} steps passed`)
}

import { spawnSync } from 'node:child_process'
import { Refusal } from './refusal.mjs'
import { ROOT } from './root.mjs'

/** Installs the packages of bench/versus, clients and rivals among them, if one of these test files belongs to the benchmarks. */
export function requireRivals(testFiles) {
  if (!testFiles.some((file) => file.startsWith('bench/'))) return
  const { status } = spawnSync(process.execPath, ['bench/dist/install-rivals.js'], { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0)
    throw new Refusal('The tests of the benchmarks need what package-lock.json in bench/versus names, and it was not installed')
}

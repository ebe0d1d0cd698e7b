import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal, ROOT } from './root.mjs'
import { step } from './run.mjs'

/** Installs the packages of bench/versus, clients and rivals among them, if one of these test files belongs to the benchmarks. */
export function requireRivals(testFiles) {
  if (!testFiles.some((file) => file.startsWith('bench/'))) return
  const { status } = spawnSync(process.execPath, ['bench/dist/install-rivals.js'], { cwd: ROOT, stdio: 'inherit' })
  if (status !== 0)
    throw new Refusal('The tests of the benchmarks need what package-lock.json in bench/versus names, and it was not installed')
}

const STAMP = join(ROOT, 'node_modules/.sluicegate-install')
const LOCKFILE = join(ROOT, 'package-lock.json')
/** Shorter retries: without a network npm's defaults, 10 s and more each, delay the first message by minutes. */
const RETRIES = ['--fetch-retries=2', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000']

/** Installs what package-lock.json names, unless that was done since it last changed. */
export function installWhenStale() {
  const lock = readFileSync(LOCKFILE, 'utf8')
  const wanted = createHash('sha256').update(lock).digest('hex')
  if (existsSync(STAMP) && readFileSync(STAMP, 'utf8') === wanted) return
  if (!isInstalled(JSON.parse(lock).packages))
    step('Installing dependencies (npm ci)', 'npm', ['ci', '--no-audit', '--no-fund', ...RETRIES])
  writeFileSync(STAMP, wanted)
}

/** Whether npm's own record of installed packages is complete: after `npm install` the step is not repeated. */
function isInstalled(packages) {
  const note = join(ROOT, 'node_modules/.package-lock.json')
  if (!existsSync(note)) return false
  const installed = JSON.parse(readFileSync(note, 'utf8')).packages
  return Object.entries(packages).every(([path, { version, link, optional }]) => {
    if (!path.startsWith('node_modules/')) return true
    return link ? existsSync(join(ROOT, path)) : optional || installed[path]?.version === version
  })
}

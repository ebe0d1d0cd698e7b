import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { RUNTIMES, type Runtime, suitesFor } from './runtime-suites.js'

// The library on Bun, Deno and other versions of Node: the suites of its own tests, and what knows no runtime by the runtime's own server.
// `prove-runtimes [--only bun]...`. Installs the runtimes first, about 570 MB, where they are not there.

const HOME = fileURLToPath(new URL('../../../../tools/runtimes', import.meta.url))
const LIBRARY = fileURLToPath(new URL('../../../sluicegate/dist/', import.meta.url))
const SERVER_CHECK = fileURLToPath(new URL('../adapters/native-check.js', import.meta.url))
const KV_SUITE = fileURLToPath(new URL('./deno-kv-suite.js', import.meta.url))
const FIRST_PASTE = fileURLToPath(new URL('../../../../tools/dist/first-paste.long.test.js', import.meta.url))
const LONGEST_MS = 600_000

/** How a runtime is asked to run a program, and a test file. */
interface Caller {
  readonly program: string
  readonly run: readonly string[]
  readonly test: readonly string[]
}

const TRUSTING_DENO = ['--allow-all', '--no-check', '--node-modules-dir=manual']
const CALLERS: Readonly<Record<Runtime, Caller>> = {
  node22: { program: installed('node22/bin/node'), run: [], test: ['--test', `--test-timeout=${LONGEST_MS}`] },
  node24: { program: installed('node24/bin/node'), run: [], test: ['--test', `--test-timeout=${LONGEST_MS}`] },
  bun: { program: installed('@oven/bun-linux-x64/bin/bun'), run: ['run'], test: ['test', `--timeout=${LONGEST_MS}`] },
  deno: { program: installed('@deno/linux-x64-glibc/deno'), run: ['run', ...TRUSTING_DENO], test: ['test', ...TRUSTING_DENO] },
}

const { platform, arch } = process
if (platform !== 'linux' || arch !== 'x64') throw new Error(`the runtimes are binaries for linux-x64, and this is ${platform}-${arch}`)
const { only } = parseArgs({ options: { only: { type: 'string', multiple: true } } }).values
const wrong = only?.find((name) => !RUNTIMES.includes(name as Runtime))
if (wrong !== undefined) throw new Error(`--only ${wrong}: there are ${RUNTIMES.join(', ')}`)
install()

const files = readdirSync(LIBRARY, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.js'))
  .map((name) => LIBRARY + name)
  .sort()
for (const runtime of RUNTIMES) if (only?.includes(runtime) ?? true) prove(runtime)

/** One file after another: what one leaves behind is no other's. */
function prove(runtime: Runtime): void {
  const { program, run, test } = CALLERS[runtime]
  const server = called(program, [...run, SERVER_CHECK])
  report(`${runtime}, behind its own server: ${server.stdout.trim()}`, server, / checks hold\n$/.test(server.stdout))
  const pasted = called(process.execPath, ['--test', FIRST_PASTE], { SLUICEGATE_RUNTIME: JSON.stringify([program, ...run]) })
  report(`${runtime}: ${passedOf(pasted)} tests of the blocks of README and quick start passed`, pasted, pasted.status === 0)
  const { asked, unasked } = suitesFor(runtime, files)
  let passed = 0
  for (const [i, file] of asked.entries()) {
    const tested = called(program, [...test, file])
    passed += passedOf(tested)
    report(`${runtime}: ${file.slice(LIBRARY.length)}`, tested, tested.status === 0, true)
    if (process.stderr.isTTY) process.stderr.write(`\r${runtime}: ${i + 1} of ${asked.length} files `)
  }
  console.log(`${runtime}: ${passed} tests of ${asked.length} files passed`)
  if (runtime === 'deno') {
    const stored = called(program, [...test, '--unstable-kv', KV_SUITE])
    report(`deno: ${passedOf(stored)} tests of examples/stores/deno-kv.mjs passed`, stored, stored.status === 0)
  }
  for (const each of unasked) console.log(`  not asked: ${each}`)
}

function called(program: string, args: readonly string[], environment: NodeJS.ProcessEnv = {}): SpawnSyncReturns<string> {
  return spawnSync(program, args, { encoding: 'utf8', timeout: LONGEST_MS, env: { ...process.env, NO_COLOR: '1', ...environment } })
}

/** As each runtime sums up: `# pass 12` or `ℹ pass 12`, ` 12 pass`, `ok | 12 passed`. */
function passedOf({ stdout, stderr }: SpawnSyncReturns<string>): number {
  const [, ...counts] = /^\S+ pass (\d+)$|^ *(\d+) pass$|\| (\d+) passed/m.exec(stdout + stderr) ?? []
  return Number(counts.find((count) => count !== undefined) ?? 0)
}

function report(what: string, { stdout, stderr }: SpawnSyncReturns<string>, holds: boolean, isQuiet = false): void {
  if (!holds) process.exitCode = 1
  if (!holds || !isQuiet) console.log(holds ? what : `${what}: NOT SO\n${stdout}${stderr}`)
}

function install(): void {
  if (Object.values(CALLERS).every(({ program }) => existsSync(program))) return
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: HOME, stdio: 'inherit' })
  if (status !== 0) throw new Error('the runtimes were not installed')
}

function installed(path: string): string {
  return `${HOME}/node_modules/${path}`
}

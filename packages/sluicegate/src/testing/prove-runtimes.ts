import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

// The entries that know no runtime, on Bun, Deno and other versions of Node: each by its own server, and on Node the whole suite of their
// adapters. Installs the runtimes first, about 570 MB, where they are not there.

const RUNTIMES = fileURLToPath(new URL('../../../../tools/runtimes', import.meta.url))
const fileOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const CHECK = fileOf('adapters/native-check.js')
const SUITES = ['../hono.test.js', '../fetch.test.js', '../memory/runtime-refusal.test.js'].map(fileOf)
const LONGEST_MS = 300_000

const { platform, arch, version } = process
if (platform !== 'linux' || arch !== 'x64') throw new Error(`the runtimes are binaries for linux-x64, and this is ${platform}-${arch}`)

const found = (path: string): string => `${RUNTIMES}/node_modules/${path}`
const NODES = ['node22', 'node24'].map((name) => found(`${name}/bin/node`))
const PROGRAMS: readonly (readonly string[])[] = [
  [process.execPath, CHECK],
  ...NODES.flatMap((node) => [
    [node, CHECK],
    [node, '--test', ...SUITES],
  ]),
  [found('@oven/bun-linux-x64/bin/bun'), 'run', CHECK],
  [found('@deno/linux-x64-glibc/deno'), 'run', '--allow-all', '--no-check', '--node-modules-dir=manual', CHECK],
]

if (!PROGRAMS.every(([program = '']) => existsSync(program))) {
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: RUNTIMES, stdio: 'inherit' })
  if (status !== 0) throw new Error('the runtimes were not installed')
}

console.log(`this is Node ${version}`)
for (const [program = '', ...args] of PROGRAMS) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: LONGEST_MS })
  const isSuite = args[0] === '--test'
  const holds = status === 0 && (isSuite || / checks hold\n$/.test(stdout))
  const counted = isSuite ? (/^\S+ pass \d+$/m.exec(stdout)?.[0] ?? '') : stdout.trim()
  console.log(
    `${program.replace(`${RUNTIMES}/node_modules/`, '')}${isSuite ? ' --test' : ''}: ${holds ? counted : `NOT SO\n${stdout}${stderr}`}`,
  )
  if (!holds) process.exitCode = 1
}

import { spawnSync } from 'node:child_process'
import { Refusal } from './refusal.mjs'
import { step } from './run.mjs'

/** Programs that tests drive for real, and the Debian packages that hold them. */
const COMMANDS = [
  { command: 'chromium', debian: 'chromium', usedBy: 'packages/server', why: 'the dashboard is tested in a browser' },
  { command: 'nginx', debian: 'nginx-light', usedBy: 'packages/server', why: 'the shipped configuration is tested in nginx' },
  { command: 'spin', debian: 'spin', usedBy: 'packages/testkit', why: 'the model of the table is checked with Spin' },
  { command: 'gcc', debian: 'gcc', usedBy: 'packages/testkit', why: 'Spin compiles its checker with it' },
]

/** Makes sure of the programs that these test files need: installs them where apt and root allow it, else says what is missing. */
export function requireCommands(testFiles) {
  const missing = COMMANDS.filter(({ command, usedBy }) => testFiles.some((file) => file.startsWith(usedBy)) && !has(command))
  if (missing.length === 0) return
  const names = missing.map(({ debian }) => debian)
  if (process.getuid?.() === 0 && has('apt-get')) {
    // RUNLEVEL 1 keeps the packages from starting services.
    const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
    step('Fetching the package lists (apt-get update)', 'apt-get', ['update', '-q'], env)
    step(`Installing ${names.join(', ')}`, 'apt-get', ['install', '-y', '-q', '--no-install-recommends', ...names], env)
    return
  }
  const reasons = missing.map(({ command, why }) => `${command} (${why})`).join(', ')
  throw new Refusal(`The tests need ${reasons}. On Debian or Ubuntu: sudo apt-get install ${names.join(' ')}`)
}

function has(command) {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0
}

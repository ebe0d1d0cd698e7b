import { spawnSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { Refusal } from './refusal.mjs'
import { step } from './run.mjs'

const ON_REDIS = ['packages/sluicegate/dist/redis', 'packages/testkit', 'chaos']

/** Programs that tests drive for real, and the Debian packages that hold them. */
const COMMANDS = [
  { command: 'chromium', debian: 'chromium', usedBy: ['packages/server'], why: 'the dashboard is tested in a browser' },
  { command: 'nginx', debian: 'nginx-light', usedBy: ['packages/server'], why: 'the shipped configuration is tested in nginx' },
  { command: 'spin', debian: 'spin', usedBy: ['packages/testkit'], why: 'the model of the table is checked with Spin' },
  { command: 'gcc', debian: 'gcc', usedBy: ['packages/testkit'], why: 'Spin compiles its checker with it' },
  {
    command: 'redis-server',
    debian: 'redis-server',
    usedBy: ON_REDIS,
    why: 'limiters in Redis are tested on servers, clusters and sentinels',
  },
  { command: 'redis-cli', debian: 'redis-tools', usedBy: ON_REDIS, why: 'tests make and change clusters with it' },
]

/** Asked by packages before they start a service of theirs; 101 forbids it. */
const SERVICE_POLICY = '/usr/sbin/policy-rc.d'

/** Makes sure of these programs: installs them where apt and root allow it, else says what is missing. */
export function requireCommands(commands) {
  const missing = commands.filter(({ command }) => !has(command))
  if (missing.length === 0) return
  const names = missing.map(({ debian }) => debian)
  if (process.getuid?.() === 0 && has('apt-get')) {
    withoutServices(() => {
      const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
      step('Fetching the package lists (apt-get update)', 'apt-get', ['update', '-q'], env)
      step(`Installing ${names.join(', ')}`, 'apt-get', ['install', '-y', '-q', '--no-install-recommends', ...names], env)
    })
    return
  }
  const reasons = missing.map(({ command, why }) => `${command} (${why})`).join(', ')
  throw new Refusal(`The tests need ${reasons}. On Debian or Ubuntu: sudo apt-get install ${names.join(' ')}`)
}

/** The programs that these test files use. */
export function commandsFor(testFiles) {
  return COMMANDS.filter(({ usedBy }) => testFiles.some((file) => usedBy.some((path) => file.startsWith(path))))
}

/** The tests start what they need by themselves, on ports of their own. */
function withoutServices(install) {
  if (existsSync(SERVICE_POLICY)) return install()
  writeFileSync(SERVICE_POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    install()
  } finally {
    rmSync(SERVICE_POLICY, { force: true })
  }
}

function has(command) {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0
}

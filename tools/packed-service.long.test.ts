import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { importsOf } from './imports-of.js'
import { packed } from './packed.js'

// The service as a user has it: packed, unpacked into a folder of its own, its dependencies beside it and no package of the workspace.

const HOME = mkdtempSync(join(tmpdir(), 'sluicegate-packed-service-'))
const MODULES = join(HOME, 'node_modules')
const PROGRAM = join(MODULES, 'sluicegate-server/dist/main.js')
const CONFIG = join(HOME, 'limits.yaml')

const { filename } = await packed('sluicegate-server', HOME)
mkdirSync(join(MODULES, 'sluicegate-server'), { recursive: true })
execFileSync('tar', ['xzf', join(HOME, filename), '-C', join(MODULES, 'sluicegate-server'), '--strip-components=1'])
for (const name of readdirSync('node_modules'))
  if (!/^(\.|sluicegate)/.test(name)) symlinkSync(resolve('node_modules', name), join(MODULES, name))
writeFileSync(CONFIG, 'policies: { api: { algorithm: fixed-window, limit: 5, window: 1h } }\n')
after(() => rmSync(HOME, { recursive: true, force: true }))

const sluicegate = (...args: string[]): string => execFileSync(process.execPath, [PROGRAM, ...args], { cwd: HOME, encoding: 'utf8' })

test('commands of packages of their own are in the one package that users install, and so is the configuration', () => {
  assert.match(sluicegate('serve', '--config', CONFIG, '--print-config'), /limit: 5/)
  const log = join(HOME, 'access.log')
  writeFileSync(log, '1.2.3.4 - - [10/Oct/2026:13:55:00 +0000] "GET /a HTTP/1.1" 200 1\n'.repeat(7))
  const replayed = JSON.parse(sluicegate('replay', log, '--config', CONFIG, '--json')) as { candidates: { denied: number }[] }
  assert.equal(replayed.candidates[0]?.denied, 2)
  assert.match(sluicegate('gate', '--follow', log, '--once', '--dry-run', '--window', '1h', '--block', '5'), /block/)
  assert.match(sluicegate('top', '--help'), /--samples/)
})

test('the service imports no package of the workspace, and all packages that it imports are its dependencies', () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(MODULES, 'sluicegate-server/package.json'), 'utf8'))
  const dist = join(MODULES, 'sluicegate-server/dist')
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'))
  const imported = files.flatMap((file) => importsOf(file, readFileSync(join(dist, file), 'utf8')).map(({ specifier }) => specifier))
  const packages = new Set(imported.filter((name) => !/^(\.|node:)/.test(name)).map((name) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name))
  const installed = Object.keys({ ...dependencies, ...peerDependencies })
  assert.ok(packages.size > 4)
  assert.deepEqual(
    [...packages].filter((name) => !installed.includes(name)),
    [],
  )
})

test('the processes of a load find the engine of the service', () => {
  const load = ['load', 'memory', '--config', CONFIG, '--processes', '2', '--keys', 'hot', '--rate', '100', '--duration', '200ms', '--json']
  const { allowed, denied, errors } = JSON.parse(sluicegate(...load)) as Record<string, number>
  assert.deepEqual([allowed, denied, errors], [10, 10, 0])
})

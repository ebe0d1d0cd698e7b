import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ROOT, sourcesBelow } from './root.mjs'
import { step } from './run.mjs'
import { removeStaleOutputs } from './stale-outputs.mjs'

/** In native code, several times as fast as the one in JavaScript, whose interface for programs the tools use. */
export const TSC = join(ROOT, 'node_modules/typescript-native/bin/tsc')
const STAMPS = join(ROOT, '.cache')
const COMPILED = [
  'packages/sluicegate',
  'packages/config',
  'packages/commands',
  'packages/server',
  'packages/testkit',
  'lab',
  'bench',
  'site',
  'deploy',
]
const FOLDERS = ['packages', 'bench', 'lab', 'site', 'deploy']
/** What generated sources are made of, and one of each kind. */
const GENERATED_FROM = [
  'packages/sluicegate/assembly',
  'packages/sluicegate/lua',
  'packages/server/proto',
  'packages/server/src/dashboard',
  'packages/commands/src',
]
const GENERATED = [
  'packages/sluicegate/src/memory/core-wasm.gen.ts',
  'packages/sluicegate/src/redis/scripts.gen.ts',
  'packages/server/src/dashboard/assets.gen.ts',
  'packages/server/src/protocols/grpc/messages',
  'packages/commands/src/report/assets.gen.ts',
]
const SETTINGS = ['package.json', 'package-lock.json', 'tsconfig.base.json', 'tsconfig.json']

/** Builds what changed since the last build: the tools, the generated sources, then all packages. */
export function buildWhenStale({ toolsOnly = false } = {}) {
  const tools = fingerprint(['tools'])
  whenStale('tools', tools, ['tools/dist'], () => {
    removeStaleOutputs(join(ROOT, 'tools/dist'), join(ROOT, 'tools'))
    step('Building the tools', process.execPath, [TSC, '-b', 'tools'])
  })
  if (toolsOnly) return
  const outputs = [
    'packages/sluicegate/dist',
    'packages/sluicegate/dist/commonjs',
    'packages/server/dist',
    'packages/server/bundle',
    'packages/server/schema',
    'packages/testkit/dist',
  ]
  whenStale('packages', fingerprint(FOLDERS) + tools, outputs, () => {
    for (const folder of COMPILED) removeStaleOutputs(join(ROOT, folder, 'dist'), join(ROOT, folder, 'src'))
    rmSync(join(ROOT, 'packages/sluicegate/dist/commonjs'), { recursive: true, force: true })
    whenStale('generated', fingerprint(GENERATED_FROM) + tools, GENERATED, () => {
      step('Generating sources', process.execPath, ['tools/dist/generate.js'])
    })
    step('Building the packages', process.execPath, [TSC, '-b'])
    step('Writing the CommonJS form', process.execPath, ['tools/dist/write.js', 'commonjs'])
    step('Writing the schemas', process.execPath, ['packages/config/dist/write-schemas.js', 'packages/server/schema'])
    step('Bundling the service', process.execPath, ['tools/dist/write.js', 'bundle'])
  })
}

function whenStale(name, wanted, outputs, build) {
  const stamp = join(STAMPS, `built-${name}`)
  const fresh = existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted
  if (fresh && outputs.every((output) => existsSync(join(ROOT, output)))) return
  build()
  mkdirSync(dirname(stamp), { recursive: true })
  writeFileSync(stamp, wanted)
}

/** Names, sizes and times of the sources: reading a thousand of them takes a few milliseconds. */
function fingerprint(folders) {
  const files = folders.flatMap(sourcesBelow)
  const hash = createHash('sha256')
  for (const file of [...SETTINGS, ...files]) {
    const { mtimeMs, size } = statSync(join(ROOT, file))
    hash.update(`${file}\0${size}\0${mtimeMs}\n`)
  }
  return hash.digest('hex')
}

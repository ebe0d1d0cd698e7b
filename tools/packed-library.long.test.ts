import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { build } from 'esbuild'
import { importsOf } from './check-import-circles.js'
import { linkedFiles } from './markdown-examples.js'
import { installPacked, linkPeers, packed } from './packed.js'

// The library as a user has it: packed, unpacked into its own folder, its peers beside it.

const HOME = mkdtempSync(join(tmpdir(), 'sluicegate-packed-'))
const MODULES = join(HOME, 'node_modules')
const LIBRARY = join(MODULES, 'sluicegate')
/** In native code it takes a fifth of the time. */
const NATIVE_TSC = resolve('node_modules/typescript-native/bin/tsc')
const TSC = resolve('node_modules/typescript/bin/tsc')
/** The packages that programs here import beside the library, and their types. */
const PEERS = ['@nestjs', '@types', 'express', 'fastify', 'hono', 'koa', 'reflect-metadata', 'rxjs', 'undici', 'undici-types']

await installPacked('sluicegate', HOME, [HOME])
linkPeers(HOME, PEERS)
after(() => rmSync(HOME, { recursive: true, force: true }))
const manifest = JSON.parse(readFileSync(join(LIBRARY, 'package.json'), 'utf8'))
/** Those for Cloudflare's runtime alone have one form, which Node.js does not load. */
const ENTRIES = Object.entries<object | string>(manifest.exports)
  .filter(([, conditions]) => typeof conditions !== 'string' && 'require' in conditions)
  .map(([entry]) => entry.replace('.', 'sluicegate'))

/** Runs a program with Node beside the library. */
function ran(file: string, code: string, ...options: readonly string[]): string {
  writeFileSync(join(HOME, file), code)
  const { stdout, stderr, status } = spawnSync(process.execPath, [...options, file], { cwd: HOME, encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout
}

test('every entry point can be required and imported from the package as it is installed', () => {
  for (const entry of ENTRIES) {
    const { require } = manifest.exports[entry.replace('sluicegate', '.')] as { require: { types: string } }
    assert.ok(existsSync(join(LIBRARY, require.types)), `${entry} has no declaration for CommonJS`)
  }
  assert.ok(existsSync(join(LIBRARY, 'core.wasm')), 'the core that Workers import is not packed')
  const required = `for (const entry of ${JSON.stringify(ENTRIES)}) console.log(entry, Object.keys(require(entry)).length > 0)`
  const imported = `for (const entry of ${JSON.stringify(ENTRIES)}) console.log(entry, Object.keys(await import(entry)).length > 0)`
  const all = ENTRIES.map((entry) => `${entry} true\n`).join('')
  assert.equal(ran('required.cjs', required), all)
  assert.equal(ran('imported.mjs', imported), all)
})

test('all but Nest, whose own package may be one of ES modules, can be required where that loads none', () => {
  const plain = ENTRIES.filter((entry) => entry !== 'sluicegate/nest')
  const required = `for (const entry of ${JSON.stringify(plain)}) require(entry)`
  assert.equal(ran('plain.cjs', required, '--no-experimental-require-module'), '')
})

test('a misuse that nobody catches is told in a few readable lines, with source maps in those of the source', () => {
  const misuse = "tokenBucket({ limit: '100', window: '1m' })"
  const programs = { 'misuse.mjs': `import { tokenBucket } from 'sluicegate'\n${misuse}`, 'misuse.cjs': `require('sluicegate').${misuse}` }
  for (const [file, code] of Object.entries(programs)) {
    writeFileSync(join(HOME, file), code)
    const told = (...options: string[]) => spawnSync(process.execPath, [...options, file], { cwd: HOME, encoding: 'utf8' }).stderr
    assert.match(
      told(),
      /^[^\n]+\n +throw new .*\n *\^\n\nPolicyError: limit: must be an integer from 1 to 9007199254740991 \(got the text "100"\)\n/,
    )
    assert.ok(told().length < 1500, told())
    assert.match(told('--enable-source-maps'), /sluicegate\/src\/policy\/policy-options\.ts:\d+\n/)
  }
})

test('both forms in one process are one library', () => {
  const code = `
    import { createRequire } from 'node:module'
    import { createLimiter, PolicyError, tokenBucket } from 'sluicegate'
    const required = createRequire(import.meta.url)('sluicegate')
    try { required.tokenBucket({ limit: 0, window: '1s' }) } catch (error) { console.log(error instanceof PolicyError) }
    const limiter = required.createLimiter(tokenBucket({ limit: 1, window: '1h' }))
    console.log(limiter.take('a').allowed, limiter.take('a').allowed, createLimiter !== required.createLimiter)`
  assert.equal(ran('both.mjs', code), 'true\ntrue false true\n')
})

test('a bundle for Workers holds no embedded core, any other one does', async () => {
  const code = "import 'sluicegate/workers'; import { createLimiter } from 'sluicegate'; export { createLimiter }"
  const bundled = async (conditions: string[]): Promise<string> => {
    const stdin = { contents: code, resolveDir: HOME }
    const { outputFiles } = await build({ stdin, bundle: true, write: false, format: 'esm', external: ['*.wasm'], conditions })
    return outputFiles[0]?.text ?? ''
  }
  const [workers, others] = [await bundled(['workerd', 'worker', 'browser']), await bundled([])]
  assert.match(workers, /core\.wasm/)
  assert.equal(workers.includes('0061736d0100'), false)
  assert.equal(others.includes('0061736d0100'), true)
  assert.ok(workers.length < others.length - 60_000)
})

test('what is for Workers alone says so where it is imported in Node', () => {
  for (const entry of ['sluicegate/workers', 'sluicegate/durable-objects']) {
    const code = `try { await import('${entry}') } catch (error) { console.log(error.code, error.message.includes('sluicegate/redis')) }`
    assert.equal(ran('node.mjs', code), 'RUNTIME_UNSUPPORTED true\n')
  }
  writeFileSync(join(HOME, 'named.mjs'), "import { durableObjects } from 'sluicegate/durable-objects'\ndurableObjects")
  assert.match(
    spawnSync(process.execPath, ['named.mjs'], { cwd: HOME, encoding: 'utf8' }).stderr,
    /PolicyError: sluicegate\/durable-objects: /,
  )
})

test('a Worker that does not import sluicegate/workers fails at its first limiter with a code', () => {
  const code = `
    import { createLimiter, tokenBucket } from 'sluicegate'
    try { createLimiter(tokenBucket({ limit: 1, window: '1s' })) } catch (error) { console.log(error.code) }`
  assert.equal(ran('elsewhere.mjs', code, '--conditions=workerd'), 'RUNTIME_UNSUPPORTED\n')
})

test('each form tells keys apart', () => {
  const code = (load: string): string => `${load}
    const policy = tokenBucket({ limit: 1, window: '1h' })
    const limiter = createLimiter(policy)
    const keys = Array.from({ length: 100 }, (_, i) => 'key-' + i)
    console.log(keys.filter((key) => limiter.take(key).allowed).length, keys.filter((key) => limiter.take(key).allowed).length)`
  const names = '{ createLimiter, tokenBucket }'
  assert.equal(ran('keys.mjs', code(`import ${names} from 'sluicegate'`)), '100 0\n')
  assert.equal(ran('keys.cjs', code(`const ${names} = require('sluicegate')`)), '100 0\n')
})

const PROGRAM = `
import { createLimiter, type Limiter, PolicyError, tokenBucket } from 'sluicegate'
import { serveLimiter } from 'sluicegate/cluster'
import standIn, { MemoryStore, type Options, rateLimit as byStandIn } from 'sluicegate/express-rate-limit'
import { rateLimit as byFetch } from 'sluicegate/fetch'
import { readRateLimit } from 'sluicegate/http'
import { header } from 'sluicegate/keys'
import { limitedFetch } from 'sluicegate/outbound'
import { redis } from 'sluicegate/redis'
import { region } from 'sluicegate/regions'

const limiter: Limiter = createLimiter(tokenBucket({ limit: 1, window: '1h' }))
const options: Partial<Options> = { windowMs: 1000, limit: 2 }
const made: unknown[] = [byFetch({ limiter, key: header('x-user') }), standIn(options), byStandIn(options), standIn.length, MemoryStore]
made.push(redis, region, limitedFetch, readRateLimit, serveLimiter)
try {
  tokenBucket({ limit: 0, window: '1s' })
} catch (error) {
  console.log(limiter.take('a').allowed, limiter.take('a').allowed, error instanceof PolicyError && error.code, made.includes(undefined))
}
`
const ADAPTERS = `
import { tokenBucket } from 'sluicegate'
import { rateLimit as byExpress } from 'sluicegate/express'
import { rateLimit as byFastify } from 'sluicegate/fastify'
import { rateLimit as byHono } from 'sluicegate/hono'
import { rateLimit as byKoa } from 'sluicegate/koa'

const policy = tokenBucket({ limit: 1, window: '1h' })
console.log([byExpress(policy), byFastify(policy), byHono(policy), byKoa(policy)].map((limit) => typeof limit).join())
`

/** By the compiler in JavaScript what the other does not know, and one that both know. */
const WAYS = [
  ['module', '--module', 'nodenext'],
  ['commonjs', '--module', 'commonjs'],
  // As TypeScript 5 and older resolve under `module: commonjs`.
  ['commonjs', '--module', 'commonjs', '--moduleResolution', 'node10', '--ignoreDeprecations', '6.0'],
  ['commonjs', '--module', 'node16'],
  ['commonjs', '--module', 'nodenext'],
  ['module', '--module', 'node16'],
  ['module', '--module', 'preserve', '--moduleResolution', 'bundler'],
] as const
const BY_BOTH = 3

for (const [i, [type, ...settings]] of WAYS.entries()) {
  test(`TypeScript compiles ${settings.join(' ')} in a package of type ${type} against it, and Node runs that`, () => {
    const folder = mkdtempSync(join(HOME, 'program-'))
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type }))
    writeFileSync(join(folder, 'program.ts'), PROGRAM)
    writeFileSync(join(folder, 'adapters.ts'), ADAPTERS)
    const fixed = ['--strict', '--target', 'es2022', '--esModuleInterop', '--types', 'node', ...settings]
    // The frameworks' own types have errors.
    compile(folder, [...fixed, '--skipLibCheck', 'program.ts', 'adapters.ts'], i < BY_BOTH ? TSC : NATIVE_TSC)
    const run = (file: string): string => execFileSync(process.execPath, [file], { cwd: folder, encoding: 'utf8' })
    assert.equal(run('program.js'), 'true false LIMIT_INVALID false\n')
    assert.equal(run('adapters.js'), 'function,function,function,function\n')
  })
}

test('its declarations for CommonJS hold where those of libraries are checked', () => {
  const folder = mkdtempSync(join(HOME, 'checked-'))
  writeFileSync(join(folder, 'program.ts'), PROGRAM)
  compile(folder, [
    '--strict',
    '--noEmit',
    '--target',
    'es2022',
    '--esModuleInterop',
    '--types',
    'node',
    '--module',
    'node16',
    'program.ts',
  ])
})

function compile(folder: string, args: readonly string[], tsc = NATIVE_TSC): void {
  const { status, stdout } = spawnSync(process.execPath, [tsc, ...args], { cwd: folder, encoding: 'utf8' })
  assert.equal(status, 0, stdout)
}

for (const name of ['sluicegate', 'sluicegate-server'] as const) {
  test(`every link in the pages of ${name} leads to something that is installed`, async () => {
    if (name !== 'sluicegate') await installPacked(name, HOME, [HOME])
    const folder = join(MODULES, name)
    const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => /\.md$/.test(file))
    const links = pages.flatMap((page) => linkedFiles(page, readFileSync(join(folder, page), 'utf8')).map((target) => ({ page, target })))
    assert.ok(links.length > 0)
    assert.deepEqual(
      links.filter(({ target }) => !existsSync(join(folder, target))),
      [],
    )
  })
}

test('pages and headings named in messages are installed', () => {
  const code = readdirSync(join(LIBRARY, 'dist'), { recursive: true, encoding: 'utf8' }).filter((file) => /\.js$/.test(file))
  const texts = code.map((file) => readFileSync(join(LIBRARY, 'dist', file), 'utf8')).join('\n')
  const named = new Set(
    [...texts.matchAll(/node_modules\/sluicegate\/(docs\/[\w-]+\.md)(?:#([\w-]+))?/g)].map(([, page, anchor]) => `${page}#${anchor ?? ''}`),
  )
  assert.ok(named.size >= 3)
  for (const each of named) {
    const [page = '', anchor = ''] = each.split('#')
    const headings = readFileSync(join(LIBRARY, page), 'utf8').match(/^#+ .*$/gm) ?? []
    const anchors = headings.map((heading) =>
      heading
        .replace(/^#+ /, '')
        .toLowerCase()
        .replace(/[^\w -]/g, '')
        .replaceAll(' ', '-'),
    )
    assert.ok(anchor === '' || anchors.includes(anchor), each)
  }
})

test('each code of a warning has its heading, or its row among those of stores, in what is installed', () => {
  const page = readFileSync(join(LIBRARY, 'docs/warnings.md'), 'utf8')
  const declared = readFileSync('packages/sluicegate/dist/warn-once.d.ts', 'utf8').match(/SLUICEGATE_\w+/g) ?? []
  assert.ok(declared.length > 0)
  for (const code of declared) assert.ok(page.includes(`## ${code}\n`) || page.includes(`\n| \`${code}\` |`), code)
})

// The service as a user has it: packed, unpacked into a folder of its own, its dependencies beside it and no package of the workspace.

const SERVICE_HOME = mkdtempSync(join(tmpdir(), 'sluicegate-packed-service-'))
const SERVICE_MODULES = join(SERVICE_HOME, 'node_modules')
const SERVICE_PROGRAM = join(SERVICE_MODULES, 'sluicegate-server/dist/main.js')
const CONFIG = join(SERVICE_HOME, 'limits.yaml')

const { filename } = await packed('sluicegate-server', SERVICE_HOME)
mkdirSync(join(SERVICE_MODULES, 'sluicegate-server'), { recursive: true })
execFileSync('tar', ['xzf', join(SERVICE_HOME, filename), '-C', join(SERVICE_MODULES, 'sluicegate-server'), '--strip-components=1'])
for (const name of readdirSync('node_modules'))
  if (!/^(\.|sluicegate)/.test(name)) symlinkSync(resolve('node_modules', name), join(SERVICE_MODULES, name))
writeFileSync(CONFIG, 'policies: { api: { algorithm: fixed-window, limit: 5, window: 1h } }\n')
after(() => rmSync(SERVICE_HOME, { recursive: true, force: true }))

const sluicegate = (...args: string[]): string =>
  execFileSync(process.execPath, [SERVICE_PROGRAM, ...args], { cwd: SERVICE_HOME, encoding: 'utf8' })

test('commands of packages of their own are in the one package that users install, and so is the configuration', () => {
  assert.match(sluicegate('serve', '--config', CONFIG, '--print-config'), /limit: 5/)
  const log = join(SERVICE_HOME, 'access.log')
  writeFileSync(log, '1.2.3.4 - - [10/Oct/2026:13:55:00 +0000] "GET /a HTTP/1.1" 200 1\n'.repeat(7))
  const replayed = JSON.parse(sluicegate('replay', log, '--config', CONFIG, '--json')) as { candidates: { denied: number }[] }
  assert.equal(replayed.candidates[0]?.denied, 2)
  assert.match(sluicegate('gate', '--follow', log, '--once', '--dry-run', '--window', '1h', '--block', '5'), /block/)
  assert.match(sluicegate('top', '--help'), /--samples/)
})

test('the service imports no package of the workspace, and all packages that it imports are its dependencies', () => {
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(join(SERVICE_MODULES, 'sluicegate-server/package.json'), 'utf8'))
  const dist = join(SERVICE_MODULES, 'sluicegate-server/dist')
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

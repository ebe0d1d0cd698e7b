import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { billOfMaterials, installed } from './bill-of-materials.js'
import { type Packed, packed } from './packed.js'

// Both packages as a user gets them: published to a registry, installed from it by name, tried as the quick start says.

const REGISTRY = 'tools/registry'
const HOME = mkdtempSync(join(tmpdir(), 'sluicegate-published-'))
const MOST_MS = 60_000
const packages: Packed[] = []
let registry: { readonly url: string; readonly process: ChildProcess }

before(async () => {
  if (!existsSync(`${REGISTRY}/node_modules/verdaccio`))
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: REGISTRY, stdio: 'ignore' })
  registry = await startRegistry()
  for (const name of ['sluicegate', 'sluicegate-server'] as const) packages.push(await packed(name, HOME, join(HOME, 'packages')))
  for (const { filename } of packages) npm(HOME, 'publish', `./${filename}`, '--access', 'public')
})
after(async () => {
  registry.process.kill('SIGKILL')
  await once(registry.process, 'exit')
  rmSync(HOME, { recursive: true, force: true })
})

/** Verdaccio with our packages of its own, and all others from the registry of this machine. */
async function startRegistry(): Promise<typeof registry> {
  const upstream = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  const anyone = { access: '$all', publish: '$anonymous', unpublish: '$anonymous' }
  const settings = {
    storage: join(HOME, 'storage'),
    // It has no users: each caller may publish.
    auth: {},
    uplinks: { upstream: { url: upstream, timeout: '60s' } },
    packages: { 'sluicegate*': anyone, '**': { ...anyone, proxy: 'upstream' } },
    log: { type: 'stdout', format: 'pretty', level: 'warn' },
  }
  writeFileSync(join(HOME, 'registry.yaml'), JSON.stringify(settings).replace('"auth":{},', ''))
  const program = createRequire(resolve(REGISTRY, 'package.json')).resolve('verdaccio/bin/verdaccio')
  const child = spawn(process.execPath, [program, '--config', join(HOME, 'registry.yaml'), '--listen', `127.0.0.1:${port}`], {
    stdio: 'ignore',
  })
  const url = `http://127.0.0.1:${port}/`
  const untilMs = performance.now() + MOST_MS
  while (
    !(await fetch(`${url}-/ping`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    assert.ok(child.exitCode === null && performance.now() < untilMs, 'the registry does not start')
    await new Promise((done) => setTimeout(done, 100))
  }
  writeFileSync(join(HOME, '.npmrc'), `registry=${url}\n//127.0.0.1:${port}/:_authToken=anyone\nfund=false\naudit=false\n`)
  return { url, process: child }
}

function npm(cwd: string, ...args: string[]): string {
  const env = { ...process.env, npm_config_userconfig: join(HOME, '.npmrc'), npm_config_cache: join(HOME, 'cache') }
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, env, encoding: 'utf8' })
  assert.equal(status, 0, `npm ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** An empty folder in which a user works. */
function project(name: string): string {
  const folder = join(HOME, name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version: '0.0.0', private: true }))
  return folder
}

test('npm install sluicegate, then the quick start with Express: 100 requests pass, the next receives 429', async () => {
  const folder = project('app')
  npm(folder, 'install', 'sluicegate', 'express')
  const [, rest = ''] = readFileSync('docs/quick-start.md', 'utf8').split('\n**Express')
  const code = /\n```js\n(.*?)\n```\n/s.exec(rest)?.[1]
  assert.ok(code, 'docs/quick-start.md has a block for Express')
  // The port 0 is a free one, which the program does not say: its socket does.
  writeFileSync(
    join(folder, 'app.mjs'),
    `import { Server } from 'node:net'\nconst listen = Server.prototype.listen
Server.prototype.listen = function (_, ...rest) { return listen.call(this, 0, '127.0.0.1').once('listening', () => console.log(this.address().port)) }
await import('./quick-start.mjs')\n`,
  )
  writeFileSync(join(folder, 'quick-start.mjs'), code)
  const app = spawn(process.execPath, ['app.mjs'], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [chunk] = (await once(app.stdout, 'data')) as [Buffer]
    const statuses = new Map<number, number>()
    for (let i = 0; i < 110; i++) {
      const { status } = await fetch(`http://127.0.0.1:${Number(chunk.toString())}/`)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    // One comes back each 600 ms.
    assert.ok((statuses.get(200) ?? 0) >= 100 && (statuses.get(429) ?? 0) >= 1, JSON.stringify([...statuses]))
  } finally {
    app.kill('SIGKILL')
    await once(app, 'exit')
  }
})

/** Packages of the workspace whose code is part of the published service. */
const IN_THE_SERVICE = ['sluicegate', 'sluicegate-config', 'sluicegate-commands']

function named(bill: string): string[] {
  return JSON.parse(bill).components.map(({ name }: { name: string }) => name)
}

test('the bill of materials of the library lists itself alone', () => {
  assert.deepEqual(named(billOfMaterials(join(HOME, packages[0]?.filename ?? ''))), ['sluicegate'])
})

test('npm install sluicegate-server brings the command and its licence, and what its bill of materials lists', () => {
  const folder = project('service')
  npm(folder, 'install', 'sluicegate-server')
  writeFileSync(join(folder, 'limits.yaml'), 'policies:\n  per-user: { algorithm: token-bucket, limit: 3, window: 1h }\n')
  const run = (...args: string[]): string => npm(folder, 'exec', '--offline', '--', 'sluicegate', ...args)
  assert.match(run('check', 'limits.yaml'), /good, 1 polic/)
  const { version } = JSON.parse(readFileSync('packages/server/package.json', 'utf8'))
  assert.equal(run('--version').trim(), version)
  assert.ok(existsSync(join(folder, 'node_modules/sluicegate-server/LICENSE')))
  assert.equal(existsSync(join(folder, 'node_modules/sluicegate')), false)

  const listed = named(installed(folder))
  const { dependencies } = JSON.parse(readFileSync('packages/server/package.json', 'utf8'))
  assert.deepEqual(
    Object.keys(dependencies).filter((name) => !IN_THE_SERVICE.includes(name) && !listed.includes(name)),
    [],
  )
})

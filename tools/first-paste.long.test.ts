import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assertLimited, blocksOf, quickStartBlock } from './markdown-examples.js'
import { installPacked, linkPeers } from './packed.js'

// The blocks of README and quick start as a user has them: to the letter but for the port, each in a project that has the packed library and
// its own framework alone. `npm run prove:runtimes` runs this file for other runtimes.

const [PROGRAM = process.execPath, ...RUN] = JSON.parse(process.env.SLUICEGATE_RUNTIME ?? '[]') as string[]
const IS_NODE = PROGRAM.endsWith('node')
const IS_DENO = PROGRAM.endsWith('deno')
const TSC = resolve('node_modules/typescript-native/bin/tsc')
const HOME = mkdtempSync(join(tmpdir(), 'sluicegate-first-paste-'))
const MOST_MS = 60_000

/** Projects by what they install beside the library. */
const PROJECTS = {
  bare: ['typescript'],
  express: ['express', '@types/express', '@types/node'],
  fastify: ['fastify', '@types/node'],
  fetch: ['@hono/node-server', 'hono'],
  hono: ['@hono/node-server', 'hono', '@types/node'],
  koa: ['koa', '@types/koa', '@types/node'],
  nest: ['@nestjs/common', '@nestjs/core', '@nestjs/platform-express', 'reflect-metadata', 'rxjs', '@types/node'],
  redis: ['@redis/client', '@types/node'],
} as const
type Project = keyof typeof PROJECTS

const names = Object.keys(PROJECTS) as Project[]
for (const name of names) {
  linkPeers(join(HOME, name), PROJECTS[name])
  write(name, 'package.json', JSON.stringify({ private: true, type: name === 'nest' ? 'commonjs' : 'module' }))
}
await installPacked(
  'sluicegate',
  HOME,
  names.map((name) => join(HOME, name)),
)
after(() => rmSync(HOME, { recursive: true, force: true }))

const BLOCKS = {
  express: 'Express',
  fastify: 'Fastify',
  hono: 'Hono',
  koa: 'Koa',
  nest: 'Nest',
  fetch: 'Any server with `Request` and `Response`',
} as const

for (const [project, words] of Object.entries(BLOCKS) as [keyof typeof BLOCKS, string][]) {
  const { code } = quickStartBlock(words)

  test(`the block of the quick start for ${words} has no error of types, with those of libraries checked`, () => {
    compile(project, project === 'nest' ? 'src/main.ts' : 'app.mts', code)
  })

  test(`the block of the quick start for ${words} answers the call of the page, and limits it`, async () => {
    const port = await freePort()
    const ported = code.replace('3000', String(port))
    if (project !== 'nest') return answers(project, 'app.mjs', project === 'fetch' && IS_NODE ? onNode(ported) : ported, port)
    compile(project, 'src/main.ts', ported)
    return answers(project, 'src/main.js', undefined, port)
  })
}

test('the block of the quick start for any function runs, and has no error of types in a project without any', () => {
  const { code } = quickStartBlock('No framework: any function')
  compile('bare', 'function.mts', code)
  assert.equal(ran('bare', write('bare', 'function.mjs', code)), 'go on, 99 left\n')
})

test('the blocks of README run, and have no error of types', async () => {
  const [express, behindProxy, plain, redis, ...others] = blocksOf('README.md').map(({ code }) => code)
  assert.ok(express !== undefined && behindProxy !== undefined && plain !== undefined && redis !== undefined && others.length === 0)
  compile('express', 'readme.mts', express + behindProxy)
  compile('bare', 'readme.mts', plain)
  compile('redis', 'readme.mts', redis)
  assert.match(ran('bare', 'readme.mjs'), /^200: 19 left\n(.*\n){19}429: try again in \d+ ms\n429: try again in 3(?:600000|5999\d\d) ms\n$/)
  const port = await freePort()
  await answers('express', 'readme.mjs', express.replace('3000', String(port)), port)
})

/** As the page says. */
function onNode(code: string): string {
  return `import { serve } from '@hono/node-server'\n${code}serve(server)\n`
}

function write(project: Project, file: string, code: string): string {
  const path = join(HOME, project, file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, code)
  return file
}

/** Compiles as in a new project, but with the declarations of libraries checked. */
function compile(project: Project, file: string, code: string): void {
  write(project, file, code)
  const types = existsSync(join(HOME, project, 'node_modules/@types/node')) ? ['node'] : []
  const compilerOptions = {
    strict: true,
    skipLibCheck: false,
    target: 'es2022',
    module: 'nodenext',
    types,
    ...(project === 'nest' && { experimentalDecorators: true, emitDecoratorMetadata: true }),
  }
  write(project, 'tsconfig.json', JSON.stringify({ compilerOptions, files: [file] }))
  const { stdout } = spawnSync(process.execPath, [TSC, '--pretty', 'false'], { cwd: join(HOME, project), encoding: 'utf8' })
  // Errors between the types of frameworks, of which the workspace has several versions, are none of the project.
  const faults = stdout.split('\n').filter((line) => line.includes('error') && !/^\S*\/node_modules\/(?!sluicegate\/)/.test(line))
  assert.deepEqual(faults, [])
}

function ran(project: Project, file: string): string {
  const { status, stdout, stderr } = spawnSync(PROGRAM, [...RUN, file], { cwd: join(HOME, project), encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout
}

/** Starts a program and calls it as the page does, `curl http://localhost:3000/`. @param code undefined: the file is there. */
async function answers(project: Project, file: string, code: string | undefined, port: number): Promise<void> {
  if (code !== undefined) write(project, file, code)
  // The handler that a module exports is served by the runtime.
  const args = IS_DENO && project === 'fetch' ? ['serve', ...RUN.slice(1), '--port', String(port), file] : [...RUN, file]
  const app = spawn(PROGRAM, args, { cwd: join(HOME, project), stdio: ['ignore', 'ignore', 'pipe'] })
  let printed = ''
  app.stderr.setEncoding('utf8').on('data', (text) => {
    printed += text
  })
  try {
    await listening(app, port, () => printed)
    await assertLimited(() => fetch(`http://localhost:${port}/`))
    assert.doesNotMatch(printed, /SLUICEGATE_/)
  } finally {
    app.kill('SIGKILL')
    if (app.exitCode === null && app.signalCode === null) await once(app, 'exit')
  }
}

async function listening(app: ChildProcess, port: number, printed: () => string): Promise<void> {
  for (const startedMs = performance.now(); performance.now() - startedMs < MOST_MS; await sleep(20)) {
    assert.ok(app.exitCode === null && app.signalCode === null, `it ended before it listened: ${printed()}`)
    // A socket without a request spends nothing.
    const socket = createConnection({ port, host: 'localhost' })
    const isOpen = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)]).catch(
      () => false,
    )
    socket.destroy()
    if (isOpen) return
  }
  assert.fail(`nobody listens: ${printed()}`)
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0)
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

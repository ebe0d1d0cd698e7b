import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { assertLimited, quickStartBlock } from './markdown-examples.js'

// Blocks of the quick start on the library as built, called over real sockets; first-paste.long.test.ts has all, on the library as packed.

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
// Within the package, so that its imports and those of the frameworks are found.
const FOLDER = join(ROOT, 'packages/sluicegate/.cache/quick-start')
const PORT = '3000'
const MOST_MS = 60_000
/** A module that tells the parent process at which port a server listens. */
const TELLS_PORT = `data:text/javascript,${encodeURIComponent(`
  import { Server } from 'node:net'
  const { listen } = Server.prototype
  Server.prototype.listen = function (...options) {
    this.once('listening', () => process.send(this.address().port))
    return listen.apply(this, options)
  }
`)}`

mkdirSync(FOLDER, { recursive: true })
after(() => rmSync(FOLDER, { recursive: true, force: true }))

test('the block for Express runs as it stands: 100 requests pass and the next receives 429 with Retry-After', async () => {
  // The system chooses the port: one that was free before may be another program's by now.
  const { app, port } = await started('Express', quickStartBlock('Express').code.replace(PORT, '0'))
  try {
    await assertLimited(() => fetch(`http://localhost:${port}/`))
  } finally {
    app.kill('SIGKILL')
    await once(app, 'exit')
  }
})

test('the block for any server exports a handler that limits', async () => {
  const file = written('fetch', quickStartBlock('Any server with `Request` and `Response`').code)
  const { default: server } = (await import(file)) as { default: { fetch(request: Request, environment: object): Promise<Response> } }
  // As Bun passes it.
  const environment = { requestIP: () => ({ address: '192.0.2.1' }) }
  const ask = (): Promise<Response> => server.fetch(new Request('http://localhost/'), environment)
  await assertLimited(ask)
})

test('the block for any function runs as it stands', async () => {
  const program = spawn(process.execPath, [written('function', quickStartBlock('No framework: any function').code)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  program.stdout.on('data', (data) => {
    printed += data
  })
  await once(program, 'close')
  assert.equal(printed, 'go on, 99 left\n')
})

function written(name: string, code: string): string {
  const file = join(FOLDER, `${name.toLowerCase()}.mjs`)
  writeFileSync(file, code)
  return file
}

async function started(name: string, code: string): Promise<{ app: ChildProcess; port: number }> {
  const app = spawn(process.execPath, ['--import', TELLS_PORT, written(name, code)], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const ended = once(app, 'exit').then(() => assert.fail(`the block for ${name} ended before it listened`))
  ended.catch(() => undefined)
  const [port] = (await Promise.race([once(app, 'message', { signal: AbortSignal.timeout(MOST_MS) }), ended])) as [number]
  return { app, port }
}

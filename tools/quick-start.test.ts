import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { IS_LONG_RUN } from './long-test.js'

// The blocks of the quick start, copied as a reader would copy them, and called over real sockets.

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

const markdown = readFileSync(join(ROOT, 'docs/quick-start.md'), 'utf8')
mkdirSync(FOLDER, { recursive: true })
after(() => rmSync(FOLDER, { recursive: true, force: true }))

for (const name of IS_LONG_RUN ? ['Express', 'Fastify', 'Hono', 'Koa', 'Nest'] : ['Express']) {
  test(`the block for ${name} runs as it stands: 100 requests pass and the next receives 429 with Retry-After`, async () => {
    // The system chooses the port: one that was free before may be another program's by now.
    const { app, port } = await started(name, blockAfter(name).replace(PORT, '0'))
    try {
      await assertLimited(() => fetch(`http://localhost:${port}/`))
    } finally {
      app.kill('SIGKILL')
      await once(app, 'exit')
    }
  })
}

test('the block for any server exports a handler that limits', async () => {
  const file = written('fetch', blockAfter('Any server with `Request` and `Response`'))
  const { default: server } = (await import(file)) as { default: { fetch(request: Request): Promise<Response> } }
  const ask = (): Promise<Response> => server.fetch(new Request('http://localhost/', { headers: { 'x-api-key': 'ada' } }))
  await assertLimited(ask)
})

test('the block for any function runs as it stands', async () => {
  const program = spawn(process.execPath, [written('function', blockAfter('No framework: any function'))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  program.stdout.on('data', (data) => {
    printed += data
  })
  await once(program, 'close')
  assert.equal(printed, 'go on, 99 left\n')
})

/** 100 requests pass, besides one for each 600 ms that the requests take, and the next one receives 429 and Retry-After. */
async function assertLimited(ask: () => Promise<Response>): Promise<void> {
  const startedMs = performance.now()
  for (let passed = 0; ; passed++) {
    const { status, headers } = await ask()
    const refilled = (performance.now() - startedMs) / 600
    if (status === 200) {
      assert.ok(headers.has('ratelimit'))
      assert.ok(passed < 100 + refilled, `${passed + 1} requests passed`)
    } else {
      assert.deepEqual([status, passed >= 100, Number(headers.get('retry-after')) >= 1], [429, true, true])
      return
    }
  }
}

/** The code below a line that begins with these bold words. */
function blockAfter(words: string): string {
  const [, rest] = markdown.split(`\n**${words}`)
  const block = rest?.match(/\n```(js|ts)\n(.*?)\n```\n/s)
  assert.ok(block, `docs/quick-start.md has no block for ${words}`)
  const [, language, code = ''] = block
  if (language === 'js') return code
  const compilerOptions = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  }
  return ts.transpileModule(code, { compilerOptions }).outputText
}

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

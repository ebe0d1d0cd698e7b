import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { TWO_POLICIES } from './testing/running-service.js'
import { VERSION } from './version.js'

const EXAMPLE = fileURLToPath(new URL('../../../examples/sluicegate.yaml', import.meta.url))
const MAIN = fileURLToPath(new URL('main.js', import.meta.url))

function sluicegate(t: TestContext, ...args: string[]): ChildProcessWithoutNullStreams {
  const child = spawn(process.execPath, [MAIN, ...args])
  t.after(() => child.kill('SIGKILL'))
  return child
}

async function finished(child: ChildProcessWithoutNullStreams): Promise<{ code: number | null; out: string; err: string }> {
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk) => (out += chunk))
  child.stderr.on('data', (chunk) => (err += chunk))
  const [code] = await once(child, 'close')
  return { code, out, err }
}

/** Waits until the service has said where it listens, and returns all that it has said. */
function announcement(child: ChildProcessWithoutNullStreams): Promise<{ url: string; text: string }> {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (chunk) => {
      text += chunk
      const url = /listens on (\S+)/.exec(text)?.[1]
      if (url !== undefined && /Watch:.*\n/.test(text)) resolve({ url, text })
    })
    child.once('close', () => reject(new Error(`it ended: ${text}`)))
  })
}

function configFile(t: TestContext, yaml: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'gate.yaml')
  writeFileSync(file, yaml)
  return file
}

test('serve tells its address, its policies and a command to try, and the command works', async (t) => {
  // The command stands between single quotes.
  const file = configFile(t, TWO_POLICIES.replace('policies:', `policies:\n  "ann's": { algorithm: gcra, limit: 1, window: 1s }`))
  const child = sluicegate(t, 'serve', '--config', file)
  const { url, text } = await announcement(child)
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
  assert.match(text, /burst {3}token-bucket, 100 per 1m, burst 100\n/)
  const target = /curl -i '([^']+)'/.exec(text)?.[1] ?? ''
  assert.equal((await fetch(target)).status, 200)
})

test('serve tells each of several policies at once', async (t) => {
  const parts = '[{ algorithm: gcra, limit: 5, window: 1s, name: rate }, { algorithm: fixed-window, limit: 9, window: day, name: quota }]'
  const file = configFile(t, `${TWO_POLICIES}  api: { all-of: ${parts} }\n`)
  const { text } = await announcement(sluicegate(t, 'serve', '--config', file))
  assert.match(text, / {2}api {6}all-of, 2 policies\n {4}rate {3}gcra, 5 per 1s, burst 5\n {4}quota {2}fixed-window, 9 per day in UTC\n/)
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} ends the service with 0`, async (t) => {
    const child = sluicegate(t, 'serve', '--config', configFile(t, TWO_POLICIES))
    const { url } = await announcement(child)
    await fetch(`${url}/livez`)
    child.kill(signal)
    assert.equal((await finished(child)).code, 0)
  })
}

test('--port and --host win over the file', async (t) => {
  const file = configFile(t, TWO_POLICIES.replace('port: 0', 'host: 192.0.2.1, port: 1'))
  const { url } = await announcement(sluicegate(t, 'serve', '--config', file, '--port', '0', '--host', '::1'))
  assert.match(url, /^http:\/\/\[::1\]:\d+$/)
})

test('a port in use is one clear line and exit code 1', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const { port } = other.address() as AddressInfo
  const { code, out, err } = await finished(sluicegate(t, 'serve', '--config', configFile(t, TWO_POLICIES), '--port', String(port)))
  assert.deepEqual([code, out], [1, ''])
  assert.equal(err, `sluicegate: 127.0.0.1:${port} is in use by another program: stop it, or choose another port with --port\n`)
})

test('check says that a good file is good, and serves nothing', async (t) => {
  const file = configFile(t, TWO_POLICIES)
  assert.deepEqual(await finished(sluicegate(t, 'check', '--config', file)), { code: 0, out: `${file}: good, 2 policies\n`, err: '' })
})

test('check and serve print every fault of a bad file, with its place, and exit with 1', async (t) => {
  const file = configFile(t, 'policies:\n  a: { algorithm: gcra, limit: 0, window: 1s }\n  b: { limit: 1 }\n')
  for (const command of ['check', 'serve']) {
    const { code, err } = await finished(sluicegate(t, command, '--config', file))
    assert.equal(code, 1)
    assert.match(
      err,
      /gate\.yaml:2:\d+: policies\.a\.limit: .*\n.*gate\.yaml:3:3: policies\.b\.algorithm: is missing\n.*policies\.b\.window: is missing\n$/,
    )
  }
})

test('--version and --help answer and exit with 0', async (t) => {
  assert.deepEqual(await finished(sluicegate(t, '--version')), { code: 0, out: `${VERSION}\n`, err: '' })
  const { code, out } = await finished(sluicegate(t, '--help'))
  assert.equal(code, 0)
  assert.match(out, /sluicegate serve --config FILE/)
})

const MISUSE: readonly [args: string[], message: RegExp][] = [
  [[], /say what to do/],
  [['sreve'], /no command "sreve"; did you mean "serve"\?/],
  [['serve'], /--config FILE/],
  [['serve', '--confg', 'a.yaml'], /no option --confg; did you mean "config"\?/],
  [['serve', '--config', 'a.yaml', 'more'], /"more" is one word too many/],
  [['serve', '--config', EXAMPLE, '--port', '70000'], /--port must be from 0 to 65535, not "70000"/],
]

for (const [args, message] of MISUSE) {
  test(`"sluicegate ${args.map((arg) => basename(arg)).join(' ')}" is answered with one line and exit code 2`, async (t) => {
    const { code, err } = await finished(sluicegate(t, ...args))
    assert.match(err, message)
    assert.deepEqual([code, err.split('\n').length], [2, 2])
  })
}

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { basename } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { everyNth, IS_LONG_RUN, longTest, RedisProcess, until } from 'sluicegate-testkit'
import { TWO_POLICIES } from 'sluicegate-testkit/service/running-service.js'
import { announcement, configFile, ended, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'
import { VERSION } from './version.js'

const EXAMPLE = fileURLToPath(new URL('../../../examples/sluicegate.yaml', import.meta.url))

test('serve prints its address, its policies and a command to try, and the command works', async (t) => {
  // The command stands between single quotes.
  const file = configFile(t, TWO_POLICIES.replace('policies:', `policies:\n  "ann's": { algorithm: gcra, limit: 1, window: 1s }`))
  const child = sluicegate(t, 'serve', '--config', file)
  const { url, text } = await announcement(child)
  assert.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
  assert.match(text, /burst {3}token-bucket, 100 per 1m, burst 100\n/)
  const target = /curl -i '([^']+)'/.exec(text)?.[1] ?? ''
  assert.equal((await fetch(target)).status, 200)
})

for (const processes of [1, 2]) {
  test(`the log is JSON line for line, warnings of the library, too, with ${processes} of processes`, async (t) => {
    await using redis = await RedisProcess.start({ args: ['--maxmemory', '1'] })
    const file = configFile(t, `${TWO_POLICIES}storage: { redis: { url: '${redis.url}', mode: exact, refused-at-start: serve } }\n`)
    const child = sluicegate(t, 'serve', '--config', file, '--processes', String(processes))
    let log = ''
    child.stderr.on('data', (chunk) => {
      log += chunk
    })
    const { url } = await announcement(child)
    await fetch(`${url}/v1/take?policy=burst&key=a`)
    await until('the warning', () => log.includes('SLUICEGATE_STORE_REFUSES'))
    child.kill()
    await once(child, 'close')
    const lines = log
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { code?: string; msg: string; level: number })
    const { msg = '' } = lines.find(({ code }) => code === 'SLUICEGATE_STORE_REFUSES') ?? {}
    assert.match(msg, /its memory is full: raise maxmemory.*outage decides/)
  })
}

longTest('serve prints each part of an all-of', async (t) => {
  const parts = '[{ algorithm: gcra, limit: 5, window: 1s, name: rate }, { algorithm: fixed-window, limit: 9, window: day, name: quota }]'
  const file = configFile(t, `${TWO_POLICIES}  api: { all-of: ${parts} }\n`)
  const { text } = await announcement(sluicegate(t, 'serve', '--config', file))
  assert.match(text, / {2}api {6}all-of, 2 policies\n {4}rate {3}gcra, 5 per 1s, burst 5\n {4}quota {2}fixed-window, 9 per day in UTC\n/)
})

longTest('serve prints the first of thousands of policies, and how many more there are', async (t) => {
  const more = Array.from({ length: 50 }, (_, i) => `  p${i}: { algorithm: gcra, limit: 5, window: 1s }\n`).join('')
  const { text } = await announcement(sluicegate(t, 'serve', '--config', configFile(t, `${TWO_POLICIES}${more}`)))
  assert.match(text, / {2}p17 .*\n {2}and 32 more\n\nTry /)
})

longTest('--port and --host win over the file', async (t) => {
  const file = configFile(t, TWO_POLICIES.replace('port: 0', 'host: 192.0.2.1, port: 1'))
  const { url } = await announcement(sluicegate(t, 'serve', '--config', file, '--port', '0', '--host', '::1'))
  assert.match(url, /^http:\/\/\[::1\]:\d+$/)
})

longTest('a port in use is one clear line and exit code 1', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const { port } = other.address() as AddressInfo
  const { code, out, err } = await ended(sluicegate(t, 'serve', '--config', configFile(t, TWO_POLICIES), '--port', String(port)))
  assert.deepEqual([code, out], [1, ''])
  assert.equal(err, `sluicegate: 127.0.0.1:${port} is in use by another program: stop it, or choose another address with --http\n`)
})

longTest('a socket that cannot be made has the reason in words', async (t) => {
  const file = configFile(t, TWO_POLICIES)
  const refused = async (path: string): Promise<string> => (await ended(sluicegate(t, 'serve', '--config', file, '--http', path))).err
  assert.match(await refused('unix:/missing/folder/x.sock'), /^sluicegate: there is no folder \/missing\/folder: create it, or choose/)
  assert.match(await refused(`unix:${file}/x.sock`), /^sluicegate: \S+ is no folder: choose/)
  assert.match(await refused(`unix:${file}`), /^sluicegate: \S+ is there and no socket: remove it/)
})

longTest('check accepts a valid file and serves nothing', async (t) => {
  const file = configFile(t, TWO_POLICIES)
  assert.deepEqual(await ended(sluicegate(t, 'check', '--config', file)), { code: 0, out: `${file}: good, 2 policies\n`, err: '' })
})

test('check and serve print every fault of an invalid file, with its place, and exit with 1', async (t) => {
  const file = configFile(t, 'policies:\n  a: { algorithm: gcra, limit: 0, window: 1s }\n  b: { limit: 1 }\n')
  for (const command of IS_LONG_RUN ? ['check', 'serve'] : ['check']) {
    const { code, err } = await ended(sluicegate(t, command, '--config', file))
    assert.equal(code, 1)
    assert.match(
      err,
      /gate\.yaml:2:\d+: policies\.a\.limit: .*\n.*gate\.yaml:3:3: policies\.b\.algorithm: is missing\n.*policies\.b\.window: is missing\n$/,
    )
  }
})

test('a service without a listener is an error', async (t) => {
  const { code, err } = await ended(sluicegate(t, 'serve', '--config', configFile(t, TWO_POLICIES), '--http', 'off'))
  assert.deepEqual([code, err], [1, 'sluicegate: every listener is off: give one an address, such as --http 127.0.0.1:8080\n'])
})

test('--version and --help answer and exit with 0', async (t) => {
  assert.deepEqual(await ended(sluicegate(t, '--version')), { code: 0, out: `${VERSION}\n`, err: '' })
  const { code, out } = await ended(sluicegate(t, '--help'))
  assert.equal(code, 0)
  assert.match(out, /sluicegate serve --config FILE/)
})

const MISUSE: readonly [args: string[], message: RegExp][] = [
  [[], /say what to do/],
  [['sreve'], /unknown command 'sreve' \(Did you mean serve\?\)/],
  [['serve'], /--config PATH/],
  [['serve', '--confg', 'a.yaml'], /unknown option '--confg' \(Did you mean --config\?\)/],
  [['serve', '--config', 'a.yaml', 'more'], /too many arguments/],
  [['serve', '--config', EXAMPLE, '-c', EXAMPLE], /--config is given twice: give a folder/],
  [['serve', '--config', ''], /the path of the configuration is empty/],
  [['check', EXAMPLE, '-c', EXAMPLE], /two paths are given, \S+ and --config \S+: give one/],
  [['check', ''], /the path of the configuration is empty/],
  [['serve', '--config', EXAMPLE, '--port', '70000'], /--port must be from 0 to 65535, not "70000"/],
  [['serve', '--config', EXAMPLE, '--drain', 'soon'], /--drain must be a time of at most 1h, for example 10s, 500ms or 0, not "soon"/],
  [['serve', '--config', EXAMPLE, '--max-connections', '0'], /--max-connections must be from 1 to 1000000, not "0"/],
  [['take', 'api', 'alice', '--cost', 'x'], /--cost must be an integer from 1, not "x"/],
  [['take', 'api'], /missing required argument 'key'/],
  [['health', '--timeout', '0'], /--timeout must be such as 500ms or 5s/],
  [['health', '--url', 'ftp://a'], /--url must be such as/],
]

for (const [i, [args, message]] of MISUSE.entries()) {
  everyNth(i, 8)(`"sluicegate ${args.map((arg) => basename(arg)).join(' ')}" is answered with one line and exit code 2`, async (t) => {
    const { code, err } = await ended(sluicegate(t, ...args))
    assert.match(err, message)
    assert.deepEqual([code, err.split('\n').length], [2, 2])
  })
}

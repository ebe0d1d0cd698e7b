import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { drawing } from 'sluicegate-commands/service/top.js'
import { IS_LONG_RUN, longTest } from 'sluicegate-testkit'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import { announcement, configFile, type Ended, ended, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'
import type { Sample } from '../dashboard/sample.js'

const POLICIES = 'policies:\n  burst: { algorithm: token-bucket, limit: 3, window: 1h }\n'

const run = (t: TestContext, ...args: string[]): Promise<Ended> => ended(sluicegate(t, ...args))

test('take prints the decision and says by its exit code what it is', async (t) => {
  const { url } = await runService(t, `listen: { port: 0 }\n${POLICIES}`)
  const take = (...args: string[]) => run(t, 'take', 'burst', 'alice & bob', '--url', url, ...args)
  assert.deepEqual(await take('--peek'), { code: 0, out: 'allowed by burst: 3 left\n', err: '' })
  const json = await take('--cost', '3', '--json')
  assert.deepEqual([json.code, JSON.parse(json.out).remaining], [0, 0])
  const denied = await take()
  assert.equal(denied.code, 3)
  assert.match(denied.out, /^denied by burst: 0 left, the same request passes in \d+ ms\n$/)
})

longTest('take of more than the limit, and of a policy that is not there', async (t) => {
  const { url } = await runService(t, `listen: { port: 0 }\n${POLICIES}`)
  assert.equal((await run(t, 'take', 'burst', 'alice', '--url', url, '--cost', '4')).code, 4)
  const unknown = await run(t, 'take', 'burts', 'alice', '--url', url)
  assert.deepEqual([unknown.code, unknown.err], [1, 'sluicegate: there is no policy "burts"; did you mean "burst"?\n'])
})

longTest('take over a Unix socket, and of a service that is not there', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const url = `unix:${join(folder, 'service.sock')}`
  const service = await runService(t, `listen: { http: "${url}" }\n${POLICIES}`)
  assert.equal((await run(t, 'take', 'burst', 'alice', '--url', url)).code, 0)
  await service.stop()
  const gone = await run(t, 'take', 'burst', 'alice', '--url', url)
  assert.deepEqual([gone.code, gone.err.split('\n').length], [1, 2])
  assert.match(gone.err, /cannot be reached/)
})

test('health says by its exit code whether the service takes requests', async (t) => {
  const service = await runService(t, `listen: { port: 0 }\n${POLICIES}`)
  if (IS_LONG_RUN) assert.deepEqual(await run(t, 'health', '--url', service.url), { code: 0, out: 'ready\n', err: '' })
  await service.stop()
  const gone = await run(t, 'health', '--url', service.url)
  assert.equal(gone.code, 1)
  assert.match(gone.err, /cannot be reached/)
})

test('top shows samples of a running service', async (t) => {
  const { url, engine } = await runService(t, `listen: { port: 0 }\n${POLICIES}`, { sampleMs: 20 })
  engine.policy('burst')?.take('alice', 1)
  const { code, out } = await run(t, 'top', '--url', url, '--samples', '2')
  assert.equal(code, 0)
  assert.match(out, /^Sluicegate http.*\n\npolicy +allowed\/s +denied\/s +impossible\/s +keys\nburst /)
  const json = await run(t, 'top', '--url', url, '--samples', '1', '--json')
  assert.equal((JSON.parse(json.out) as Sample).policies[0]?.allowed.total, 1)
})

longTest('the admin listener shows keys as they are, the other one pseudonyms', async (t) => {
  const service = await runService(t, `listen: { port: 0, admin: "127.0.0.1:0" }\n${POLICIES}`, { sampleMs: 20 })
  service.engine.policy('burst')?.take('alice', 1)
  const keyAt = async (listener: 'http' | 'admin') => {
    const { out } = await run(t, 'top', '--url', service.urls.get(listener) ?? '', '--samples', '1', '--json')
    return (JSON.parse(out) as Sample).policies[0]?.demand[0]?.key
  }
  assert.equal(await keyAt('admin'), 'alice')
  assert.match((await keyAt('http')) ?? '', /^[\da-f]{4}-[\da-f]{4}-[\da-f]{4}$/)
})

test('a drawing fits its screen, and hostile text cannot move the cursor', () => {
  const flow = { total: 1, perSecond: 1 }
  const policy = { description: '', allowed: flow, denied: flow, impossible: flow, keysTracked: 1, memoryBytes: 0, parts: [], denials: [] }
  const policies = Array.from({ length: 100 }, (_, i) => ({ ...policy, name: `p${i}`, demand: [{ key: '\x1b[2Jalice\u202e', count: i }] }))
  const sample: Sample = { atS: 0, keys: 'shown', canChange: true, policies }
  const text = drawing(sample, 'http://x', { columns: 60, rows: 24, write: () => undefined })
  const lines = text.trimEnd().split('\n')
  assert.ok(lines.length <= 24, String(lines.length))
  assert.ok(lines.every((line) => line.length <= 60))
  assert.ok(!text.includes('\x1b') && !text.includes('\u202e'))
})

longTest('check reads a folder, and lists the faults of all its files as JSON', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'a.yaml'), POLICIES)
  writeFileSync(join(folder, 'b.yml'), 'listen: { port: 0 }\npolicies:\n  other: { algorithm: gcra, limit: 1, window: 1s }\n')
  writeFileSync(join(folder, '.hidden.yaml'), 'policies: [')
  writeFileSync(join(folder, 'notes.txt'), 'policies: [')
  mkdirSync(join(folder, 'folder.yaml'))
  const good = await run(t, 'check', folder)
  assert.deepEqual(good, { code: 0, out: `${folder}: good, 2 policies\n`, err: '' })
  writeFileSync(join(folder, 'c.yaml'), 'listen: { port: 1 }\npolicies:\n  burst: { algorithm: gcra, limit: 0, window: 1s }\n')
  const { code, out } = await run(t, 'check', folder, '--json')
  const { faults } = JSON.parse(out) as { faults: { file: string; line: number; path: string }[] }
  assert.equal(code, 1)
  assert.deepEqual(
    faults.map(({ file, line, path }) => [file, line, path]),
    [
      [join(folder, 'c.yaml'), 1, 'listen'],
      [join(folder, 'c.yaml'), 3, 'policies.burst'],
      [join(folder, 'c.yaml'), 3, 'policies.burst.limit'],
    ],
  )
})

test('an option wins over the environment, that over the file, and the printed configuration masks secrets', async (t) => {
  const file = configFile(
    t,
    `listen: { http: "127.0.0.1:1", admin: "127.0.0.1:2" }\nstorage: { redis: { url: "redis://me:hunter2hunter2@r:6379" } }\n` +
      `tokens: [{ name: ops, scope: admin, secret: hunter2hunter2hunter2 }]\n${POLICIES}`,
  )
  process.env.SLUICEGATE_HTTP = '127.0.0.1:3'
  process.env.SLUICEGATE_ADMIN = 'off'
  process.env.SLUICEGATE_TOKEN = 'hunter2hunter2-environment'
  t.after(() => {
    for (const name of ['HTTP', 'ADMIN', 'TOKEN']) delete process.env[`SLUICEGATE_${name}`]
  })
  const { out } = await run(t, 'serve', '--config', file, '--http', '127.0.0.1:4', '--print-config')
  assert.match(out, /http: 127\.0\.0\.1:4\n/)
  assert.match(out, /admin: "?off"?\n/)
  assert.doesNotMatch(out, /hunter2/)
  assert.match(out, /url: redis:\/\/me:\*\*\*\*@r:6379/)
  const json = JSON.parse((await run(t, 'serve', '--config', file, '--print-config', '--json')).out)
  assert.deepEqual([json.listen.http, json.listen.admin, json.tokens.length], ['127.0.0.1:3', 'off', 2])
})

longTest('the printed configuration is accepted as a file', async (t) => {
  const all = configFile(
    t,
    `policies:
  a: { algorithm: token-bucket, limit: 3, window: 90s, burst: 9, max-keys: 100, on-full: deny }
  b: { algorithm: fixed-window, limit: 3, window: month, time-zone: Europe/Rome }
  c: { algorithm: concurrency, limit: 3, ttl: 90s }
  d: { all-of: [{ name: x, algorithm: gcra, limit: 1, window: 1s }, { name: y, algorithm: sliding-log, limit: 2, window: 2d }] }
`,
  )
  const printed = await run(t, 'serve', '--config', all, '--print-config')
  const again = await run(t, 'serve', '--config', configFile(t, printed.out), '--print-config')
  assert.deepEqual([again.out, again.err], [printed.out, ''])
})

longTest('serve --json announces its addresses as one line', async (t) => {
  const child = sluicegate(t, 'serve', '--config', configFile(t, `listen: { port: 0, admin: "127.0.0.1:0" }\n${POLICIES}`), '--json')
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const { listeners } = JSON.parse(line.toString()) as { listeners: Record<string, string> }
  assert.deepEqual(Object.keys(listeners), ['http', 'admin'])
  assert.equal((await fetch(`${listeners.http}/livez`)).status, 200)
})

test('the log is JSON on the error output, without keys and tokens', async (t) => {
  const child = sluicegate(t, 'serve', '--config', configFile(t, `listen: { port: 0 }\n${POLICIES}`))
  let err = ''
  child.stderr.on('data', (chunk) => (err += chunk))
  const { url } = await announcement(child)
  await fetch(`${url}/v1/take?policy=burst&key=secret-alice`)
  child.kill('SIGINT')
  await once(child, 'close')
  const [first] = err.trim().split('\n')
  assert.deepEqual((JSON.parse(first ?? '') as { msg: string }).msg, 'listening')
  assert.doesNotMatch(err, /secret-alice/)
})

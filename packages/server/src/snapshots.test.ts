import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { longTest, shortOrLong, until } from 'sluicegate-testkit'
import { runService, throttled } from 'sluicegate-testkit/service/running-service.js'
import { announcement, configFile, ended, served, serveProcess, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'
import { readSnapshot, SnapshotError } from './engine/snapshot-file.js'

const POLICIES = `policies:
  month: { algorithm: fixed-window, limit: 100, window: month }
  burst: { algorithm: token-bucket, limit: 50, window: 1h, max-keys: 100 }
  log: { algorithm: sliding-log, limit: 10, window: 1h }
  both: { all-of: [{ name: x, algorithm: gcra, limit: 20, window: 1h }, { name: y, algorithm: fixed-window, limit: 30, window: day }] }
`
const NAMES = ['month', 'burst', 'log', 'both']

function setUp(t: TestContext): { file: string; yaml: string } {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'keys.snapshot')
  return { file, yaml: `listen: { port: 0 }\nsnapshot: { file: "${file}", every: 1s }\n${POLICIES}` }
}

async function left(url: string, policy: string, key = 'alice'): Promise<number> {
  return ((await (await fetch(`${url}/v1/peek?policy=${policy}&key=${key}`)).json()) as { remaining: number }).remaining
}

async function takeOfEach(url: string): Promise<void> {
  for (const policy of NAMES) await fetch(`${url}/v1/take?policy=${policy}&key=alice&cost=7`)
}

test('after SIGTERM a restart knows what was spent, under every algorithm', async (t) => {
  const { file, yaml } = setUp(t)
  const first = await serveProcess(t, yaml, '--drain', '0')
  await takeOfEach(first.url)
  assert.equal(await first.end('SIGTERM'), 0)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.ok(!existsSync(`${file}.next`))
  const { url } = await serveProcess(t, yaml)
  for (const [policy, expected] of [
    ['month', 93],
    ['burst', 43],
    ['log', 3],
    ['both', 13],
  ] as const) {
    assert.equal(await left(url, policy), expected, policy)
  }
})

test('what is no file for a snapshot is said at the start, and left as it is', async (t) => {
  const { file, yaml } = setUp(t)
  const folder = join(file, '..')
  const device = join(folder, 'null')
  const kind = putDevice(device)
  for (const [path, reason] of [
    [device, kind],
    [folder, 'is a folder'],
    [join(folder, 'nowhere', 'keys'), 'is in a folder that does not exist'],
  ] as const)
    await assert.rejects(runService(t, yaml.replace(file, path)), new RegExp(`^SnapshotPlaceError: .*${reason}`))
  const { code, err } = await ended(sluicegate(t, 'serve', '--config', configFile(t, yaml.replace(file, device))))
  assert.equal(code, 1)
  assert.match(err, new RegExp(`^sluicegate: \\S+null ${kind}, and a file is needed\\n$`))
  assert.ok(!statSync(device).isFile())
  assert.deepEqual(readdirSync(folder), ['null'])
})

test('a file that is no snapshot is not replaced, nor is a name that leads nowhere a crash', async (t) => {
  const { file, yaml } = setUp(t)
  writeFileSync(file, 'root:x:0:0::/root:/bin/sh\n')
  symlinkSync(`${basename(file)}-circle`, `${file}-circle`)
  for (const [path, reason] of [
    [file, 'is no snapshot, and would be replaced'],
    [`${file}-circle`, 'cannot be reached: ELOOP'],
    [join(file, 'below'), '(is in no folder|cannot be reached: ENOTDIR)'],
  ] as const)
    await assert.rejects(runService(t, yaml.replace(file, path)), new RegExp(`^SnapshotPlaceError: .*${reason}`))
  assert.equal(readFileSync(file, 'utf8'), 'root:x:0:0::/root:/bin/sh\n')
  assert.deepEqual(readdirSync(join(file, '..')).sort(), [basename(file), `${basename(file)}-circle`])
})

test('a device that takes the place of a snapshot meanwhile is left as it is', async (t) => {
  const { file, yaml } = setUp(t)
  const service = await runService(t, yaml)
  const kind = putDevice(file)
  await service.stop({ drainMs: 0, finishMs: 0 })
  assert.ok(!statSync(file).isFile(), kind)
  assert.ok(!existsSync(`${file}.next`))
})

/** What `/dev/null` is where this user may make one, else a pipe. Returns what the service calls it. */
function putDevice(path: string): string {
  const isRoot = process.getuid?.() === 0
  if (isRoot) execFileSync('mknod', [path, 'c', '1', '3'])
  else execFileSync('mkfifo', [path])
  return isRoot ? 'is a device' : 'is a pipe'
}

test('one service has a snapshot at a time; the lock of one that was killed is none', async (t) => {
  const { file, yaml } = setUp(t)
  const first = await serveProcess(t, yaml)
  const path = configFile(t, yaml)
  const { code, err } = await ended(sluicegate(t, 'serve', '--config', path))
  assert.equal(code, 1)
  assert.match(err, new RegExp(`^sluicegate: \\S+keys\\.snapshot is in use by process ${first.child.pid} on `))
  await first.end('SIGKILL')
  assert.ok(existsSync(`${file}.lock`))
  const second = await runService(t, yaml)
  await second.stop()
  assert.ok(!existsSync(`${file}.lock`))
})

test('a snapshot has one lock by whatever name, and what is no lock is said at once', async (t) => {
  const { file, yaml } = setUp(t)
  const folder = join(file, '..')
  symlinkSync(file, join(folder, 'other'))
  symlinkSync(folder, join(folder, 'same'))
  const first = await runService(t, yaml)
  for (const name of ['other', 'same/keys.snapshot', 'same/other'])
    await assert.rejects(runService(t, yaml.replace(file, join(folder, name))), /keys\.snapshot is in use by process/, name)
  await takeOfEach(first.url)
  await first.stop()
  const second = await runService(t, yaml.replace(file, join(folder, 'other')))
  assert.equal(await left(second.url, 'month'), 93)
  await second.stop()
  assert.equal(readlinkSync(join(folder, 'other')), file)
  const lock = `${file}.lock`
  for (const make of [() => execFileSync('mkfifo', [lock]), () => mkdirSync(lock), () => symlinkSync('nowhere', lock)]) {
    make()
    await assert.rejects(runService(t, yaml), /cannot be locked: \S+\.lock is no file; remove it/)
    rmSync(lock, { recursive: true })
  }
})

longTest('a lock that names nobody holds a start for six seconds, and that is said', async (t) => {
  const { file, yaml } = setUp(t)
  for (const text of ['', 'null', '[]']) {
    writeFileSync(`${file}.lock`, text)
    const child = sluicegate(t, 'serve', '--config', configFile(t, yaml))
    const [line] = (await once(child.stderr, 'data')) as [Buffer]
    assert.match(String(line), /lock names no service: waiting 6 s for a sign of life/)
    await announcement(child)
    child.kill('SIGKILL')
    await once(child, 'close')
  }
})

test('a lock is none when its process is dead and nobody has waited for it', async (t) => {
  const { file, yaml } = setUp(t)
  // A shell that becomes a program which waits for no child.
  const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => parent.kill())
  const [line] = (await once(parent.stdout, 'data')) as [Buffer]
  const pid = Number(line)
  const stat = (): string[] => readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')
  const owner = { id: 'another', host: hostname(), space: readlinkSync('/proc/self/ns/pid'), pid, born: stat()[21], beat: 0 }
  writeFileSync(`${file}.lock`, JSON.stringify(owner))
  await assert.rejects(runService(t, yaml), /is in use by process/)
  process.kill(pid, 'SIGKILL')
  await until('it is dead', () => stat()[2] === 'Z')
  await (await runService(t, yaml)).stop()
})

test('keys with limits of their own keep what they have spent over a restart, also where they are many more then', async (t) => {
  const base = setUp(t).yaml
  const yaml = (keys: number): string => {
    const own = Array.from({ length: keys }, (_, i) => `k${i}: { limit: 30 }`)
    return `${base}  own: { algorithm: token-bucket, limit: 10, window: 1h, keys: { ${own.join(', ')} } }\n`
  }
  const run = async (text: string, then: (url: string) => Promise<void>): Promise<void> => {
    const service = await runService(t, text)
    await then(service.url)
    await service.stop()
  }
  const take = async (url: string, key: string): Promise<number> =>
    ((await (await fetch(`${url}/v1/take?policy=own&key=${key}&cost=10`)).json()) as { remaining: number }).remaining
  await run(yaml(5), async (url) => assert.equal(await take(url, 'k1'), 20))
  await run(yaml(5), async (url) => assert.equal(await take(url, 'k1'), 10))
  await run(yaml(100), async (url) => assert.deepEqual([await take(url, 'k1'), await take(url, 'k99')], [0, 20]))
  await run(yaml(100), async (url) => assert.equal(await take(url, 'k99'), 10))
})

test('keys of a policy that is left out for a time are kept, and those of a tier', async (t) => {
  const { file, yaml } = setUp(t)
  const tiers = 'burst: { algorithm: token-bucket, limit: 50, window: 1h, tiers: { big: { limit: 500 } }, keys: { alice: big }'
  const tiered = yaml.replace('burst: { algorithm: token-bucket, limit: 50, window: 1h', tiers.slice(0, -2).concat(' }'))
  const run = async (text: string, then: (url: string) => Promise<unknown>): Promise<void> => {
    const service = await runService(t, text)
    await then(service.url)
    await service.stop()
  }
  await run(tiered, takeOfEach)
  const without = yaml.replace(/^ {2}month.*\n/m, '').replace(/^ {2}burst.*\n/m, '')
  for (let i = 0; i < 2; i++) await run(without, async () => undefined)
  assert.deepEqual(
    readSnapshot(readFileSync(file)).map(({ name, tier, leftOutMs }) => [name, tier, leftOutMs !== undefined]),
    [
      ['log', undefined, false],
      ['both', undefined, false],
      ['month', undefined, true],
      ['burst', undefined, true],
      ['burst', 'big', true],
    ],
  )
  await run(tiered, async (url) => assert.deepEqual(await Promise.all(NAMES.map((name) => left(url, name))), [93, 493, 3, 13]))
})

test('a key that was not used since it changed its tier keeps what it has spent, also where the tier is gone', async (t) => {
  const { yaml } = setUp(t)
  const head = 'burst: { algorithm: token-bucket, limit: 50, window: 1h'
  const tiered = (tiers: string, keys: string) =>
    yaml.replace(head, `burst: { tiers: ${tiers}, keys: ${keys}, ${head.slice('burst: { '.length)}`)
  const text = tiered('{ big: { limit: 500, window: 30d }, huge: { limit: 900, window: 30d } }', '{ alice: big, bob: huge }')
  const file = configFile(t, text)
  const first = await served(sluicegate(t, 'serve', '--config', file, '--drain', '0'))
  for (const key of ['alice', 'bob']) await fetch(`${first.url}/v1/take?policy=burst&key=${key}&cost=7`)
  const changed = tiered('{ big: { limit: 500, window: 30d } }', '{ bob: big }')
  writeFileSync(file, changed)
  await until('it is read again', async () => (await first.metric('sluicegate_config_reloads_total', { result: 'success' })) === 1)
  assert.equal(await first.end('SIGTERM'), 0)
  const { url } = await serveProcess(t, changed)
  assert.deepEqual(await Promise.all(['alice', 'bob'].map((key) => left(url, 'burst', key))), [43, 493])
})

// In every run CL.THROTTLE has one, below.
longTest('after kill -9 a restart knows what the last snapshot knew', async (t) => {
  const { yaml } = setUp(t)
  const first = await serveProcess(t, yaml)
  await takeOfEach(first.url)
  const now = Date.now() / 1000
  await until('a later snapshot is written', async () => (await first.metric('sluicegate_snapshot_last_success_timestamp_seconds')) > now)
  await fetch(`${first.url}/v1/take?policy=month&key=alice&cost=5`)
  await first.end('SIGKILL')
  const { url } = await serveProcess(t, yaml)
  assert.ok([93, 88].includes(await left(url, 'month')))
})

test('what was spent stays spent with other numbers, another algorithm, another table and other parts', async (t) => {
  const { yaml } = setUp(t)
  const first = await runService(t, yaml)
  await takeOfEach(first.url)
  await first.stop()
  const changed = yaml
    .replace('limit: 100', 'limit: 200')
    .replace('sliding-log, limit: 10', 'gcra, limit: 10')
    .replace('max-keys: 100', 'max-keys: 200')
    .replace('all-of: [', 'all-of: [{ name: z, algorithm: gcra, limit: 5000, window: 1h }, ')
  const second = await runService(t, changed)
  assert.deepEqual(await Promise.all(NAMES.map((name) => left(second.url, name))), [193, 43, 3, 13])
  await second.stop()
})

test('a key that was not used between two changes keeps what it has spent', async (t) => {
  const { file, yaml } = setUp(t)
  const first = await runService(t, yaml)
  await takeOfEach(first.url)
  await first.stop()
  const changes = [
    (text: string) =>
      text
        .replace('max-keys: 100', 'max-keys: 200')
        .replace('all-of: [', 'all-of: [{ name: z, algorithm: gcra, limit: 5000, window: 1h }, '),
    (text: string) => text,
    (text: string) => text.replace('max-keys: 200', 'max-keys: 300').replace('sliding-log, limit: 10', 'gcra, limit: 10'),
    (text: string) => text,
  ]
  let changed = yaml
  for (const change of changes) {
    changed = change(changed)
    const service = await runService(t, changed)
    await service.stop()
  }
  const formers = readSnapshot(readFileSync(file)).map(({ name, former }) => [name, former])
  assert.deepEqual(
    formers.filter(([, former]) => former !== undefined),
    [
      ['burst', 1],
      ['burst', 2],
      ['log', 1],
      ['both', 1],
    ],
  )
  const last = await runService(t, changed)
  assert.deepEqual(await Promise.all(NAMES.map((name) => left(last.url, name))), [93, 43, 3, 13])
  await last.stop()
})

longTest('a damaged snapshot is refused, reported and kept, and the service starts', async (t) => {
  const { file, yaml } = setUp(t)
  const first = await runService(t, yaml)
  await takeOfEach(first.url)
  await first.stop()
  const good = readFileSync(file)
  const damages: readonly ((bytes: Buffer) => Buffer)[] = [
    (bytes: Buffer) => bytes.subarray(0, bytes.length - 1),
    (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('x')]),
    (bytes: Buffer) => Buffer.from(bytes.map((byte, i) => (i === bytes.length >> 1 ? byte ^ 1 : byte))),
    () => Buffer.from('SLUICEGATE-SNAPSHOT 0\n'),
    () => Buffer.alloc(0),
    () => Buffer.alloc(4_096),
  ]
  for (const [i, damage] of damages.entries()) {
    const bytes = damage(good)
    assert.throws(() => readSnapshot(bytes), SnapshotError)
    // Each starts a service: a short run has the first.
    if (i >= shortOrLong(1, damages.length)) continue
    writeFileSync(file, bytes)
    const service = await runService(t, yaml)
    assert.equal(await left(service.url, 'month'), 100)
    assert.deepEqual(readFileSync(`${file}.damaged`), bytes)
    await service.stop()
  }
})

longTest('a snapshot that cannot be written is in the metrics, and the service goes on', async (t) => {
  const { file, yaml } = setUp(t)
  const folder = join(file, '..', 'gone')
  mkdirSync(folder)
  const service = await serveProcess(t, yaml.replace(file, join(folder, 'keys')))
  rmSync(folder, { recursive: true })
  await until('the failure is shown', async () => (await service.metric('sluicegate_snapshot_failed')) === 1)
  assert.equal(await left(service.url, 'month'), 100)
  assert.equal(await service.end('SIGINT'), 0)
})

longTest('the debt of keys of CL.THROTTLE survives kill -9 up to the last snapshot', async (t) => {
  const { file, yaml } = setUp(t)
  const resp = join(file, '..', 'resp.sock')
  const remaining = (quantity: number): Promise<number> => throttled(resp, 'alice', '99', '100', '86400', `${quantity}`)
  const first = await serveProcess(t, yaml, '--resp', `unix:${resp}`)
  assert.equal(await remaining(30), 70)
  const now = Date.now() / 1000
  await until('a later snapshot is written', async () => (await first.metric('sluicegate_snapshot_last_success_timestamp_seconds')) > now)
  await remaining(5)
  await first.end('SIGKILL')
  const second = await serveProcess(t, yaml, '--resp', `unix:${resp}`)
  assert.ok([70, 65].includes(await remaining(0)))
  await remaining(10)
  assert.equal(await second.end('SIGINT'), 0)
  await serveProcess(t, `${yaml}throttle: { max-keys: 1000 }\n`, '--resp', `unix:${resp}`)
  assert.equal(await remaining(0), 100)
})

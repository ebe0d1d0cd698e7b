import assert from 'node:assert/strict'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Clock, manualClock } from 'sluicegate'
import { readConfig } from 'sluicegate-config/read-config.js'
import { longTest, RedisProcess, until } from 'sluicegate-testkit'
import { GrpcTestClient } from 'sluicegate-testkit/service/simulated-envoy.js'
import { Limiter } from './protocols/grpc/messages/sluicegate/v1/limiter.gen.js'
import { type Service, startService } from './service.js'

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly headers: Headers
}

async function setUp(t: TestContext, more = '', options: { clock?: Clock } = { clock: manualClock(0) }) {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-tiers-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'own.yaml')
  const write = (name: string, text: string): void => {
    writeFileSync(join(folder, 'next'), text)
    renameSync(join(folder, 'next'), join(folder, name))
  }
  write('tenants.csv', 'key,tier,limit\nacme,pro,\nfree-*,,5\n')
  write(
    'own.yaml',
    `listen: { port: 0, grpc: "127.0.0.1:0", resp: "127.0.0.1:0" }\nlog: { level: silent }\n${more}policies:
  tenant: { algorithm: fixed-window, limit: 10, window: 30d, tiers: { pro: { limit: 100 } }, tier-file: tenants.csv }
`,
  )
  const start = async (): Promise<Service> => {
    const service = await startService(readConfig(path), { ...options, watchMs: 5, source: { path, read: () => readConfig(path) } })
    t.after(() => service.stop())
    return service
  }
  return { write, start, folder }
}

async function ask(service: Service, verb: 'take' | 'peek', key: string, cost = 1): Promise<Answer> {
  const response = await fetch(`${service.url}/v1/${verb}?policy=tenant&key=${key}&cost=${cost}`)
  return { status: response.status, body: (await response.json()) as Record<string, unknown>, headers: response.headers }
}

const left = async (service: Service, key: string) => (await ask(service, 'peek', key)).body.remaining

test('a changed data file takes effect by itself, all or nothing, and keys keep what they have spent', async (t) => {
  const { write, start } = await setUp(t)
  const service = await start()
  const { body, headers } = await ask(service, 'take', 'acme', 30)
  assert.deepEqual([body.limit, body.remaining, body.policy], [100, 70, 'tenant'])
  assert.match(headers.get('ratelimit-policy') ?? '', /"tenant";q=100;/)
  assert.deepEqual([await left(service, 'free-1'), await left(service, 'other')], [5, 10])
  await ask(service, 'take', 'other', 4)
  write('tenants.csv', 'key,tier,limit\nother,pro,\nacme,,50\n')
  await until('the file is in force', async () => (await left(service, 'other')) === 96)
  assert.deepEqual([await left(service, 'acme'), await left(service, 'free-1')], [20, 10])
  write('tenants.csv', 'key,tier,limit\nother,pro,\nacme,unknown,\n')
  await until('the file is refused', () => service.reloader?.state.failed === 1)
  assert.match(service.reloader?.state.fault ?? '', /tenants\.csv:3:1: there is no tier "unknown"/)
  assert.deepEqual([await left(service, 'other'), await left(service, 'acme')], [96, 20])
  write('own.yaml', 'policies: [')
  write('tenants.csv', 'key,tier\nacme,pro\n')
  await until('a broken configuration does not hold back the data', async () => (await left(service, 'acme')) === 70)
  assert.equal(await left(service, 'other'), 6)
})

longTest('a snapshot has the keys of tiers', async (t) => {
  const { start, folder } = await setUp(
    t,
    `snapshot: { file: FOLDER/keys }\n`.replace('FOLDER', mkdtempSync(join(tmpdir(), 'sluicegate-keys-'))),
  )
  assert.ok(folder)
  const first = await start()
  await ask(first, 'take', 'acme', 30)
  await ask(first, 'take', 'free-1', 2)
  await first.stop()
  const second = await start()
  assert.deepEqual([await left(second, 'acme'), await left(second, 'free-1'), await left(second, 'other')], [70, 3, 10])
})

test('over Redis services share the keys of tiers, and a changed tier keeps what was spent by all of them', async (t) => {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  const { write, start } = await setUp(t, `storage: { redis: { url: "redis://127.0.0.1:${redis.port}", mode: exact } }\n`, {})
  const [first, second] = [await start(), await start()]
  assert.equal((await ask(first, 'take', 'acme', 60)).status, 200)
  assert.equal((await ask(second, 'take', 'acme', 60)).status, 429)
  assert.equal((await ask(second, 'take', 'other', 4)).status, 200)
  write('tenants.csv', 'key,tier,limit\nother,pro,\nacme,,70\n')
  for (const service of [first, second]) await until('the file is in force', async () => (await left(service, 'other')) === 96)
  assert.equal(await left(second, 'acme'), 10)
  assert.equal((await ask(first, 'take', 'acme', 11)).status, 429)
  assert.equal((await ask(first, 'take', 'acme', 10)).status, 200)
  assert.equal((await ask(second, 'take', 'acme')).status, 429)
})

test("values of Envoy's descriptors have tiers, and the response says the limit of theirs", async (t) => {
  const { write, start } = await setUp(t)
  write(
    'own.yaml',
    `
domain: edge
descriptors:
  - key: tenant
    rate_limit: { unit: minute, requests_per_unit: 2, tiers: { pro: { requests_per_unit: 3, window: 1h } }, tier_file: tenants.csv }
`,
  )
  const service = await start()
  const send = async (value: string): Promise<Answer> => {
    const body = JSON.stringify({ domain: 'edge', descriptors: [{ entries: [{ key: 'tenant', value }] }] })
    const response = await fetch(`${service.url}/json`, { method: 'POST', body })
    return { status: response.status, body: (await response.json()) as Record<string, unknown>, headers: response.headers }
  }
  assert.deepEqual((await send('acme')).body.statuses, [
    { code: 'OK', currentLimit: { requestsPerUnit: 3, unit: 'HOUR' }, limitRemaining: 2, durationUntilReset: '3600s' },
  ])
  assert.deepEqual(
    [await send('acme'), await send('acme'), await send('acme')].map(({ status }) => status),
    [200, 200, 429],
  )
  assert.deepEqual(
    [await send('x'), await send('x'), await send('x')].map(({ status }) => status),
    [200, 200, 429],
  )
  assert.equal((await send('free-1')).status, 200)
})

test('a key has the limit of its tier over gRPC and over RESP, and both spend the same tokens', async (t) => {
  const service = await (await setUp(t)).start()
  using client = new GrpcTestClient(service.urls.get('grpc') ?? assert.fail())
  const overGrpc = async (key: string) => {
    const { limit, remaining } = await client.call(Limiter.method.take, { policy: 'tenant', keys: [key] })
    return [Number(limit), Number(remaining)]
  }
  const { hostname, port } = new URL((service.urls.get('resp') ?? assert.fail()).replace(/^\w+:/, 'http:'))
  const overResp = async (key: string) => {
    const socket = createConnection(Number(port), hostname)
    socket.end(`SG.TAKE tenant ${key}\r\n`)
    let text = ''
    for await (const chunk of socket.setEncoding('latin1')) text += chunk
    const [, limit, remaining] = Array.from(text.matchAll(/:(-?\d+)/g), ([, number]) => Number(number))
    return [limit, remaining]
  }
  assert.deepEqual(
    [await overGrpc('acme'), await overResp('acme')],
    [
      [100, 99],
      [100, 98],
    ],
    'a tier of the data file',
  )
  assert.deepEqual(
    [await overGrpc('free-1'), await overResp('free-1')],
    [
      [5, 4],
      [5, 3],
    ],
    'a prefix',
  )
  assert.deepEqual(
    [await overGrpc('other'), await overResp('other')],
    [
      [10, 9],
      [10, 8],
    ],
    'no tier',
  )
})

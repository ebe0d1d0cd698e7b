import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { tokenBucket } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { everyNth, longTest, RedisCluster, RedisProcess, shortOrLong, until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import type { EngineLimiter } from './engine/engine-limiter.js'
import { type SharedStorage, sharedStorage } from './engine/shared-storage.js'
import { createLog } from './log.js'
import { type Service, startService } from './service.js'

const POLICIES = `
listen: { port: 0, admin: "127.0.0.1:0" }
policies:
  wide: { algorithm: token-bucket, limit: 1000, window: 1h }
  narrow: { algorithm: fixed-window, limit: 3, window: day }
  jobs: { algorithm: concurrency, limit: 1, ttl: 30s }
`
/** What two services share. Each take is a request on a connection of its own. */
const LIMIT = shortOrLong(200, 1_000)

async function post(service: Service, path: string, value: unknown, listener: 'http' | 'admin' = 'http') {
  const response = await fetch(`${service.urls.get(listener)}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(value),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

async function takesFrom(services: readonly Service[], n: number, path: string): Promise<number> {
  const answers = await Promise.all(
    Array.from({ length: n }, (_, i) => fetch(`${services[i % services.length]?.url}${path}`).then(({ status }) => status)),
  )
  assert.ok(
    answers.every((status) => status === 200 || status === 429),
    String([...new Set(answers)]),
  )
  return answers.filter((status) => status === 200).length
}

function redisYaml(port: number, more = ''): string {
  return `${POLICIES}storage: { redis: { url: "redis://127.0.0.1:${port}"${more} } }\n`
}

async function twoServices(t: TestContext, yaml: string): Promise<[Service, Service]> {
  return [await runService(t, yaml), await runService(t, yaml)]
}

function rootsOf({ roots }: RedisCluster): string[] {
  return roots.map(({ host, port }) => `redis://${host}:${port}`)
}

async function clusterStorage(t: TestContext, urls: readonly string[]): Promise<SharedStorage> {
  const config = {
    kind: 'redis',
    isCluster: true,
    prefix: undefined,
    mode: 'exact',
    outage: 'open',
    timeoutMs: 500,
    refusedAtStart: 'serve',
    urls,
  } as const
  const storage = await sharedStorage(config, createLog('silent'))
  t.after(() => storage.close())
  await storage.connect()
  return storage
}

function limiterOf(storage: SharedStorage): EngineLimiter {
  const policy = tokenBucket({ limit: 1_000, window: '1h', name: 'wide' })
  return storage.limiter({ policy, maxKeys: undefined, onFull: 'evict' }, { hotKeys: 0, clock: undefined })
}

for (const [i, mode] of ['leased', 'exact'].entries()) {
  everyNth(i, 2)(`two services share one budget in Redis, ${mode}`, async (t) => {
    const redis = await RedisProcess.start()
    t.after(() => redis.stop())
    const yaml = redisYaml(redis.port, `, mode: ${mode}, timeout: 20s`).replace('limit: 1000', `limit: ${LIMIT}`)
    const services = await twoServices(t, yaml)
    const admitted = await takesFrom(services, 1.5 * LIMIT, '/v1/take?policy=wide&key=alice')
    assert.ok(admitted <= 1.01 * LIMIT, `${admitted} admitted`)
    assert.ok(admitted >= LIMIT * 0.8, `${admitted} admitted`)
    assert.equal(await takesFrom(services, 20, '/v1/take?policy=narrow&key=alice'), 3)
    const exposition = readExposition(await (await fetch(`${services[0].url}/metrics`)).text())
    assert.equal(seriesValue(exposition, 'sluicegate_store_reachable'), 1)
    assert.ok(seriesValue(exposition, 'sluicegate_store_calls_total', { policy: 'wide' }) > 0)
  })
}

test('the log says that a server may evict keys, although no connection was open when its store was made', async (t) => {
  const redis = await RedisProcess.start({ args: ['--maxmemory-policy', 'allkeys-lru'] })
  t.after(() => redis.stop())
  const codes: unknown[] = []
  const listen = ({ code }: NodeJS.ErrnoException): void => void codes.push(code)
  process.on('warning', listen)
  t.after(() => process.off('warning', listen))
  await runService(t, redisYaml(redis.port))
  await until('the warning', () => codes.includes('SLUICEGATE_EVICTION'))
})

test('all verbs work over Redis, and several takes pass together or not at all', async (t) => {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  const [service, other] = await twoServices(t, redisYaml(redis.port, ', mode: exact'))
  const left = async (policy: string) => (await post(other, '/v1/peek', { policy, key: 'alice' })).body.remaining
  const takes = (cost: number) => [
    { policy: 'wide', key: 'alice', cost: 10 },
    { policy: 'narrow', key: 'alice', cost },
  ]
  assert.equal((await post(service, '/v1/batch', { all: true, takes: takes(2) })).status, 200)
  assert.equal((await post(service, '/v1/batch', { all: true, takes: takes(2) })).status, 429)
  assert.deepEqual([await left('wide'), await left('narrow')], [990, 1])
  const { body } = await post(service, '/v1/reserve', { policy: 'wide', key: 'alice', cost: 100 })
  assert.equal(await left('wide'), 890)
  assert.equal((await post(service, '/v1/settle', { reservation: body.reservation, cost: 30 })).status, 200)
  assert.equal(await left('wide'), 960)
  const permit = await post(service, '/v1/take', { policy: 'jobs', key: 'alice' })
  assert.deepEqual([permit.status, (await post(other, '/v1/take', { policy: 'jobs', key: 'alice' })).status], [200, 429])
  assert.equal((await post(service, '/v1/heartbeat', { permit: permit.body.permit })).status, 200)
  assert.equal((await post(service, '/v1/release', { permit: permit.body.permit })).status, 200)
  assert.equal((await post(other, '/v1/take', { policy: 'jobs', key: 'alice' })).status, 200)
  const key = { policy: 'wide', key: 'alice' }
  await post(service, '/v1/penalize', { ...key, tokens: 60 }, 'admin')
  assert.equal(await left('wide'), 900)
  await post(service, '/v1/refund', { ...key, tokens: 50 }, 'admin')
  assert.equal(await left('wide'), 950)
  await post(service, '/v1/block', { ...key, forMs: 60_000 }, 'admin')
  assert.equal((await post(other, '/v1/take', key)).status, 429)
  await post(service, '/v1/reset', key, 'admin')
  assert.equal(await left('wide'), 1_000)
})

longTest('many batches of two services at once never exceed a policy, and a denial leaves no charge', async (t) => {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  // So slow that nothing flows back: a cancelled take does not return what might have flowed back into a full bucket meanwhile.
  const yaml = redisYaml(redis.port, ', mode: exact, timeout: 20s').replace('limit: 3', 'limit: 40').replace('window: 1h', 'window: 365d')
  const services = await twoServices(t, yaml)
  const takes = [
    { policy: 'wide', key: 'alice', cost: 1 },
    { policy: 'narrow', key: 'alice', cost: 1 },
  ]
  const answers = await Promise.all(
    Array.from({ length: shortOrLong(100, 200) }, (_, i) => post(services[i % 2] as Service, '/v1/batch', { all: true, takes })),
  )
  const passed = answers.filter(({ status }) => status === 200).length
  assert.ok(passed <= 40 && passed >= 30, `${passed} passed`)
  const wide = (await post(services[0], '/v1/peek', { policy: 'wide', key: 'alice' })).body.remaining
  assert.equal(wide, 1_000 - passed)
})

longTest('reservations that compete for the rest of a window leave it open: what is cancelled may be taken again', async (t) => {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  const [service] = (await twoServices(t, redisYaml(redis.port, ', mode: exact, timeout: 20s'))) as unknown as [Service]
  const reserve = () => post(service, '/v1/reserve', { policy: 'narrow', key: 'alice', cost: 1 })
  const made = await Promise.all(Array.from({ length: 30 }, reserve))
  const ids = made.filter(({ status }) => status === 200).map(({ body }) => body.reservation)
  assert.equal(ids.length, 3)
  for (const reservation of ids) assert.equal((await post(service, '/v1/cancel', { reservation })).status, 200)
  assert.equal((await post(service, '/v1/peek', { policy: 'narrow', key: 'alice' })).body.remaining, 3)
})

longTest('keys in a cluster work the same', async (t) => {
  const cluster = await RedisCluster.start()
  t.after(() => cluster.stop())
  const nodes = cluster.nodes.map(({ url }) => `"${url}"`).join(', ')
  const services = await twoServices(t, `${POLICIES}storage: { redis: { nodes: [${nodes}], timeout: 20s } }\n`)
  for (const key of ['alice', 'bob', 'carol']) assert.equal(await takesFrom(services, 10, `/v1/take?policy=narrow&key=${key}`), 3)
})

longTest('a cluster that cannot be reached at the start is found later', async (t) => {
  const cluster = await RedisCluster.start({ replicas: 0 })
  t.after(() => cluster.stop())
  await cluster.behindProxies()
  for (const proxy of cluster.proxies.values()) proxy.set({ kind: 'cut' })
  const storage = await clusterStorage(t, rootsOf(cluster))
  assert.equal(storage.isReachable, false)
  for (const proxy of cluster.proxies.values()) proxy.set({ kind: 'none' })
  await until('the cluster is found', () => storage.isReachable)
})

longTest('a primary that cannot be reached holds up no other shard at the start', async (t) => {
  const cluster = await RedisCluster.start({ replicas: 0 })
  t.after(() => cluster.stop())
  await cluster.behindProxies()
  const [dead] = await cluster.primaries()
  cluster.proxies.get(dead as RedisProcess)?.set({ kind: 'black-hole' })
  const storage = await clusterStorage(t, rootsOf(cluster))
  const limiter = limiterOf(storage)
  const sources = new Set<string>()
  await until('other shards decide', async () => {
    for (let i = 0; i < 10; i++) sources.add((await limiter.take(`key-${i}`, 1)).source)
    return sources.has('store')
  })
  assert.ok(sources.has('outage'), [...sources].join())
  cluster.proxies.get(dead as RedisProcess)?.set({ kind: 'none' })
  await until('all shards decide', async () => {
    const decisions = await Promise.all(Array.from({ length: 10 }, (_, i) => limiter.take(`key-${i}`, 1)))
    return decisions.every(({ source }) => source === 'store')
  })
})

longTest('a server that joins no cluster before the service has started is found with its slots', async (t) => {
  const server = await RedisProcess.start({ args: ['--cluster-enabled', 'yes'] })
  t.after(() => server.stop())
  const storage = await clusterStorage(t, [server.url])
  assert.equal(storage.isReachable, false)
  await server.ask('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
  const limiter = limiterOf(storage)
  await until('the store decides', async () => (await limiter.take('alice', 1)).source === 'store')
  await until('that is known', () => storage.isReachable)
})

for (const [outage, expected] of [
  ['open', 200],
  ['closed', 429],
] as const) {
  const inTime = outage === 'open' ? test : longTest
  inTime(`without its store the service starts and is ${outage} as the file says; it recovers by itself`, async (t) => {
    const redis = await RedisProcess.start()
    t.after(() => redis.stop())
    const yaml = redisYaml(redis.port, `, outage: ${outage}`)
    await redis.stop()
    const service = await startService(parseConfig(yaml))
    t.after(() => service.stop({ drainMs: 0, finishMs: 0 }))
    const take = `${service.url}/v1/take?policy=wide&key=alice`
    const first = await fetch(take)
    assert.deepEqual([first.status, ((await first.json()) as { source: string }).source], [expected, 'outage'])
    const metric = async (name: string, labels: Record<string, string> = { policy: 'wide' }): Promise<number> =>
      seriesValue(readExposition(await (await fetch(`${service.url}/metrics`)).text()), name, labels)
    await until('its circuit opens', async () => {
      await fetch(take)
      return (await metric('sluicegate_store_open_circuits')) === 1
    })
    await service.engine.callRates.throttle('k', { maxBurst: 0, count: 1, periodS: 60 }, 1)
    const source = { source: 'outage' }
    assert.deepEqual([await metric('sluicegate_throttle_sources_total', source), await metric('sluicegate_store_reachable', {})], [1, 0])
    const again = await RedisProcess.start({ port: redis.port })
    t.after(() => again.stop())
    await until('it recovers', async () => ((await (await fetch(take)).json()) as { source: string }).source !== 'outage')
    assert.equal(await metric('sluicegate_store_open_circuits'), 0)
  })
}

test('the address of a store that is no address, or has a password, never appears in messages', () => {
  const secret = 'hunter2hunter2'
  for (const redis of [
    `{ url: "http://:${secret}@host" }`,
    `{ url: "${secret}" }`,
    `{ nodes: ["${secret}"] }`,
    `{ url: "redis://a", nodes: ["${secret}"] }`,
  ]) {
    assert.throws(
      () => parseConfig(`${POLICIES}storage: { redis: ${redis} }\n`),
      (error) => error instanceof Error && /storage\.redis\.(url|nodes): /.test(error.message) && !error.message.includes(secret),
    )
  }
})

test('closing a storage without a reachable server, or without leases, does not wait for the timeout', async () => {
  const redis = await RedisProcess.start()
  const options = { prefix: undefined, mode: undefined, outage: 'closed', timeoutMs: 30_000, refusedAtStart: 'serve' } as const
  const config = { kind: 'redis', isCluster: false, ...options } as const
  const open = async (): Promise<SharedStorage> => {
    const storage = await sharedStorage({ ...config, urls: [`redis://127.0.0.1:${redis.port}`] }, createLog('silent'))
    await storage.connect()
    return storage
  }
  const idle = await open()
  const dead = await open()
  const startMs = performance.now()
  await idle.close()
  await redis.stop()
  await until('the loss is noticed', async () => !dead.isReachable)
  await dead.close()
  assert.ok(performance.now() - startMs < 15_000)
})

test('a wrong home is refused with its place, and its address never appears in messages', () => {
  const secret = 'hunter2hunter2'
  const fault =
    (storage: string): (() => unknown) =>
    () =>
      parseConfig(`${POLICIES}storage: ${storage}\n`)
  assert.throws(fault('{ home: { url: "redis://a", region: west } }'), /storage\.home: needs redis or postgres, the store of this region/)
  assert.throws(fault('{ redis: { url: "redis://a" }, home: { url: "redis://b" } }'), /region/)
  assert.throws(
    fault(`{ redis: { url: "redis://a" }, home: { url: "http://:${secret}@b", region: west } }`),
    (error) => error instanceof Error && /storage\.home\.url: /.test(error.message) && !error.message.includes(secret),
  )
  const homeFault = (home: string): (() => unknown) => fault(`{ redis: { url: "redis://a" }, home: ${home} }`)
  assert.throws(
    homeFault(`{ postgres: { url: "mysql://:${secret}@b" }, region: west }`),
    (error) => error instanceof Error && /storage\.home\.postgres\.url: /.test(error.message) && !error.message.includes(secret),
  )
  assert.throws(
    homeFault('{ postgres: { url: "postgres://b" }, url: "redis://b", region: west }'),
    /storage\.home\.postgres: and url are two homes: give one of them/,
  )
  assert.throws(homeFault('{ postgres: { table: t }, region: west }'), /storage\.home\.postgres\.url: is missing/)
  assert.throws(
    homeFault('{ postgres: { url: "postgres://b", prefix: p }, region: west }'),
    /prefix: unknown option; there are url, table, con/,
  )
  assert.throws(homeFault('{ region: west }'), /give url for a single server, or nodes for a cluster, or postgres for a table/)
})

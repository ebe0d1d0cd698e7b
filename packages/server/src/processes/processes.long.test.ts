import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RedisProcess, until } from 'sluicegate-testkit'
import { send, sendMany, workersOf } from 'sluicegate-testkit/service/many-connections.js'
import { throttled } from 'sluicegate-testkit/service/running-service.js'
import { announcement, configFile, serveProcess, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'

const YAML = `listen: { port: 0 }
processes: 3
policies:
  wide: { algorithm: token-bucket, limit: 500, window: 30d }
  other: { algorithm: fixed-window, limit: 100000, window: year }
  jobs: { algorithm: concurrency, limit: 2, ttl: 60s }
`

test('a worker that is killed half-way is replaced; the budget stays exact as seen by all clients together', async (t) => {
  const service = await serveProcess(t, YAML)
  const before = workersOf(service)
  const first = sendMany(service.url, '/v1/take?policy=wide&key=alice', 64, 20)
  process.kill(before[0] as number, 'SIGKILL')
  const statuses = await first
  const passed = statuses.get(200) ?? 0
  // An answer of the killed worker may be lost after its tokens were taken.
  assert.ok(passed <= 500 && passed + (statuses.get(0) ?? 0) >= 500, JSON.stringify([...statuses]))
  await until('a worker has taken its place', async () => workersOf(service).length === 3)
  assert.equal((await send(service.url, '/v1/take?policy=wide&key=alice')).status, 429)
})

test('a reload under load loses no request', async (t) => {
  const path = configFile(t, YAML)
  const child = sluicegate(t, 'serve', '--config', path)
  const { url } = await announcement(child)
  const loading = sendMany(url, '/v1/take?policy=other&key=bob', 64, 40)
  writeFileSync(path, YAML.replace('limit: 500', 'limit: 600'))
  child.kill('SIGHUP')
  assert.deepEqual([...(await loading).keys()], [200])
  await until('the reload is in force', async () => (await send(url, '/v1/peek?policy=wide&key=a')).body.limit === 600)
})

test('after SIGTERM under load each request is answered; the next start knows what was spent, also by CL.THROTTLE', async (t) => {
  const place = dirname(configFile(t, YAML))
  const resp = join(place, 'resp.sock')
  const flags = ['--resp', `unix:${resp}`, '--snapshot', join(place, 'keys.snapshot'), '--drain', '5s']
  const throttle = (): Promise<number> => throttled(resp, 'alice', '99', '1', '86400', '10')
  const first = await serveProcess(t, YAML, ...flags)
  assert.deepEqual([await throttle(), await throttle(), await throttle()], [90, 80, 70])
  let startMs = Number.POSITIVE_INFINITY
  // Of a busy machine, what begins well before the end of the drain.
  const isOver = (): boolean => performance.now() > startMs + 2_000
  const loading = sendMany(first.url, '/v1/take?policy=other&key=bob', 64, 10, isOver)
  await send(first.url, '/v1/take?policy=wide&key=alice&cost=7')
  startMs = performance.now()
  const code = first.end('SIGTERM')
  const answered = await loading
  assert.deepEqual([...answered.keys()], [200])
  assert.equal(await code, 0)
  assert.ok(performance.now() - startMs < 30_000)
  assert.ok(!existsSync(resp))
  const second = await serveProcess(t, YAML, ...flags)
  assert.equal((await send(second.url, '/v1/peek?policy=wide&key=alice')).body.remaining, 493)
  assert.equal((await send(second.url, '/v1/peek?policy=other&key=bob')).body.remaining, 100_000 - (answered.get(200) ?? 0))
  assert.equal(await throttle(), 60)
})

async function redisFor(t: TestContext): Promise<RedisProcess> {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  return redis
}

test('with Redis each worker is a client of the store: one budget, permits and reservations over any connection, CL.THROTTLE', async (t) => {
  const redis = await redisFor(t)
  const yaml = `${YAML}storage: { redis: { url: "redis://127.0.0.1:${redis.port}", mode: exact } }\n`
  const service = await serveProcess(t, yaml)
  const { url } = service
  assert.deepEqual(Object.fromEntries(await sendMany(url, '/v1/take?policy=wide&key=alice', 64, 10)), { 200: 500, 429: 140 })
  for (let round = 0; round < 4; round++) {
    const { permit } = (await send(url, '/v1/take?policy=jobs&key=alice')).body
    assert.equal((await send(url, '/v1/release', { value: { permit } })).status, 200)
    const { reservation } = (await send(url, '/v1/reserve', { value: { policy: 'other', key: 'alice', cost: 100 } })).body
    assert.equal((await send(url, '/v1/settle', { value: { reservation, cost: 10 } })).status, 200)
  }
  assert.equal((await send(url, '/v1/peek?policy=other&key=alice')).body.remaining, 100_000 - 40)
  assert.equal(await service.metric('sluicegate_decisions_total', { policy: 'wide', outcome: 'allowed' }), 500)
  assert.equal(await service.metric('sluicegate_store_reachable'), 1)
  assert.equal(await service.end('SIGINT'), 0)
  const next = await serveProcess(t, yaml)
  assert.equal((await send(next.url, '/v1/take?policy=wide&key=alice')).status, 429)
})

// A busy machine can be an outage, whose share would come on top.
test('with Redis and leases the workers never admit more than the budget together', async (t) => {
  const redis = await redisFor(t)
  const service = await serveProcess(t, `${YAML}storage: { redis: { url: "redis://127.0.0.1:${redis.port}", outage: closed } }\n`)
  const passed = (await sendMany(service.url, '/v1/take?policy=wide&key=alice', 64, 20)).get(200) ?? 0
  assert.ok(passed > 0 && passed <= 500, `${passed}`)
  assert.equal(await service.end('SIGTERM'), 0)
})

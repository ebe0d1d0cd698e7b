import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { after, test } from 'node:test'
import { longTest, until } from 'sluicegate-testkit'
import { send, sendMany, workersOf } from 'sluicegate-testkit/service/many-connections.js'
import { configFile, ended, served, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'

const YAML = `listen: { port: 0 }
processes: 2
policies:
  wide: { algorithm: token-bucket, limit: 200, window: 30d, tiers: { large: { limit: 300 } }, keys: { bob: large } }
  other: { algorithm: fixed-window, limit: 100000, window: year }
  jobs: { algorithm: concurrency, limit: 2, ttl: 60s }
  classed: { algorithm: token-bucket, limit: 100, window: 30d, priorities: { high: 0%, low: 50% }, default-priority: low, max-priority: high }
`

/** Of all tests but the last, in their order: three processes need a second of the processor before the first answer. */
const path = configFile({ after }, YAML)
const service = await served(sluicegate({ after }, 'serve', '--config', path))
const { url, child } = service

test('connections over all workers receive one budget exactly, by tier and by class; the metrics and the page show the whole', async () => {
  assert.equal(workersOf(service).length, 2)
  assert.deepEqual(Object.fromEntries(await sendMany(url, '/v1/take?policy=wide&key=alice', 32, 8)), { 200: 200, 429: 56 })
  assert.deepEqual(Object.fromEntries(await sendMany(url, '/v1/take?policy=wide&key=bob', 32, 10)), { 200: 300, 429: 20 })
  assert.deepEqual(Object.fromEntries(await sendMany(url, '/v1/take?policy=classed&key=carol', 32, 2)), { 200: 50, 429: 14 })
  assert.deepEqual(Object.fromEntries(await sendMany(url, '/v1/take?policy=classed&key=carol&priority=high', 32, 2)), { 200: 50, 429: 14 })
  assert.equal(await service.metric('sluicegate_decisions_total', { policy: 'wide', outcome: 'allowed' }), 500)
  assert.equal(await service.metric('sluicegate_decisions_total', { policy: 'wide', outcome: 'denied' }), 76)
  assert.equal(await service.metric('sluicegate_keys', { policy: 'wide' }), 2)
  assert.equal(await service.metric('sluicegate_decision_duration_seconds_count'), 704)
  assert.equal(await service.metric('sluicegate_policies'), 4)
  const shown = async (): Promise<boolean> => {
    const events = await fetch(`${url}/events`)
    for await (const chunk of events.body ?? []) {
      const text = Buffer.from(chunk).toString()
      if (/"name":"wide".*?"allowed":\{"total":500\b.*"keysTracked":2\b.*"demand":\[\{/.test(text)) return true
      if (text.includes('"atS"') && text.includes('"demand"')) return false
    }
    return false
  }
  await until('the page shows the whole', shown)
})

// Before the next test: it counts the workers that ended.
longTest('a worker that hangs is killed and replaced in bounded time, is logged and counted, and the others serve meanwhile', async () => {
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += chunk
  })
  assert.equal((await send(url, '/v1/take?policy=other&key=henry&cost=10')).status, 200)
  const before = workersOf(service)
  const [hung, other] = before as [number, number]
  const startMs = performance.now()
  process.kill(hung, 'SIGSTOP')
  await until('it is replaced', async () => /a worker listens again/.test(log))
  assert.ok(performance.now() - startMs < 30_000)
  assert.match(log, /"slot":\d.*"msg":"a worker does not answer: it is killed"/)
  const after = workersOf(service)
  assert.deepEqual([after.length, after.includes(hung), after.includes(other)], [2, false, true])
  assert.equal(await service.metric('sluicegate_worker_restarts_total', { reason: 'hung' }), 1)
  assert.equal(await service.metric('sluicegate_worker_restarts_total', { reason: 'ended' }), 0)
  assert.equal((await send(url, '/v1/peek?policy=other&key=henry')).body.remaining, 100_000 - 10)
})

test('permits and reservations work whichever worker a connection reaches; those of a worker that died are unknown', async () => {
  const post = async (path: string, value: unknown): Promise<number> => (await send(url, path, { value })).status
  for (let round = 0; round < 4; round++) {
    const { permit } = (await send(url, '/v1/take?policy=jobs&key=alice')).body
    const { reservation } = (await send(url, '/v1/reserve', { value: { policy: 'other', key: 'alice', cost: 100 } })).body
    assert.equal(await post('/v1/heartbeat', { permit }), 200)
    assert.equal(await post('/v1/release', { permit }), 200)
    assert.equal(await post('/v1/release', { permit }), 404)
    assert.equal(await post('/v1/settle', { reservation, cost: 10 }), 200)
    assert.equal(await post('/v1/settle', { reservation, cost: 10 }), 404)
  }
  assert.equal((await send(url, '/v1/peek?policy=other&key=alice')).body.remaining, 100_000 - 40)
  const { permit } = (await send(url, '/v1/take?policy=jobs&key=alice')).body
  const { reservation } = (await send(url, '/v1/reserve', { value: { policy: 'other', key: 'alice', cost: 100 } })).body
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += chunk
  })
  for (const worker of workersOf(service)) process.kill(worker, 'SIGKILL')
  await until('both of the others listen', async () => log.split('a worker listens again').length === 3)
  assert.equal(await post('/v1/release', { permit }), 404)
  assert.equal(await post('/v1/settle', { reservation, cost: 10 }), 404)
  assert.equal((await send(url, '/v1/peek?policy=other&key=alice')).body.remaining, 100_000 - 140)
})

test('work goes on whichever worker hears of it, also when the one that opened it was killed; a lost reply counts once', async () => {
  const post = (path: string, value: unknown): ReturnType<typeof send> => send(url, path, { value })
  const { hold } = (await post('/v1/open', { policy: 'other', key: 'holder', expect: 500 })).body
  for (let call = 1; call <= 8; call++) assert.equal((await post('/v1/add', { hold, cost: 10, call })).body.used, 10 * call)
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += chunk
  })
  for (const worker of workersOf(service)) process.kill(worker, 'SIGKILL')
  await until('both of the others listen', async () => log.split('a worker listens again').length === 3)
  // The reply to the last call may have been lost with its worker.
  assert.equal((await post('/v1/add', { hold, cost: 10, call: 8 })).body.used, 80)
  assert.equal((await post('/v1/add', { hold, cost: 10, call: 9 })).body.used, 90)
  const left = async (): Promise<unknown> => (await send(url, '/v1/peek?policy=other&key=holder')).body.remaining
  assert.equal(await left(), 100_000 - 500, 'others do not get what is held')
  for (let i = 0; i < 4; i++) assert.equal((await post('/v1/close', { hold, cost: 120 })).body.used, 120)
  assert.equal(await left(), 100_000 - 120)
  assert.equal((await post('/v1/add', { hold, cost: 1, call: 10 })).body.code, 'HOLD_CLOSED')
  assert.equal(await service.metric('sluicegate_hold_spent_tokens_total', { policy: 'other' }), 120)
  assert.equal(await service.metric('sluicegate_holds', { policy: 'other' }), 0)
})

longTest(
  'while the primary process does not run, takes are decided in time by a share of the budget, and charged once it runs again',
  async () => {
    assert.equal((await send(url, '/v1/take?policy=other&key=paul')).status, 200)
    child.kill('SIGSTOP')
    const startMs = performance.now()
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(url, '/v1/take?policy=other&key=paul')))
    child.kill('SIGCONT')
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
    assert.ok(performance.now() - startMs < 8_000)
    const left = async (): Promise<number> => (await send(url, '/v1/peek?policy=other&key=paul')).body.remaining as number
    // While a worker decides by its share of a half, that is what it knows of the rest. Leases that came too late stay charged.
    await until('they are charged', async () => {
      const rest = await left()
      return rest > 100_000 - 300 && rest <= 100_000 - 9
    })
  },
)

test('a reload reaches all workers, and a faulty one none, nor a worker that starts later', async () => {
  let log = ''
  child.stderr.on('data', (chunk) => {
    log += chunk
  })
  writeFileSync(path, YAML.replace('limit: 200', 'limit: 600').concat('  fresh: { algorithm: gcra, limit: 5, window: 1h, burst: 5 }\n'))
  child.kill('SIGHUP')
  const peek = (policy: string): ReturnType<typeof send> => send(url, `/v1/peek?policy=${policy}&key=a`)
  const inEveryWorker = async (): Promise<boolean> => {
    for (let i = 0; i < 20; i++) if ((await peek('fresh')).status !== 200) return false
    return true
  }
  // One worker after the other puts it in force.
  await until('the new policy is served by all', inEveryWorker)
  for (let i = 0; i < 6; i++) assert.equal((await send(url, '/v1/take?policy=fresh&key=a')).status, i < 5 ? 200 : 429)
  writeFileSync(path, 'policies: { fresh: { algorithm: none } }')
  child.kill('SIGHUP')
  const failed = async (): Promise<boolean> => /config_reload_failed 1/.test(await (await fetch(`${url}/metrics`)).text())
  await until('the fault is in the metrics', failed)
  const [first, other] = workersOf(service)
  process.kill(first as number, 'SIGKILL')
  await until('a worker has taken its place', async () => log.includes('a worker listens again'))
  process.kill(other as number, 'SIGKILL')
  // Until then the system gives it connections, which end with it.
  await until('the other worker is gone', async () => !workersOf(service).includes(other as number))
  for (let i = 0; i < 6; i++) assert.equal((await peek('wide')).body.limit, 600)
})

test('a worker that is still starting does not delay the stop', async () => {
  await until('all of the other tests listen', async () => workersOf(service).length === 2)
  const [first] = workersOf(service)
  process.kill(first as number, 'SIGKILL')
  await until('another one starts', async () => workersOf(service).length === 2 && !workersOf(service).includes(first as number))
  const startMs = performance.now()
  assert.equal(await service.end('SIGINT'), 0)
  assert.ok(performance.now() - startMs < 5_000)
})

longTest('what several processes cannot serve is said once, and nothing is left running', async (t) => {
  const other = createServer().listen(0, '127.0.0.1')
  t.after(() => other.close())
  await once(other, 'listening')
  const { port } = other.address() as AddressInfo
  const refused = async (yaml: string): Promise<string> => {
    const { code, err } = await ended(sluicegate(t, 'serve', '--config', configFile(t, yaml)))
    assert.equal(code, 1)
    return err
  }
  const inUse = await refused(YAML.replace('port: 0', `port: ${port}`))
  assert.match(inUse, /^sluicegate: \S+ is in use by another program: [^\n]*\n$/)
  assert.match(await refused(`${YAML}candidate: next.yaml\n`), /a candidate is compared by one process/)
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gcra, manualClock, PolicyError } from 'sluicegate'
import { allPolicies } from 'sluicegate-config/domains.js'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { parseConfig, readConfig } from 'sluicegate-config/read-config.js'
import { longTest, RedisProcess, until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { configFile, served, serveProcess, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'
import { Engine } from './engine/engine.js'
import { type EngineLimiter, MEMORY, type Storage } from './engine/engine-limiter.js'
import type { PreparedChanges } from './engine/policy-changes.js'
import { sharedStorage } from './engine/shared-storage.js'
import { createLog } from './log.js'
import { Reloader } from './reload.js'
import { type Service, type ServiceOptions, startService } from './service.js'

const LISTEN = 'listen: { port: 0, admin: "127.0.0.1:0" }\n'
const A_10 = '  a: { algorithm: token-bucket, limit: 10, window: 1m }\n'
const A_20 = '  a: { algorithm: token-bucket, limit: 20, window: 1m }\n'
const B_5 = '  b: { algorithm: fixed-window, limit: 5, window: 1m }\n'
const C_3 = '  c: { algorithm: gcra, limit: 3, window: 1m }\n'

interface Reloadable {
  readonly service: Service
  readonly file: string
  write(policies: string): void
  reload(): Promise<Response>
  left(policy: string): Promise<number>
  metric(name: string, labels?: Record<string, string>): Promise<number>
}

async function setUp(t: TestContext, policies: string, options: ServiceOptions = {}): Promise<Reloadable> {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'service.yaml')
  const write = (text: string): void => writeFileSync(file, `${LISTEN}policies:\n${text}`)
  write(policies)
  const source = { path: file, read: () => readConfig(file) }
  const log = createLog('silent')
  const service = await startService(source.read(), { clock: manualClock(0), source, log, watchMs: 3_600_000, ...options })
  t.after(() => service.stop({ drainMs: 0, finishMs: 0 }))
  return {
    service,
    file,
    write,
    reload: () => fetch(`${service.urls.get('admin')}/v1/reload`, { method: 'POST' }),
    async left(policy) {
      const answer = await fetch(`${service.url}/v1/peek?policy=${policy}&key=alice`)
      return ((await answer.json()) as { remaining: number }).remaining
    },
    async metric(name, labels) {
      return seriesValue(readExposition(await (await fetch(`${service.url}/metrics`)).text()), name, labels)
    },
  }
}

const take = ({ service }: Reloadable, policy: string, cost: number): Promise<Response> =>
  fetch(`${service.url}/v1/take?policy=${policy}&key=alice&cost=${cost}`)

test('a reload keeps the keys of unchanged policies and what was spent of changed ones, adds and removes', async (t) => {
  const reloadable = await setUp(t, A_10 + B_5)
  const { write, reload, left, service } = reloadable
  await take(reloadable, 'a', 4)
  await take(reloadable, 'b', 2)
  write(A_20 + C_3)
  assert.equal((await reload()).status, 200)
  assert.equal(await left('a'), 16, 'four stay spent')
  assert.equal(await left('c'), 3)
  assert.equal((await take(reloadable, 'b', 1)).status, 404)
  write(A_20 + B_5)
  await reload()
  assert.equal(await left('a'), 16)
  assert.equal(await left('b'), 5, 'it was gone')
  assert.deepEqual(
    Array.from(service.engine.policies, ({ name }) => name),
    ['a', 'b'],
  )
})

test('the keys of a policy with another algorithm or table bring along what they have spent, and its counters go on', async (t) => {
  const reloadable = await setUp(t, A_10)
  const { write, reload, left, metric } = reloadable
  for (const [policies, expected] of [
    [A_10.replace('token-bucket', 'fixed-window'), 7],
    [A_10.replace('window: 1m', 'window: 1m, max-keys: 500'), 4],
  ] as const) {
    await take(reloadable, 'a', 3)
    write(policies)
    assert.equal((await reload()).status, 200)
    assert.equal(await left('a'), expected)
  }
  assert.equal(await metric('sluicegate_decisions_total', { policy: 'a', outcome: 'allowed' }), 2)
})

test('a faulty configuration changes nothing, and the answer, the metrics and the page say so until it is mended', async (t) => {
  const reloadable = await setUp(t, A_10)
  const { write, reload, left, metric, service } = reloadable
  await take(reloadable, 'a', 4)
  assert.equal(await metric('sluicegate_config_reload_failed'), 0)
  write(`${A_20}  b: { algorithm: gcra, limit: 0, window: 1s }\n`)
  const refused = await reload()
  const problem = (await refused.json()) as { code: string; detail: string }
  assert.deepEqual([refused.status, problem.code], [422, 'CONFIG_INVALID'])
  assert.match(problem.detail, /service\.yaml:4:\d+: policies\.b\.limit: /)
  assert.equal(await left('a'), 6, 'the good half is not in force either')
  assert.equal(await metric('sluicegate_config_reload_failed'), 1)
  assert.equal(await metric('sluicegate_config_reloads_total', { result: 'failure' }), 1)
  assert.match(service.reloader?.state.fault ?? '', /policies\.b\.limit/)
  write(A_20)
  await reload()
  assert.equal(await metric('sluicegate_config_reload_failed'), 0)
  assert.equal(await left('a'), 16)
  assert.ok((await metric('sluicegate_config_last_success_timestamp_seconds')) > 1_600_000_000)
})

test('refused reloads leave open what was open before, wherever they are refused', async (t) => {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  const log = createLog('silent')
  const url = `redis://127.0.0.1:${redis.port}`
  const { storage: config } = parseConfig(`storage: { redis: { url: "${url}" } }\npolicies:\n${A_10}`)
  assert.ok(config.kind === 'redis')
  const shared = await sharedStorage(config, log)
  await shared.connect()
  for (const storage of [MEMORY, shared]) {
    const open = new Set<EngineLimiter>()
    const counted: Storage = {
      ...MEMORY,
      restored: () => undefined,
      rateTable: (...args) => storage.rateTable(...args),
      limiter(...args) {
        const limiter = storage.limiter(...args)
        const close = limiter.close.bind(limiter)
        open.add(limiter)
        limiter.close = () => {
          open.delete(limiter)
          close()
        }
        return limiter
      },
    }
    const tiered = (limit: number): string =>
      `policies:\n  wide: { algorithm: gcra, limit: 9, window: 1m, tiers: { big: { limit: ${limit} } } }\n`
    const next = `${tiered(30)}${A_20}${B_5}`.replace('{ big:', '{ other: { limit: 7 }, big:')
    const engine = new Engine(parseConfig(`${tiered(20)}${A_10}`).policies, { storage: counted })
    engine.add({ policy: gcra({ name: 'c', limit: 1, window: '1s' }), maxKeys: undefined, onFull: 'evict' })
    let text = next
    let refuse = false
    const reloader = new Reloader(
      { path: import.meta.filename, read: () => parseConfig(text) },
      parseConfig(`${tiered(20)}${A_10}`),
      engine,
      log,
      () => {
        if (refuse) throw new RangeError('refused')
        return { commit() {} }
      },
    )
    // Looks at the files are none.
    const resources = (): number => process.getActiveResourcesInfo().filter((name) => !name.startsWith('FSReq')).length
    const before = [open.size, resources()]
    for (let i = 0; i < 45; i++) {
      // By the engine, whose last policy has a name that is taken; by another part; by another process.
      text = i % 3 === 0 ? `${next}${C_3}` : next
      refuse = i % 3 === 1
      if (i % 3 === 2) (await reloader.prepare('file')).discard()
      else await assert.rejects(reloader.reload('file'), i % 3 === 0 ? PolicyError : RangeError)
    }
    assert.equal(open.size, before[0])
    assert.ok(resources() <= (before[1] as number))
    text = next
    refuse = false
    await reloader.reload('file')
    assert.equal(open.size, (before[0] as number) + 2)
    engine.close()
    await storage.close()
  }
})

test('a changed file is noticed, also when another takes its place', async (t) => {
  const { file, write, left, service } = await setUp(t, A_10, { watchMs: 5 })
  write(A_20)
  await until('the change is in force', async () => (await left('a')) === 20)
  writeFileSync(`${file}.new`, `${LISTEN}policies:\n${A_10}`)
  renameSync(`${file}.new`, file)
  await until('the new file is in force', async () => (await left('a')) === 10)
  writeFileSync(file, 'policies: [')
  await until('the fault is noticed', () => service.reloader?.state.fault !== undefined)
  assert.equal(await left('a'), 10)
  rmSync(file)
  await until('its absence is noticed', () => /cannot be read/.test(service.reloader?.state.fault ?? ''))
  write(A_20)
  await until('it is back', async () => (await left('a')) === 20)
})

test('a reload that failed because a file was not there is tried again until it is, later each time, and a fault is not', async (t) => {
  const reloadable = await setUp(t, A_10, { watchMs: 5 })
  const { write, left, metric, file, service } = reloadable
  const data = `${file}.csv`
  write(A_20.replace('1m', `1m, tiers: { pro: { limit: 50 } }, tier-file: ${basename(data)}`))
  await until('its absence is noticed', () => /service\.yaml\.csv:1:1: cannot be read/.test(service.reloader?.state.fault ?? ''))
  assert.equal(await left('a'), 10)
  writeFileSync(data, 'key,tier\nalice,pro\n')
  await until('it is in force without another change', async () => (await left('a')) === 50)
  assert.equal(await metric('sluicegate_config_reload_retries_total'), 1)
  write('  a: 5\n')
  await until('the fault is noticed', () => service.reloader?.state.fault !== undefined)
  const { failed } = service.reloader?.state ?? assert.fail()
  // Longer than the first pause.
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  assert.equal(service.reloader?.state.failed, failed)
})

test('others have their turn while policies are made and changed, and the service may end meanwhile', async (t) => {
  const policies = (limit: number): string =>
    Array.from({ length: 120 }, (_, i) => `  p${i}: { algorithm: gcra, limit: ${limit}, window: 1m }\n`).join('')
  const { write, service } = await setUp(t, A_10)
  const turnsOf = async (work: Promise<void> | undefined): Promise<number> => {
    let turns = 0
    let isOver = false
    const count = (): void => {
      turns++
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    await work?.finally(() => {
      isOver = true
    })
    return turns
  }
  write(policies(10))
  assert.ok((await turnsOf(service.reloader?.reload('admin'))) >= 10)
  write(policies(20))
  assert.ok((await turnsOf(service.reloader?.reload('admin'))) >= 10)
  write(A_10 + policies(10).replaceAll('gcra', 'token-bucket'))
  const last = service.reloader?.reload('admin')
  // Its limiters are closed meanwhile, or its own are.
  const ended = last?.catch((error: unknown) => assert.ok(error instanceof RangeError || (error as { code?: unknown }).code === 'CLOSED'))
  await new Promise((resolve) => setImmediate(resolve))
  await service.stop({ drainMs: 0, finishMs: 0 })
  await ended
})

test('of 2,000 limits of Envoy each is looked at in a step of its own, and one changed line makes one change', () => {
  const rules = (first: number): string =>
    Array.from(
      { length: 2_000 },
      (_, i) => `  - { key: k${i}, rate_limit: { unit: minute, requests_per_unit: ${i === 0 ? first : 5} } }\n`,
    ).join('')
  const read = (first: number): readonly PolicyConfig[] => allPolicies(parseConfig(`domain: edge\ndescriptors:\n${rules(first)}`))
  const engine = new Engine(read(5))
  const before = new Map(Array.from(engine.policies, (policy) => [policy.name, policy]))
  assert.equal(before.size, 2_000)
  const preparing = engine.preparing(read(6))
  let steps = 0
  let { done, value } = preparing.next()
  while (!done) {
    steps++
    ;({ done, value } = preparing.next())
  }
  assert.ok(steps >= 2_000, `${steps}`)
  const changes = (value as PreparedChanges)()
  assert.deepEqual(changes, { added: [], removed: [], updated: ['edge.k0'], restarted: [] })
  // What did not change is the same, with its keys.
  assert.ok(Array.from(engine.policies).every((policy) => before.get(policy.name) === policy))
  engine.close()
})

test('SIGHUP while the service starts reloads after the start', async (t) => {
  // A store that takes the connection, and leaves the service waiting for its answer.
  const store = createServer().listen(0, '127.0.0.1')
  t.after(() => store.close())
  await once(store, 'listening')
  const url = `redis://127.0.0.1:${(store.address() as AddressInfo).port}`
  const child = sluicegate(t, 'serve', '--config', configFile(t, `${LISTEN}policies:\n${A_10}storage: { redis: { url: "${url}" } }\n`))
  const [socket] = (await once(store, 'connection')) as [Socket]
  child.kill('SIGHUP')
  const service = await served(child)
  await until('it is reloaded', async () => (await service.metric('sluicegate_config_reloads_total', { result: 'success' })) >= 1)
  socket.destroy()
})

longTest('SIGHUP reloads, and a fault does not end the service', async (t) => {
  const service = await serveProcess(t, `${LISTEN}policies:\n${A_10}`)
  service.child.kill('SIGHUP')
  await until('it is reloaded', async () => (await service.metric('sluicegate_config_reloads_total', { result: 'success' })) >= 1)
  assert.equal(await service.end('SIGTERM'), 0)
})

test('reloads under load, a quarter of them faulty, drop no request and never exceed an unchanged policy', async (t) => {
  const reloadable = await setUp(t, A_10 + B_5)
  const { write, service } = reloadable
  let isOver = false
  let admitted = 0
  const statuses = new Set<number>()
  const clients = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const { status } = await take(reloadable, 'b', 1)
      statuses.add(status)
      if (status === 200) admitted++
    }
  })
  const reloads = 40
  for (let i = 0; i < reloads; i++) {
    write(i % 4 === 3 ? `${A_20}  b: 5\n` : (i % 2 === 0 ? A_20 : A_10 + C_3) + B_5)
    try {
      await service.reloader?.reload('admin')
    } catch {}
    if (i % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  isOver = true
  await Promise.all(clients)
  assert.deepEqual([...statuses].sort(), [200, 429])
  assert.equal(admitted, 5)
  assert.deepEqual([service.reloader?.state.succeeded, service.reloader?.state.failed], [(reloads * 3) / 4, reloads / 4])
})

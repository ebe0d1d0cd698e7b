import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { postgresTable } from 'sluicegate/postgres'
import { FaultProxy, PostgresProcess, until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import type { Service } from './service.js'

let server: PostgresProcess
before(async () => {
  server = await PostgresProcess.start()
})
after(() => server.stop())

const yaml = (): string => `
listen: { port: 0, admin: "127.0.0.1:0" }
policies:
  few: { algorithm: fixed-window, limit: 20, window: day }
storage: { postgres: { url: "${server.url}", mode: exact, outage: closed, timeout: 10s, refused-at-start: serve } }
`

const statusOf = async (service: Service, path: string): Promise<number> => (await fetch(`${service.url}${path}`)).status

async function metric(service: Service, name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
  const text = await (await fetch(`${service.urls.get('http')}/metrics`)).text()
  return seriesValue(readExposition(text), name, labels)
}

const isUp = (service: Service): Promise<number | undefined> => metric(service, 'sluicegate_store_reachable')

test('services share budgets in PostgreSQL, say whether it can be reached, and go on when it is back', async (t) => {
  const services = [await runService(t, yaml()), await runService(t, yaml())] as const
  assert.equal(await isUp(services[0]), 0)
  await server.ask(postgresTable())
  await until('the table is there', async () => (await isUp(services[0])) === 1 && (await isUp(services[1])) === 1)
  const statuses = await Promise.all(
    Array.from({ length: 60 }, (_, i) => statusOf(services[i % 2] as Service, '/v1/take?policy=few&key=a')),
  )
  assert.equal(statuses.filter((status) => status === 200).length, 20)
  assert.equal(await metric(services[0], 'sluicegate_store_info', { store: 'postgres' }), 1)
  const lookS = await metric(services[0], 'sluicegate_store_look_seconds')
  assert.ok(lookS !== undefined && lookS > 0 && lookS < 5, String(lookS))
  assert.ok(((await metric(services[0], 'sluicegate_store_connections', { state: 'idle' })) ?? 0) > 0)
  await server.shutDown()
  await until('the loss is seen', async () => (await isUp(services[0])) === 0)
  assert.ok(Number.isNaN(await metric(services[0], 'sluicegate_store_look_seconds')), 'there is none')
  assert.equal(await statusOf(services[0], '/readyz'), 200, 'the service goes on without its store')
  await server.start()
  await until('it is back', async () => (await isUp(services[0])) === 1)
})

test('a server that is read-only cannot be reached for limits, although its table can be read', async (t) => {
  await server.ask(postgresTable({ table: 'kept', logged: true }))
  await using standby = await PostgresProcess.start({ standbyOf: server })
  const service = await runService(t, yaml().replace(server.url, standby.url).replace('mode: exact', 'table: kept, mode: exact'))
  assert.equal(await isUp(service), 0)
  const take = await fetch(`${service.url}/v1/take?policy=few&key=a`)
  assert.equal(((await take.json()) as { source: string }).source, 'outage')
  await standby.ask('SELECT pg_promote()')
  await until('it takes writes', async () => (await isUp(service)) === 1)
  await until('takes are decided', async () => (await statusOf(service, '/v1/take?policy=few&key=a')) === 200)
})

for (const fault of ['read-only', 'silent'] as const) {
  test(`a server that is ${fault}, whose connections stay open, is left for the one to which its name leads now`, async (t) => {
    const [first, second] = await Promise.all([PostgresProcess.start(), PostgresProcess.start()])
    t.after(() => Promise.all([first.stop(), second.stop()]))
    for (const each of [first, second]) await each.ask(postgresTable())
    const name = await FaultProxy.before({ host: '127.0.0.1', port: first.port })
    t.after(() => name.stop())
    const url = new URL(first.url)
    Object.assign(url, { hostname: '127.0.0.1', port: String(name.port) })
    const service = await runService(t, yaml().replace(server.url, url.href).replace('timeout: 10s', 'timeout: 500ms'))
    const source = async (): Promise<string> =>
      ((await (await fetch(`${service.url}/v1/take?policy=few&key=a`)).json()) as { source: string }).source
    await until('the store decides', async () => (await source()) === 'store')
    assert.ok(((await metric(service, 'sluicegate_store_connections', { state: 'idle' })) ?? 0) >= 4, 'connections are open before a burst')
    name.leadNext({ host: '127.0.0.1', port: second.port })
    if (fault === 'silent') first.pause()
    else {
      await first.ask('ALTER SYSTEM SET default_transaction_read_only = on')
      await first.ask('SELECT pg_reload_conf()')
    }
    t.after(() => first.resume())
    const fromMs = performance.now()
    await until('it is out', async () => (await source()) === 'outage')
    await until('the other one decides', async () => (await source()) === 'store')
    assert.ok(performance.now() - fromMs < 8_000, `${performance.now() - fromMs} ms`)
    await until('and is said to', async () => (await isUp(service)) === 1)
  })
}

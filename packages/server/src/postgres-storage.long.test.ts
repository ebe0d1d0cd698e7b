import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { postgresTable } from 'sluicegate/postgres'
import { PostgresProcess, until } from 'sluicegate-testkit'
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

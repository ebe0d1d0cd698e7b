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
storage: { postgres: { url: "${server.url}", mode: exact, outage: closed, timeout: 10s } }
`

const statusOf = async (service: Service, path: string): Promise<number> => (await fetch(`${service.url}${path}`)).status

async function isUp(service: Service): Promise<number | undefined> {
  const text = await (await fetch(`${service.urls.get('http')}/metrics`)).text()
  return seriesValue(readExposition(text), 'sluicegate_store_reachable', {})
}

test('services share budgets in PostgreSQL, say whether it can be reached, and go on when it is back', async (t) => {
  const services = [await runService(t, yaml()), await runService(t, yaml())] as const
  assert.equal(await isUp(services[0]), 0)
  await server.ask(postgresTable())
  await until('the table is there', async () => (await isUp(services[0])) === 1 && (await isUp(services[1])) === 1)
  const statuses = await Promise.all(
    Array.from({ length: 60 }, (_, i) => statusOf(services[i % 2] as Service, '/v1/take?policy=few&key=a')),
  )
  assert.equal(statuses.filter((status) => status === 200).length, 20)
  await server.shutDown()
  await until('the loss is seen', async () => (await isUp(services[0])) === 0)
  await server.start()
  await until('it is back', async () => (await isUp(services[0])) === 1)
})

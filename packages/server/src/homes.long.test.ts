import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postgresTable } from 'sluicegate/postgres'
import { PostgresProcess, RedisProcess, until } from 'sluicegate-testkit'
import { FaultProxy } from 'sluicegate-testkit/servers/fault-proxy.js'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import type { Service } from './service.js'

const POLICY = `
listen: { port: 0, admin: "127.0.0.1:0" }
policies: { day: { algorithm: fixed-window, limit: 100, window: day } }
`

async function passedOf(services: readonly Service[], n: number, key: string): Promise<number> {
  const take = async (i: number): Promise<number> => {
    const { status } = await fetch(`${services[i % services.length]?.url}/v1/take?policy=day&key=${key}`)
    assert.ok(status === 200 || status === 429, String(status))
    return status
  }
  const statuses = await Promise.all(Array.from({ length: n }, (_, i) => take(i)))
  return statuses.filter((status) => status === 200).length
}

async function metric(service: Service, name: string, labels: Readonly<Record<string, string>>): Promise<number | undefined> {
  return seriesValue(readExposition(await (await fetch(`${service.url}/metrics`)).text()), name, labels)
}

const readiness = async (service: Service): Promise<string> => (await fetch(`${service.url}/readyz`)).text()

/** Takes until the whole budget is spent, and then more. What a region holds unused goes back to the home after some seconds. */
async function spent(services: readonly Service[], key: string, before: number): Promise<number> {
  let passed = before
  await until('the budget is used', async () => {
    passed += await passedOf(services, 20, key)
    return passed >= 100
  })
  return passed + (await passedOf(services, 100, key))
}

const STORES = {
  redis: { start: () => RedisProcess.start(), homeAt: (url: string) => `url: "${url}"` },
  postgres: {
    start: async () => {
      const server = await PostgresProcess.start()
      await server.ask(postgresTable())
      return server
    },
    homeAt: (url: string) => `postgres: { url: "${url}" }`,
  },
} as const

const PAIRS = [
  ['redis', 'redis'],
  ['redis', 'postgres'],
  ['postgres', 'redis'],
] as const

for (const [local, name] of PAIRS) {
  const { start, homeAt } = STORES[name]
  test(`services in two regions with ${local} share budgets whose home is ${name}; without it each has its share, which is charged afterwards`, async (t) => {
    const [home, west, east] = await Promise.all([start(), STORES[local].start(), STORES[local].start()])
    const ocean = await FaultProxy.before(home)
    t.after(async () => {
      await ocean.stop()
      await Promise.all([home, west, east].map((server) => server.stop()))
    })
    const away = new URL(home.url)
    away.host = `${ocean.host}:${ocean.port}`
    const yaml = (store: { readonly url: string }, url: string, region: string): string =>
      `${POLICY}storage:
  ${local}: { url: "${store.url}", timeout: 5s }
  home: { ${homeAt(url)}, region: ${region}, share: 0.1, timeout: 5s }
`
    const inWest = await runService(t, yaml(west, away.href, 'west'))
    const inEast = await runService(t, yaml(east, home.url, 'east'))
    const services = [inWest, inEast]
    assert.equal(await spent(services, 'k', 0), 100)
    assert.equal(await metric(inWest, 'sluicegate_store_info', { store: local }), 1)
    if (name === 'postgres' || local === 'postgres')
      assert.ok(((await metric(inWest, 'sluicegate_store_connections', { state: 'idle' })) ?? 0) > 0)
    ocean.set({ kind: 'cut' })
    const labels = { policy: 'day', region: 'west', mode: 'tokens' }
    await until('the region is alone', async () => {
      await passedOf([inWest], 1, 'other')
      return (await metric(inWest, 'sluicegate_home_out', labels)) === 1
    })
    assert.equal(await passedOf([inWest], 30, 'new'), 10)
    await until('the loss is seen', async () => (await readiness(inWest)) !== 'ready\n')
    assert.equal(await readiness(inWest), 'ready\nthe home of the budgets is out: region west goes on with its share\n')
    assert.equal(await readiness(inEast), 'ready\n')
    ocean.set({ kind: 'none' })
    const before = (await metric(inWest, 'sluicegate_region_tokens_charged_total', labels)) ?? 0
    let passed = 10
    await until('what it admitted is charged', async () => {
      passed += await passedOf([inWest], 1, 'new')
      return (await metric(inWest, 'sluicegate_region_tokens_charged_total', labels)) === before + 10
    })
    assert.equal(await spent(services, 'new', passed), 100)
    await until('it is seen again', async () => (await readiness(inWest)) === 'ready\n')
  })
}

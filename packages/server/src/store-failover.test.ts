import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { FaultProxy, longTest, RedisProcess, until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import type { Service } from './service.js'

const BACK_MS = 5_000
/** Silence has to be waited for, and then a probe may just have been made: 3 to 5 s, and more where the machine is busy with others. */
const BACK_AFTER_SILENCE_MS = 6_500
const LOOK_MS = 20

/** How long this process, which is the service as well, stands still from now on because the machine is busy with others. */
function stoodStill(t: TestContext): () => number {
  let stoodMs = 0
  let dueMs = performance.now() + LOOK_MS
  const timer = setInterval(() => {
    stoodMs += Math.max(0, performance.now() - dueMs)
    dueMs = performance.now() + LOOK_MS
  }, LOOK_MS)
  t.after(() => clearInterval(timer))
  return () => stoodMs
}

const yaml = (url: string): string => `
listen: { port: 0 }
policies:
  api: { algorithm: token-bucket, limit: 100000, window: 1h }
storage: { redis: { url: "${url}", mode: exact } }
`

const isReachable = async ({ url }: Service): Promise<boolean> =>
  seriesValue(readExposition(await (await fetch(`${url}/metrics`)).text()), 'sluicegate_store_reachable') === 1

const sourceOf = async ({ url }: Service): Promise<string> =>
  ((await (await fetch(`${url}/v1/take?policy=api&key=alice`)).json()) as { source: string }).source

/** Two servers, and a name that leads to the first; the service takes all the time. */
async function behindAName(t: TestContext): Promise<{ first: RedisProcess; second: RedisProcess; name: FaultProxy; service: Service }> {
  const [first, second] = await Promise.all([RedisProcess.start(), RedisProcess.start()])
  t.after(() => Promise.all([first.stop(), second.stop()]))
  const name = await FaultProxy.before({ host: '127.0.0.1', port: first.port })
  t.after(() => name.stop())
  const service = await runService(t, yaml(name.url))
  await until('the store decides', async () => (await sourceOf(service)) === 'store')
  return { first, second, name, service }
}

async function isBack(t: TestContext, service: Service, withinMs: number): Promise<void> {
  const fromMs = performance.now()
  const stoodMs = stoodStill(t)
  await until('it is out', async () => (await sourceOf(service)) === 'outage')
  await until('the store decides again', async () => (await sourceOf(service)) === 'store')
  const tookMs = performance.now() - fromMs - stoodMs()
  assert.ok(tookMs < withinMs, `${tookMs} ms`)
  await until('and is said to', () => isReachable(service))
}

test('a primary that became a replica, whose connection stays open, is left for the one to which its name leads now', async (t) => {
  const { first, second, name, service } = await behindAName(t)
  await first.ask('REPLICAOF', '127.0.0.1', String(second.port))
  name.leadNext({ host: '127.0.0.1', port: second.port })
  await isBack(t, service, BACK_MS)
})

longTest('so is a server that is silent, and whose connection stays open', async (t) => {
  const { first, second, name, service } = await behindAName(t)
  first.pause()
  t.after(() => first.resume())
  name.leadNext({ host: '127.0.0.1', port: second.port })
  await isBack(t, service, BACK_AFTER_SILENCE_MS)
})

longTest('and one that takes a connection and answers nothing, while it is the only one', async (t) => {
  const { first, service } = await behindAName(t)
  first.pause()
  await until('it is out', async () => !(await isReachable(service)))
  await new Promise((resolve) => setTimeout(resolve, 6_000))
  first.resume()
  const fromMs = performance.now()
  const stoodMs = stoodStill(t)
  await until('the store decides again', async () => (await sourceOf(service)) === 'store')
  assert.ok(performance.now() - fromMs - stoodMs() < BACK_MS)
})

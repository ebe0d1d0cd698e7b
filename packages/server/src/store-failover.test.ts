import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { everyNth, FaultProxy, longTest, RedisCluster, RedisProcess, until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import { type Service, startService } from './service.js'

const BACK_MS = 5_000
/** Silence has to be waited for, and then a probe may just have been made: 3 to 5 s, and more where the machine is busy with others. */
const BACK_AFTER_SILENCE_MS = 6_500
const LOOK_MS = 20

/** How long this process, which is the service as well, stands still from now on because the machine is busy with others, and so do the servers. */
function stoodStill(t: TestContext): () => number {
  let stoodMs = 0
  let dueMs = performance.now() + LOOK_MS
  const timer = setInterval(() => {
    stoodMs += Math.max(0, performance.now() - dueMs)
    dueMs = performance.now() + LOOK_MS
  }, LOOK_MS)
  t.after(() => clearInterval(timer))
  return () => 2 * stoodMs
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

describe('store refusals', () => {
  const yaml = (url: string, more = ''): string => `
listen: { port: 0 }
policies:
  api: { algorithm: token-bucket, limit: 100, window: 1h }
storage: { redis: { url: "${url}", mode: exact${more} } }
`

  /** What makes a server refuse, and what the log says of it. */
  const REFUSALS: readonly (readonly [name: string, commands: readonly (readonly string[])[], reason: RegExp, mend: RegExp])[] = [
    ['no EVAL', [['ACL', 'SETUSER', 'default', '-eval', '-evalsha']], /NOPERM/, /Access control/],
    [
      'a key pattern',
      [['ACL', 'SETUSER', 'default', 'resetkeys', '~other:*']],
      /NOPERM|can't access/,
      /the keys that begin with the prefix/,
    ],
    ['a command of scripts', [['ACL', 'SETUSER', 'default', '-time']], /NOPERM|can't run/, /Access control/],
    ['a replica', [['REPLICAOF', '127.0.0.1', '1']], /READONLY/, /give that of the primary/],
    ['no memory', [['CONFIG', 'SET', 'maxmemory', '1']], /OOM/, /maxmemory/],
  ]

  async function redisThatRefuses(t: TestContext, commands: readonly (readonly string[])[]): Promise<RedisProcess> {
    const redis = await RedisProcess.start()
    t.after(() => redis.stop())
    for (const command of commands) await redis.ask(...command)
    return redis
  }

  for (const [i, [name, commands, reason, mend]] of REFUSALS.entries()) {
    everyNth(i, 3)(`a server that refuses every call, ${name}, ends the start with the reason and what to do`, async (t) => {
      const redis = await redisThatRefuses(t, commands)
      await assert.rejects(
        startService(parseConfig(yaml(redis.url)), { log: pino({ level: 'silent' }) }),
        ({ message }: Error) => reason.test(message) && mend.test(message) && message.includes('refused-at-start: serve'),
      )
    })
  }

  test('keys of a region that the user of its store may not use end the start as well', async (t) => {
    const redis = await redisThatRefuses(t, [['ACL', 'SETUSER', 'default', 'resetkeys', '~sluicegate:*']])
    const config = `${yaml(redis.url).trimEnd().slice(0, -1)}, home: { url: "${redis.url}", region: west } }`
    const start = startService(parseConfig(config), { log: pino({ level: 'silent' }) })
    t.after(() => start.then((service) => service.stop({ drainMs: 0, finishMs: 0 })).catch(() => undefined))
    await assert.rejects(start, /can't access|NOPERM.*in a region '~PREFIX@\*' too/)
  })

  test('with refused-at-start: serve it is in the log, and the metrics and readyz say degraded, until it is mended', async (t) => {
    const redis = await redisThatRefuses(t, [['REPLICAOF', '127.0.0.1', '1']])
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(line) })
    const service = await runService(t, parseConfig(yaml(redis.url, ', refused-at-start: serve')), { log })
    const get = async (path: string): Promise<string> => (await fetch(`${service.url}${path}`)).text()
    const metric = async (name: string): Promise<number> => seriesValue(readExposition(await get('/metrics')), name)
    assert.equal((JSON.parse(await get('/v1/take?policy=api&key=a')) as { source: string }).source, 'outage')
    const said = lines.filter((line) => line.includes('the store refuses calls'))
    assert.ok(said.length === 1 && /READONLY.*give that of the primary/.test(said[0] as string), lines.join(''))
    assert.match(await get('/readyz'), /^ready\ndegraded: redis does not decide/)
    assert.deepEqual([await metric('sluicegate_store_reachable'), await metric('sluicegate_degraded')], [0, 1])
    await redis.ask('REPLICAOF', 'NO', 'ONE')
    await until('it is seen', async () => (await metric('sluicegate_degraded')) === 0)
    assert.equal(await get('/readyz'), 'ready\n')
    assert.equal((JSON.parse(await get('/v1/take?policy=api&key=b')) as { source: string }).source, 'store')
  })

  longTest('a part of a cluster that refuses is said with its share, and what to do', async (t) => {
    const cluster = await RedisCluster.start({ replicas: 0 })
    t.after(() => cluster.stop())
    const [primary] = await cluster.primaries()
    await primary?.ask('CONFIG', 'SET', 'min-replicas-to-write', '3')
    const lines: string[] = []
    const log = pino({}, { write: (line: string) => void lines.push(line) })
    const { host, port } = cluster.roots[0] as { host: string; port: number }
    const nodes = yaml('', ', refused-at-start: serve').replace('url: ""', `nodes: ["redis://${host}:${port}"]`)
    await runService(t, parseConfig(nodes), { log })
    await until('it is said', () => lines.some((line) => /about \d+ % of the cluster: NOREPLICAS.*has fewer replicas than/.test(line)))
  })

  longTest('the nodes of a cluster that are none, or serve nothing, are said to be', async (t) => {
    const single = await redisThatRefuses(t, [])
    const empty = await RedisProcess.start({ args: ['--cluster-enabled', 'yes'] })
    t.after(() => empty.stop())
    const said = async (url: string): Promise<string> => {
      const lines: string[] = []
      const log = pino({}, { write: (line: string) => void lines.push(line) })
      const nodes = yaml(url, ', refused-at-start: serve').replace(`url: "${url}"`, `nodes: ["${url}"]`)
      await runService(t, parseConfig(nodes), { log })
      return lines.join('')
    }
    assert.match(await said(single.url), /cluster support disabled.*give url instead of nodes/)
    assert.match(await said(empty.url), /no node of the cluster serves slots: see CLUSTER INFO|Hash slot not served/)
  })
})

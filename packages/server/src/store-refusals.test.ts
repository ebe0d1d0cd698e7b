import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { everyNth, longTest, RedisProcess, until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import { startService } from './service.js'

const yaml = (url: string, more = ''): string => `
listen: { port: 0 }
policies:
  api: { algorithm: token-bucket, limit: 100, window: 1h }
storage: { redis: { url: "${url}", mode: exact${more} } }
`

/** What makes a server refuse, and what the log says of it. */
const REFUSALS: readonly (readonly [name: string, commands: readonly (readonly string[])[], reason: RegExp, mend: RegExp])[] = [
  ['no EVAL', [['ACL', 'SETUSER', 'default', '-eval', '-evalsha']], /NOPERM/, /Access control/],
  ['a key pattern', [['ACL', 'SETUSER', 'default', 'resetkeys', '~other:*']], /NOPERM|can't access/, /the keys that begin with the prefix/],
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
  everyNth(i, 2)(`a server that refuses every call, ${name}, ends the start with the reason and what to do`, async (t) => {
    const redis = await redisThatRefuses(t, commands)
    await assert.rejects(
      startService(parseConfig(yaml(redis.url)), { log: pino({ level: 'silent' }) }),
      ({ message }: Error) => reason.test(message) && mend.test(message) && message.includes('refused-at-start: serve'),
    )
  })
}

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

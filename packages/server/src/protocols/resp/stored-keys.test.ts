import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createClient } from '@redis/client'
import { RedisProcess } from 'sluicegate-testkit'
import { runService } from 'sluicegate-testkit/service/running-service.js'

test('services with the same store share the keys of CL.THROTTLE, and pipelined replies stay in order', async (t) => {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  const yaml = `
listen: { http: "off", resp: "127.0.0.1:0" }
policies:
  api: { algorithm: token-bucket, limit: 10, window: 1m }
storage: { redis: { url: "${redis.url}", timeout: 1s } }
log: { level: silent }
`
  const [one, two] = [await connected(t, yaml), await connected(t, yaml)]
  for (let call = 0; call < 8; call++) {
    for (const client of [one, two]) assert.equal((await throttled(client, 'k'))[0], 0)
  }
  const replies = await Promise.all([
    throttled(one, 'k'),
    one.sendCommand(['PING']),
    one.sendCommand(['CL.THROTTLE', 'k', '15', '0', '3600']).catch((error: Error) => error.message),
    one.sendCommand(['ECHO', 'last']),
  ])
  assert.deepEqual(
    replies.map((reply) => (Array.isArray(reply) ? reply[0] : reply)),
    [1, 'PONG', 'ERR count must be an integer >= 1', 'last'],
  )
  assert.equal((await throttled(two, '\0\xff'))[2], 15)
})

type Client = ReturnType<typeof createClient>

async function connected(t: TestContext, yaml: string): Promise<Client> {
  const service = await runService(t, yaml)
  const client: Client = createClient({ url: service.urls.get('resp') ?? assert.fail() })
  client.on('error', () => undefined)
  t.after(() => client.destroy())
  return client.connect()
}

async function throttled(client: Client, key: string): Promise<readonly number[]> {
  return (await client.sendCommand(['CL.THROTTLE', key, '15', '30', '3600'])) as unknown as readonly number[]
}

import assert from 'node:assert/strict'
import { createConnection } from 'node:net'
import { type TestContext, test } from 'node:test'
import { Metadata } from '@grpc/grpc-js'
import { manualClock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { longTest, RedisProcess } from 'sluicegate-testkit'
import { envoyDomains, runService } from 'sluicegate-testkit/service/running-service.js'
import { GrpcTestClient } from 'sluicegate-testkit/service/simulated-envoy.js'
import { RateLimitResponse_Code, RateLimitService } from './protocols/grpc/messages/envoy/service/ratelimit/v3/rls.gen.js'
import { Limiter } from './protocols/grpc/messages/sluicegate/v1/limiter.gen.js'

const GATEWAY = 'token-of-the-gateway'
const BATCH = 'token-of-batch-jobs'
const WEB = 'token-of-the-website'
const CLASSES = 'priorities: { critical: 0%, standard: 20%, sheddable: 40% }, default-priority: standard'
const YAML = `
listen: { port: 0, grpc: "127.0.0.1:0", resp: "127.0.0.1:0" }
tokens:
  - { name: gateway, secret: ${GATEWAY}, scope: decide, priority: critical }
  - { name: batch, secret: ${BATCH}, scope: decide, priority: sheddable }
  - { name: web, secret: ${WEB}, scope: decide }
policies:
  api: { algorithm: fixed-window, limit: 10, window: 1m, ${CLASSES} }
`
const ENVOY = `
domain: edge
priority_key: class
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 10, priorities: { critical: 0%, standard: 20%, sheddable: 40% }, default_priority: standard, max_priority: critical }
`

function setUp(t: TestContext) {
  return runService(t, { ...parseConfig(YAML), domains: envoyDomains(ENVOY) }, { clock: manualClock(0) })
}

/** How many of `n` takes pass. */
async function passed(n: number, take: () => Promise<boolean>): Promise<number> {
  let count = 0
  for (let i = 0; i < n; i++) if (await take()) count++
  return count
}

test('over HTTP the class is in the query, the body or a header, and a token says how high it may be', async (t) => {
  const { url } = await setUp(t)
  const get =
    (key: string, token: string, more = '', headers = {}) =>
    async () =>
      (await fetch(`${url}/v1/take?policy=api&key=${key}${more}`, { headers: { authorization: `Bearer ${token}`, ...headers } })).status ===
      200
  const post = (key: string, priority: string) => async () =>
    (
      await fetch(`${url}/v1/take`, {
        method: 'POST',
        headers: { authorization: `Bearer ${GATEWAY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ policy: 'api', key, priority }),
      })
    ).status === 200
  assert.equal(await passed(12, get('a', WEB, '&priority=critical')), 8, 'the token says nothing, and the policy allows its default class')
  assert.equal(await passed(12, get('b', BATCH)), 6)
  assert.equal(await passed(12, get('c', GATEWAY, '&priority=critical')), 10)
  assert.equal(await passed(12, get('d', GATEWAY)), 8)
  assert.equal(await passed(12, get('e', GATEWAY, '', { 'x-sluicegate-priority': 'sheddable' })), 6)
  assert.deepEqual(
    [await passed(12, post('f', 'sheddable')), await passed(12, post('f', 'standard')), await passed(12, post('f', 'critical'))],
    [6, 2, 2],
  )
  const auth = async (): Promise<boolean> =>
    (
      await fetch(`${url}/v1/auth?policy=api&key=g`, {
        headers: { authorization: `Bearer ${WEB}`, 'x-sluicegate-priority': 'critical' },
      })
    ).status === 204
  assert.equal(await passed(12, auth), 8)
})

test('over gRPC the class is in the metadata, and in the descriptor entry that the domain names', async (t) => {
  const { urls } = await setUp(t)
  using client = new GrpcTestClient(urls.get('grpc') ?? assert.fail())
  const metadataOf = (token: string, priority?: string): Metadata => {
    const metadata = new Metadata()
    metadata.set('authorization', `Bearer ${token}`)
    if (priority !== undefined) metadata.set('x-sluicegate-priority', priority)
    return metadata
  }
  const take = (key: string, token: string, priority?: string) => async () =>
    (await client.call(Limiter.method.take, { policy: 'api', keys: [key] }, { metadata: metadataOf(token, priority) })).allowed
  assert.equal(await passed(12, take('a', GATEWAY, 'critical')), 10)
  assert.equal(await passed(12, take('b', WEB, 'critical')), 8)
  const limit = (user: string, entry?: string, header?: string) => async () => {
    const entries = [...(entry === undefined ? [] : [{ key: 'class', value: entry }]), { key: 'user', value: user }]
    const request = { domain: 'edge', descriptors: [{ entries }] }
    const { overallCode } = await client.call(RateLimitService.method.shouldRateLimit, request, { metadata: metadataOf(WEB, header) })
    return overallCode === RateLimitResponse_Code.OK
  }
  assert.deepEqual(
    [await passed(12, limit('a', 'sheddable')), await passed(12, limit('a')), await passed(12, limit('a', 'critical'))],
    [6, 2, 2],
  )
  assert.equal(await passed(12, limit('b', undefined, 'sheddable')), 6)
  assert.equal(await passed(12, limit('c', 'unknown')), 8)
})

test('over RESP the class is the last argument', async (t) => {
  const { urls } = await setUp(t)
  const { hostname, port } = new URL((urls.get('resp') ?? assert.fail()).replace(/^\w+:/, 'http:'))
  const replies = async (...commands: string[]): Promise<string> => {
    const socket = createConnection(Number(port), hostname)
    socket.end(`${commands.join('\r\n')}\r\n`)
    let text = ''
    for await (const chunk of socket.setEncoding('latin1')) text += chunk
    return text
  }
  const taken = async (token: string, take: string): Promise<number> =>
    (await replies(`AUTH ${token}`, ...Array<string>(12).fill(take))).split('*5\r\n:0\r\n').length - 1
  assert.equal(await taken(GATEWAY, 'SG.TAKE api a 1 PRIORITY critical'), 10)
  assert.equal(await taken(GATEWAY, 'SG.TAKE api b priority sheddable'), 6)
  assert.equal(await taken(WEB, 'SG.TAKE api c PRIORITY critical'), 8)
  assert.equal(await taken(BATCH, 'SG.TAKE api d'), 6)
  const wrong = await replies(`AUTH ${WEB}`, 'SG.TAKE api a PRIORITY', 'SG.TAKE api a 1 RANK critical', 'SG.TAKE api a 1 PRIORITY x y')
  assert.match(wrong, /^\+OK\r\n-ERR value is not an integer.*\r\n-ERR syntax error\r\n-ERR wrong number/)
})

longTest('over Redis two services keep the share of the highest class, and their total is exact', async (t) => {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  const yaml = `
listen: { port: 0 }
storage: { redis: { url: "redis://127.0.0.1:${redis.port}" } }
policies:
  api: { algorithm: token-bucket, limit: 100, window: 30d, ${CLASSES}, max-priority: critical }
`
  const services = [await runService(t, yaml), await runService(t, yaml)]
  const flood = async (n: number, priority: string): Promise<number> => {
    const take = async (i: number): Promise<boolean> =>
      (await fetch(`${services[i % 2]?.url}/v1/take?policy=api&key=alice&priority=${priority}`)).status === 200
    return (await Promise.all(Array.from({ length: n }, (_, i) => take(i)))).filter(Boolean).length
  }
  let sheddable = 0
  for (let i = 0; i < 10; i++) sheddable += await flood(20, 'sheddable')
  assert.equal(sheddable, 60)
  let standard = 0
  for (let i = 0; i < 10; i++) standard += await flood(10, 'standard')
  assert.equal(standard, 20)
  assert.equal(await flood(60, 'critical'), 20)
})

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fromJson, type JsonValue, toJson } from '@bufbuild/protobuf'
import { manualClock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { longTest } from 'sluicegate-testkit'
import { connectTo, parseResponse, rawExchange, readToEnd } from 'sluicegate-testkit/service/many-connections.js'
import { envoyDomains, runService } from 'sluicegate-testkit/service/running-service.js'
import { GrpcTestClient } from 'sluicegate-testkit/service/simulated-envoy.js'
import { startService } from '../../service.js'
import { RateLimitRequestSchema, RateLimitResponseSchema, RateLimitService } from '../grpc/messages/envoy/service/ratelimit/v3/rls.gen.js'

const HASTY = { headersMs: 100, requestMs: 100, idleMs: 1_000 }

for (const [what, bytes] of [
  ['headers', 'GET /livez HTTP/1.1\r\nHost: x\r\n'],
  ['body', 'POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{'],
] as const) {
  test(`a client whose ${what} do not arrive in time is cut off with 408`, async (t) => {
    const { url } = await runService(t, undefined, { clients: HASTY })
    const socket = await connectTo(url)
    socket.write(bytes)
    const { status, headers, body } = parseResponse(await readToEnd(socket))
    assert.equal(status, 408)
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(JSON.parse(body).code, 'REQUEST_TIMEOUT')
  })
}

test('a client that never sends anything is disconnected', async (t) => {
  const { url } = await runService(t, undefined, { clients: HASTY })
  assert.doesNotMatch(await readToEnd(await connectTo(url)), /200/)
})

test('slow clients do not delay the others', async (t) => {
  const { url } = await runService(t)
  const slow = await Promise.all(Array.from({ length: 200 }, () => connectTo(url)))
  for (const socket of slow) socket.write('GET /livez HTTP/1.1\r\nHo')
  assert.equal((await fetch(`${url}/livez`)).status, 200)
  for (const socket of slow) socket.destroy()
})

test('a client that sends without end is disconnected', async (t) => {
  const { url } = await runService(t)
  const socket = await connectTo(url)
  socket.write('POST /nowhere HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n')
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
  let sent = 0
  const pour = (): void => {
    while (!socket.destroyed && socket.write(chunk)) sent += chunk.length
  }
  socket.on('drain', pour)
  const answer = readToEnd(socket)
  pour()
  assert.equal(parseResponse(await answer).status, 404)
  assert.ok(sent < 100_000_000)
})

test('requests on one connection are answered in order', async (t) => {
  const { url } = await runService(t)
  const socket = await connectTo(url)
  const take = 'GET /v1/take?policy=burst&key=a HTTP/1.1\r\nHost: x\r\n'
  socket.write(`${take}\r\n${take}\r\n${take}Connection: close\r\n\r\n`)
  const remaining = [...(await readToEnd(socket)).matchAll(/"remaining":(\d+)/g)].map(([, tokens]) => tokens)
  assert.deepEqual(remaining, ['99', '98', '97'])
})

longTest('a client that sends requests and never reads is not read from, and fills no memory', async (t) => {
  const { url, engine } = await runService(t)
  const { counts } = engine.policy('burst') ?? assert.fail()
  const socket = await connectTo(url)
  const asked = 300_000
  const batch = 'GET /v1/take?policy=burst&key=a HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000)
  for (let i = 0; i < asked / 1_000; i++) socket.write(batch)
  const answered = (): number => counts.allowed + counts.denied
  for (let before = -1; before !== answered(); ) {
    before = answered()
    for (let i = 0; i < 20; i++) await (await fetch(`${url}/livez`)).text()
  }
  socket.destroy()
  assert.ok(answered() > 0 && answered() < asked / 2, `${answered()} answers were made`)
})

test('a URL that is not percent-encoded is refused with a hint', async (t) => {
  const { url } = await runService(t)
  const { status, body } = await rawExchange(url, 'GET /v1/take?policy=burst&key=zoë HTTP/1.1\r\nHost: x\r\n\r\n')
  assert.equal(status, 400)
  assert.match(JSON.parse(body).detail, /percent-encoded/)
})

const RULES = `domain: api
descriptors:
  - { key: user, rate_limit: { name: users, unit: minute, requests_per_unit: 3 } }
  - key: tenant
    value: blue
    descriptors: [{ key: path, rate_limit: { unit: week, requests_per_unit: 2 } }]
  - { key: free, rate_limit: { unlimited: true } }
`

const entries = (...pairs: readonly (readonly [string, string])[]) => pairs.map(([key, value]) => ({ key, value }))
/** Each is sent on both ways, to services that have seen the same. */
const REQUESTS: readonly JsonValue[] = [
  { domain: 'api', descriptors: [{ entries: entries(['user', 'ada']) }] },
  { domain: 'api', descriptors: [{ entries: entries(['user', 'ada']) }], hitsAddend: 2 },
  { domain: 'api', descriptors: [{ entries: entries(['user', 'ada']) }], hits_addend: 1 },
  { domain: 'api', descriptors: [{ entries: entries(['user', 'ada']), hitsAddend: '0' }, { entries: entries(['free', 'x']) }] },
  { domain: 'api', descriptors: [{ entries: entries(['user', 'ada']), hits_addend: 2, is_negative_hits: true }] },
  { domain: 'api', descriptors: [{ entries: entries(['tenant', 'blue'], ['path', '/']) }, { entries: entries(['other', 'x']) }] },
  { domain: 'api', descriptors: [{ entries: entries(['user', 'eve']), limit: { requests_per_unit: 1, unit: 'HOUR' } }] },
  { domain: 'api', descriptors: [{ entries: entries(['user', 'eve']), limit: { requestsPerUnit: 1, unit: 3 } }] },
  { domain: 'unknown', descriptors: [{ entries: [{ key: 'user' }] }] },
]

async function setUp(t: TestContext) {
  const at = { host: '127.0.0.1', port: 0 }
  const listen = { http: at, grpc: at, resp: undefined, admin: undefined }
  const service = await startService(
    { ...parseConfig('policies: { one: { algorithm: gcra, limit: 1, window: 1s } }'), listen, domains: envoyDomains(RULES) },
    { clock: manualClock(12_000) },
  )
  t.after(() => service.stop())
  const client = new GrpcTestClient(service.urls.get('grpc') ?? assert.fail())
  t.after(() => client[Symbol.dispose]())
  const post = async (body: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${service.url}/json`, { method: 'POST', body, headers })
    return { status: response.status, json: (await response.json()) as Record<string, JsonValue> }
  }
  return { post, client }
}

test('/json answers as ShouldRateLimit does over gRPC, with 429 over a limit', async (t) => {
  const { post } = await setUp(t)
  const { client } = await setUp(t)
  for (const request of REQUESTS) {
    const expected = await client.call(RateLimitService.method.shouldRateLimit, fromJson(RateLimitRequestSchema, request))
    // As `curl --data` sends it.
    const { status, json } = await post(JSON.stringify(request), { 'content-type': 'application/x-www-form-urlencoded' })
    assert.deepEqual(
      toJson(RateLimitResponseSchema, fromJson(RateLimitResponseSchema, json)),
      toJson(RateLimitResponseSchema, expected),
      JSON.stringify(request),
    )
    assert.equal(status, json.overallCode === 'OVER_LIMIT' ? 429 : 200)
  }
})

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fromJson, type JsonValue, toJson } from '@bufbuild/protobuf'
import { manualClock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { envoyDomains } from 'sluicegate-testkit/service/running-service.js'
import { GrpcTestClient } from 'sluicegate-testkit/service/simulated-envoy.js'
import { startService } from '../../service.js'
import { RateLimitRequestSchema, RateLimitResponseSchema, RateLimitService } from '../grpc/messages/envoy/service/ratelimit/v3/rls.gen.js'

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

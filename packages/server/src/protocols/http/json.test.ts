import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fromJson, type JsonValue, toBinary, toJson } from '@bufbuild/protobuf'
import { manualClock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { limitRequestOf, limitResponseJson } from '../../envoy/limit-json.js'
import { startService } from '../../service.js'
import { RateLimitRequestSchema, RateLimitResponseSchema } from '../grpc/messages/envoy/service/ratelimit/v3/rls.gen.js'
import { readLimitRequest } from '../grpc/rls-codec.js'

const YAML = `
domain: edge
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 2, name: per-user }
  - key: closed
    rate_limit: { unit: hour, requests_per_unit: 0 }
`

async function setUp(t: TestContext) {
  const config = parseConfig(YAML)
  const service = await startService(
    { ...config, listen: { ...config.listen, http: { host: '127.0.0.1', port: 0 } } },
    { clock: manualClock(0) },
  )
  t.after(() => service.stop())
  const { url } = service
  return async (body: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${url}/json`, { method: 'POST', headers, body })
    return { status: response.status, body: (await response.json()) as JsonValue }
  }
}

const alice = (more = ''): string => `{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"alice"}]${more}}]}`

test('a request as JSON is answered with 200 until it is over the limit, then with 429', async (t) => {
  const post = await setUp(t)
  const currentLimit = { requestsPerUnit: 2, unit: 'MINUTE', name: 'per-user' }
  const status = { code: 'OK', currentLimit, limitRemaining: 1, durationUntilReset: '60s' }
  assert.deepEqual(await post(alice()), { status: 200, body: { overallCode: 'OK', statuses: [status] } })
  await post(alice())
  const over = { code: 'OVER_LIMIT', currentLimit, durationUntilReset: '60s' }
  assert.deepEqual(await post(alice()), { status: 429, body: { overallCode: 'OVER_LIMIT', statuses: [over] } })
  assert.equal((await post(alice(',"is_negative_hits":true,"hits_addend":"1"'))).status, 200, 'names of the protocol, numbers as texts')
  assert.equal((await post(alice(), { 'content-type': 'application/x-www-form-urlencoded' })).status, 200, 'what curl sends')
  assert.equal((await post('{"domain":"edge","descriptors":[{"entries":[{"key":"closed"}]}]}')).status, 429)
  assert.deepEqual(await post('{"domain":"else","descriptors":[{"entries":[{"key":"user"}]}]}'), {
    status: 200,
    body: { overallCode: 'OK', statuses: [{ code: 'OK' }] },
  })
})

test('what is no request receives 400, and pages of other sites 403', async (t) => {
  const post = await setUp(t)
  const wrong = [
    '',
    '[]',
    '{}',
    '{"domain":"edge"}',
    '{"domain":"edge","descriptors":[]}',
    '{"domain":1,"descriptors":[{}]}',
    '{"domain":"edge","descriptors":{}}',
    '{"domain":"edge","descriptors":[null]}',
    '{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":7}]}]}',
    '{"domain":"edge","domain":"other","descriptors":[{}]}',
    '{"domain":"edge","hits_addend":1,"hitsAddend":1,"descriptors":[{}]}',
    '{"domain":"edge","hitsAddend":-1,"descriptors":[{}]}',
    '{"domain":"edge","hitsAddend":4294967296,"descriptors":[{}]}',
    '{"domain":"edge","descriptors":[{"limit":{"unit":"DECADE"}}]}',
    '{"domain":"edge","descriptors":[{"entries":[{"key":"\\ud800"}]}]}',
    '{"domain":"edge","descriptors":[{"surprise":1}]}',
    `{"domain":"edge","descriptors":[${Array(129).fill('{}').join()}]}`,
  ]
  for (const body of wrong) assert.equal((await post(body)).status, 400, body.slice(0, 100))
  assert.equal((await post(alice(), { 'sec-fetch-site': 'cross-site' })).status, 403)
})

test('requests mean what the protocol makes of their JSON, and responses are its JSON', () => {
  const requests: JsonValue[] = [
    { domain: 'edge', descriptors: [{ entries: [{ key: 'a', value: 'b' }, { key: 'c' }], hitsAddend: '7', isNegativeHits: true }] },
    { domain: 'edge', hits_addend: '3', descriptors: [{ limit: { requests_per_unit: 5, unit: 'WEEK' } }, { hits_addend: 0, limit: null }] },
  ]
  for (const request of requests) {
    const bytes = toBinary(RateLimitRequestSchema, fromJson(RateLimitRequestSchema, request))
    assert.deepEqual(limitRequestOf(new Map(Object.entries(request as object))), readLimitRequest(bytes))
  }
  const limit = { requestsPerUnit: 5, unit: 7, name: 'x' }
  const statuses = [
    { over: true, limit, remaining: 0, resetS: 3 },
    { over: false, limit: { requestsPerUnit: 0, unit: 0, name: '' }, remaining: 2, resetS: 0 },
    { over: false, limit: undefined, remaining: 0, resetS: 0 },
  ]
  const json = JSON.parse(limitResponseJson({ over: true, statuses, headers: [['A', 'b']], metadata: { x: [1, null] } })) as JsonValue
  assert.deepEqual(toJson(RateLimitResponseSchema, fromJson(RateLimitResponseSchema, json)), json)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { manualClock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { envoyDomains, runService } from 'sluicegate-testkit/service/running-service.js'

const YAML = `
listen: { port: 0, admin: "127.0.0.1:0" }
policies:
  burst: { algorithm: token-bucket, limit: 100, window: 1m }
  jobs: { algorithm: concurrency, limit: 1, ttl: 30s }
  both:
    all-of:
      - { name: rate, algorithm: token-bucket, limit: 20, window: 1s }
      - { name: quota, algorithm: fixed-window, limit: 30, window: day }
`

const ENVOY = `
domain: edge
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 1, name: per-user }
`

type Json = Record<string, unknown>

const alice = { policy: 'burst', key: 'alice' }
const UNKNOWN = '00000000-0000-0000-0000-000000000000'
/** Requests, and the statuses that they receive. Texts in the form `$name` are what an earlier answer had under that name. */
const EXCHANGES: readonly [status: number, path: string, body: Json | undefined][] = [
  [200, '/v1/take?policy=burst&key=alice', undefined],
  [200, '/v1/peek?policy=both&key=alice', undefined],
  [200, '/v1/take', { policy: 'both', key: ['alice', 'blue'], cost: 20 }],
  [429, '/v1/take', { policy: 'both', key: ['alice', 'blue'], cost: 20 }],
  [422, '/v1/take', { ...alice, cost: 101 }],
  [200, '/v1/take', { policy: 'jobs', key: 'alice', ttlMs: 1_000 }],
  [429, '/v1/take', { policy: 'jobs', key: 'alice' }],
  [200, '/v1/heartbeat', { permit: '$permit' }],
  [200, '/v1/release', { permit: '$permit' }],
  [404, '/v1/release', { permit: '$permit' }],
  [200, '/v1/batch', { takes: [alice, { ...alice, peek: true }] }],
  [422, '/v1/batch', { all: true, takes: [alice, { ...alice, cost: 100 }] }],
  [200, '/v1/reserve', { ...alice, cost: 5, ttlMs: 1_000 }],
  [200, '/v1/settle', { reservation: '$reservation', cost: 2 }],
  [404, '/v1/settle', { reservation: UNKNOWN, cost: 2 }],
  [200, '/v1/reserve', { ...alice, cost: 5 }],
  [200, '/v1/cancel', { reservation: '$reservation' }],
  [422, '/v1/reserve', { ...alice, cost: 500 }],
  [200, '/v1/open', { ...alice, expect: 5, most: 8, ttlMs: 1_000, over: 'cut' }],
  [200, '/v1/add', { hold: '$hold', cost: 2, call: 1 }],
  [422, '/v1/add', { hold: '$hold', cost: 9, call: 2 }],
  [200, '/v1/close', { hold: '$hold', cost: 5, call: 3 }],
  [409, '/v1/add', { hold: '$hold', cost: 1 }],
  [404, '/v1/close', { hold: UNKNOWN }],
  [422, '/v1/open', { ...alice, expect: 500 }],
  [200, '/v1/open', { ...alice, expect: 'learned' }],
  [429, '/v1/add', { hold: '$hold', cost: 100 }],
  [200, '/v1/refund', { ...alice, tokens: 5 }],
  [200, '/v1/penalize', { ...alice, tokens: 5 }],
  [200, '/v1/block', { ...alice, forMs: 50 }],
  [200, '/v1/reset', alice],
  [200, '/json', { domain: 'edge', descriptors: [{ entries: [{ key: 'user', value: 'alice' }], hitsAddend: 1 }] }],
  [429, '/json', { domain: 'edge', descriptors: [{ entries: [{ key: 'user', value: 'alice' }] }], hitsAddend: 1 }],
  [200, '/json', { domain: 'none', descriptors: [{ entries: [{ key: 'user' }], limit: { requestsPerUnit: 1, unit: 'DAY' } }] }],
  [400, '/json', { domain: '', descriptors: [] }],
  [400, '/v1/take', { ...alice, cost: 0 }],
  [404, '/v1/take', { policy: 'x', key: 'a' }],
]

test('every answer is as the OpenAPI document describes it, and every path of the document exists', async (t) => {
  const { urls } = await runService(t, { ...parseConfig(YAML), domains: envoyDomains(ENVOY) }, { clock: manualClock(0) })
  const url = urls.get('admin') ?? assert.fail()
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as { openapi: string; paths: Record<string, Json> }
  assert.match(document.openapi, /^3\.1\./)
  const ajv = new Ajv2020({ strict: true, strictTypes: false, keywords: ['components', 'paths', 'info', 'openapi'] })
  ajv.addSchema({ ...document, $id: 'api' })
  const at = (...steps: string[]): string =>
    `api#/${steps.map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1'))).join('/')}`
  const held: Record<string, unknown> = {}
  const used = new Set<string>()
  for (const [status, target, sent] of EXCHANGES) {
    const [path = ''] = target.split('?')
    const method = sent === undefined ? 'get' : 'post'
    const body =
      sent &&
      Object.fromEntries(Object.entries(sent).map(([k, v]) => [k, typeof v === 'string' && v.startsWith('$') ? held[v.slice(1)] : v]))
    const what = `${method} ${target} ${JSON.stringify(body)}`
    const response = await fetch(url + target, {
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    const answer = (await response.json()) as Json
    assert.equal(response.status, status, `${what}: ${JSON.stringify(answer)}`)
    Object.assign(held, answer)
    const isProblem = response.headers.get('content-type') === 'application/problem+json'
    const steps = isProblem
      ? ['components', 'responses', 'Problem', 'content', 'application/problem+json', 'schema']
      : ['paths', path, method, 'responses', String(status), 'content', 'application/json', 'schema']
    const validate = ajv.getSchema(at(...steps)) ?? assert.fail(`${what}: the document has no such answer`)
    assert.ok(validate(answer), `${what}: ${JSON.stringify(answer)}: ${ajv.errorsText(validate.errors)}`)
    if (body !== undefined && status !== 400) {
      const request = ajv.getSchema(at('paths', path, 'post', 'requestBody', 'content', 'application/json', 'schema')) ?? assert.fail(what)
      assert.ok(request(body), `${what}: ${ajv.errorsText(request.errors)}`)
    }
    used.add(path)
  }
  for (const [path, methods] of Object.entries(document.paths)) {
    // Only with files that can be read again, or a candidate.
    if (path === '/v1/reload' || path === '/v1/diff') continue
    if (path.startsWith('/v1/') && path !== '/v1/auth') assert.ok(used.has(path), `${path} is tried above`)
    for (const method of Object.keys(methods)) {
      const { status } = await fetch(url + path, { method })
      assert.ok(status !== 405 && (status !== 404 || path.includes('settle')), `${method} ${path}: ${status}`)
    }
  }
})

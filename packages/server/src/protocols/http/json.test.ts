import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fromJson, type JsonValue, toBinary, toJson } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { allOf, manualClock, slidingLog, tokenBucket } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { shortOrLong } from 'sluicegate-testkit'
import { atOnce } from 'sluicegate-testkit/service/running-service.js'
import { Engine, PolicyError } from '../../engine/engine.js'
import { limitRequestOf, limitResponseJson } from '../../envoy/limit-json.js'
import { startService } from '../../service.js'
import { RateLimitRequestSchema, RateLimitResponseSchema } from '../grpc/messages/envoy/service/ratelimit/v3/rls.gen.js'
import { readLimitRequest } from '../grpc/rls-codec.js'
import { isIntricate, repeatedMember } from './body.js'
import { Problem } from './problem.js'
import { quoted, readQuery, splitTarget } from './query.js'
import { parseTakeRequest } from './take-request.js'

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

const isMuch = (text: string): boolean => isIntricate(Buffer.from(text))

test('a body of many values or levels is not read as JSON, and one of long strings is, whatever is in them', () => {
  assert.equal(isMuch('['.repeat(17)), true)
  assert.equal(isMuch('['.repeat(16)), false)
  assert.equal(isMuch(`[${'1,'.repeat(9_000)}1]`), true)
  assert.equal(isMuch(JSON.stringify({ takes: Array.from({ length: 100 }, () => ({ policy: 'p', key: '[,:"\\'.repeat(500) })) })), false)
  for (const open of ['"', '"\\', '"\\"', '{"a']) assert.equal(isMuch(open), false)
})

test('an object of any members has none twice, and with one of them again it has', () => {
  const value = fc.jsonValue({ maxDepth: 3 })
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: 'binary' }), value, { minKeys: 1 }), value, fc.nat(), (object, again, i) => {
      const text = JSON.stringify(object, null, i % 3)
      assert.equal(repeatedMember(text), undefined)
      const names = Object.keys(JSON.parse(text))
      const name = names[i % names.length] as string
      assert.equal(repeatedMember(`${text.trimEnd().slice(0, -1)},${JSON.stringify(name)}:${JSON.stringify(again)}}`), name)
    }),
    { numRuns: shortOrLong(25, 100) },
  )
})

test('equal names in values do not count', () => {
  assert.equal(repeatedMember('{"a":[{"b":{"c":1}},{"b":{"d":1,"e":[],"\\u0064":2}}]}'), 'd')
  assert.equal(repeatedMember('{"a":{"b":1,"c":2},"b":[{"a":1,"b":2}],"c":"\\"a\\":1"}'), undefined)
})

const burst = tokenBucket({ name: 'burst', limit: 9, window: '1s' })
const both = allOf([burst, slidingLog({ limit: 9, window: '1s' })], { name: 'both' })
const engine = new Engine([burst, both].map((policy) => ({ policy, maxKeys: 1_000, onFull: 'evict' })))
const RUNS = { numRuns: shortOrLong(200, 1_000), seed: 20_261_121 }

/** Any input from outside leads to a decision or to a problem for the client, never to an internal error. */
function answers(parameters: () => ReadonlyMap<string, unknown>): void {
  try {
    const { served, key, cost } = parseTakeRequest(engine, parameters())
    const { remaining } = atOnce(served.take(key, cost))
    assert.ok(remaining >= 0 && remaining <= 9)
  } catch (error) {
    if (!(error instanceof Problem || error instanceof PolicyError)) throw error
    assert.ok(error.message.length < 300 && !/[\r\n]/.test(error.message), error.message)
  }
}

test('any query string ends in a decision or in a problem', () => {
  const pieces = fc.constantFrom(
    'policy=',
    'key=',
    'cost=',
    'burst',
    '&',
    '=',
    '%',
    '%41',
    '%ff',
    '+',
    '1',
    '0',
    '__proto__',
    'é',
    '\u0000',
  )
  const query = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 60 }),
    fc.array(pieces, { maxLength: 14 }).map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(query, (text) => answers(() => readQuery(text))),
    RUNS,
  )
})

test('any JSON object ends in a decision or in a problem', () => {
  const name = fc.constantFrom('policy', 'key', 'cost', '__proto__', 'Key')
  const value = fc.oneof(
    fc.constantFrom('burst', 'both', 'alice', 1, 3, 0, -1, 1e308, null, true),
    fc.string({ unit: 'binary' }),
    fc.jsonValue(),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 4 }), (members) => answers(() => new Map<string, unknown>(members))),
    RUNS,
  )
})

test('JSON may have one key for each of several policies, each of which is looked at', () => {
  const parsed = (policy: string, key: unknown) => parseTakeRequest(engine, new Map<string, unknown>(Object.entries({ policy, key })))
  const { served, key, cost } = parsed('both', ['alice', 'blue'])
  assert.deepEqual(key, ['alice', 'blue'])
  assert.equal(atOnce(served.take(key, cost)).allowed, true)
  for (const wrong of [
    ['alice', ''],
    ['alice', 5],
    ['alice', '\ud800'],
    ['alice', ['blue']],
  ]) {
    assert.throws(() => parsed('both', wrong), Problem, JSON.stringify(wrong))
  }
  for (const [policy, keys] of [
    ['both', ['alice']],
    ['both', []],
    ['burst', ['alice']],
    ['burst', []],
  ] as const) {
    const asked = parsed(policy, keys)
    assert.throws(() => asked.served.take(asked.key, 1), PolicyError, `${policy} ${keys}`)
  }
})

test('a query string is read as browsers write it', () => {
  assert.deepEqual(
    [...readQuery('key=a%20b+c%2Bd&cost=2&&policy=%E2%82%AC')],
    [
      ['key', 'a b c+d'],
      ['cost', '2'],
      ['policy', '€'],
    ],
  )
})

const REFUSED: readonly [what: string, query: string, why: RegExp][] = [
  ['a parameter given twice', 'key=a&cost=1&key=b', /"key" is given more than once/],
  ['a parameter given twice in two spellings', 'key=a&k%65y=b', /"key" is given more than once/],
  ['a percent sign that encodes nothing', 'key=100%', /not percent-encoded UTF-8/],
  ['an encoding that is not UTF-8', 'key=%ff', /not percent-encoded UTF-8/],
  ['an encoded lone surrogate', 'key=%ED%A0%80', /not percent-encoded UTF-8/],
  ['an overlong encoding', 'key=%C0%AF', /not percent-encoded UTF-8/],
  ['raw bytes beyond ASCII', 'key=\u00e4', /must be percent-encoded/],
  ['a name without a value', 'key', /write name=value/],
]

for (const [what, query, why] of REFUSED) {
  test(`${what} is refused`, () => assert.throws(() => readQuery(query), why))
}

test('__proto__ is a name like any other', () => {
  const parameters = readQuery('__proto__=1&constructor=2')
  assert.equal(parameters.get('__proto__'), '1')
  assert.equal(parameters.get('toString'), undefined)
})

test('a target is a path or a whole URL', () => {
  assert.deepEqual(splitTarget('/v1/take?a=1?b'), { path: '/v1/take', query: 'a=1?b' })
  assert.deepEqual(splitTarget('http://host:80/livez'), { path: '/livez', query: '' })
  assert.deepEqual(splitTarget('/?'), { path: '/', query: '' })
  assert.equal(splitTarget('*').path, '*')
})

test('a name from outside is short and on one line when it is quoted', () => {
  assert.equal(quoted('a\nb'), '"a\\nb"')
  assert.ok(quoted('x'.repeat(10_000)).length < 80)
})

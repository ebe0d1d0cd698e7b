import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RawResponse, rawExchange } from 'sluicegate-testkit/service/many-connections.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'

const GOOD = 'policy=burst&key=a'

function request(line: string, headers: readonly string[] = [], body = ''): string {
  const length = body === '' ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
  return [`${line} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...length, ...headers, '', body].join('\r\n')
}

function get(query: string): string {
  return request(`GET /v1/take?${query}`)
}

function json(body: string, type = 'application/json'): string {
  return request('POST /v1/take', [`Content-Type: ${type}`], body)
}

const CASES: readonly [what: string, bytes: string | Buffer, status: number, detail: RegExp][] = [
  ['no key', get('policy=burst'), 400, /key is missing/],
  ['an empty key', get('policy=burst&key='), 400, /key is missing/],
  ['a key of 1,025 units', get(`policy=burst&key=${'x'.repeat(1_025)}`), 400, /key: must be/],
  ['a key of a megabyte', get(`policy=burst&key=${'x'.repeat(1_000_000)}`), 431, /at most 16384 bytes/],
  ['no policy', get('key=a'), 400, /policy is missing/],
  ['an unknown policy', get('policy=brust&key=a'), 404, /no policy "brust"; did you mean "burst"\?/],
  ['__proto__ as policy', get('policy=__proto__&key=a'), 404, /no policy "__proto__"/],
  ['constructor as policy', json('{"policy":"constructor","key":"a"}'), 404, /no policy "constructor"/],
  ['a cost of 0', get(`${GOOD}&cost=0`), 400, /cost: must be an integer/],
  ['a negative cost', get(`${GOOD}&cost=-1`), 400, /cost must be an integer/],
  ['a cost that is no integer', get(`${GOOD}&cost=1.5`), 400, /cost must be an integer/],
  ['a cost that is no number', get(`${GOOD}&cost=NaN`), 400, /cost must be an integer/],
  ['a cost in hexadecimal', get(`${GOOD}&cost=0x10`), 400, /cost must be an integer/],
  ['an empty cost', get(`${GOOD}&cost=`), 400, /cost must be an integer/],
  ['a repeated parameter', get(`${GOOD}&key=b`), 400, /"key" is given more than once/],
  ['an unknown parameter', get(`${GOOD}&cots=5`), 400, /unknown parameter "cots"; did you mean "cost"\?/],
  ['a percent sign that encodes nothing', get('policy=burst&key=%zz'), 400, /percent-encoded UTF-8/],
  ['an encoded lone surrogate', get('policy=burst&key=%ED%A0%80'), 400, /percent-encoded UTF-8/],
  ['broken JSON', json('{"policy":"burst",'), 400, /not JSON/],
  ['no body at all', request('POST /v1/take', ['Content-Type: application/json', 'Content-Length: 0']), 400, /not JSON/],
  [
    'JSON in Latin-1 that says it is UTF-8',
    Buffer.from(json('{"policy":"burst","key":"zoe"}').replace('zoe', 'zo\u00eb'), 'latin1'),
    400,
    /not JSON in UTF-8/,
  ],
  ['JSON that is a list', json('["burst","a"]'), 400, /must be an object such as/],
  ['JSON that is null', json('null'), 400, /must be an object such as/],
  ['a key that is a number', json('{"policy":"burst","key":5}'), 400, /key must be a string/],
  ['a key that is null', json('{"policy":"burst","key":null}'), 400, /key must be a string/],
  ['a policy that is a list', json('{"policy":["burst"],"key":"a"}'), 400, /policy must be a string/],
  ['a cost that is a string in an object', json('{"policy":"burst","key":"a","cost":{}}'), 400, /cost: must be an integer/],
  ['a cost that is a fraction in JSON', json('{"policy":"burst","key":"a","cost":1.5}'), 400, /cost: must be an integer/],
  ['a cost beyond all numbers', json('{"policy":"burst","key":"a","cost":1e999}'), 400, /cost: must be an integer/],
  ['half of a surrogate pair in JSON', json('{"policy":"burst","key":"a\\ud800"}'), 400, /surrogate/],
  ['an unknown member', json('{"policy":"burst","key":"a","__proto__":{}}'), 400, /unknown parameter "__proto__"/],
  ['JSON nested 8,000 deep', json('['.repeat(8_000) + ']'.repeat(8_000)), 400, /not JSON|must be an object/],
  ['a body too large', json(JSON.stringify({ policy: 'burst', key: 'x'.repeat(1_000_000) })), 413, /at most 16384 bytes/],
  ['a form', json(GOOD, 'application/x-www-form-urlencoded'), 415, /Content-Type: application\/json/],
  ['JSON in Latin-1', json('{}', 'application/json; charset=iso-8859-1'), 415, /Content-Type: application\/json/],
  ['a query string on a POST', request(`POST /v1/take?${GOOD}`, ['Content-Type: application/json'], '{}'), 400, /no query string/],
  ['an unknown path', request('GET /v2/take'), 404, /this path does not exist.*\/v1\/take/],
  ['a path named __proto__', request('GET /__proto__'), 404, /this path does not exist/],
  ['no Host', 'GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n', 400, /Host header is missing/],
  ['an odd expectation', request('GET /nowhere', ['Expect: wonders']), 404, /this path does not exist/],
  ['two Host fields', `GET /livez HTTP/1.1\r\nHost: a\r\nhOST: b\r\nConnection: close\r\n\r\n`, 400, /Host is given more than once/],
  ['the same Host twice', request(`GET /v1/take?${GOOD}`, ['Host: localhost']), 400, /Host is given more than once/],
  ['two Host fields in HTTP/1.0', 'GET /livez HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n', 400, /Host is given more than once/],
  ['a Host that is none', 'GET /livez HTTP/1.1\r\nHost: a/b\r\nConnection: close\r\n\r\n', 400, /Host must be a name/],
  ['two keys in JSON', json('{"policy":"burst","key":"a","cost":1,"key":"b"}'), 400, /"key" is given more than once/],
  ['two keys in JSON, one in escapes', json('{"policy":"burst","key":"a","k\\u0065y":"b"}'), 400, /"key" is given more than once/],
  ['two equal policies in JSON', json('{"policy":"burst","policy":"burst","key":"a"}'), 400, /"policy" is given more than once/],
  ['two costs in JSON', json('{"cost":1,"policy":"burst","key":"a","cost":2}'), 400, /"cost" is given more than once/],
  ['__proto__ twice in JSON', json('{"__proto__":1,"__proto__":1}'), 400, /"__proto__" is given more than once/],
  ['a repeated policy', get(`${GOOD}&policy=spaced`), 400, /"policy" is given more than once/],
  ['a repeated key in percent-encoding', get(`${GOOD}&k%65y=b`), 400, /"key" is given more than once/],
  ['a repeated cost', get(`${GOOD}&cost=1&cost=1`), 400, /"cost" is given more than once/],
  [
    'two types of one body',
    request('POST /v1/take', ['Content-Type: application/json', 'Content-Type: text/plain'], '{"policy":"burst","key":"a"}'),
    400,
    /Content-Type is given more than once/,
  ],
  [
    'two lengths of one body',
    request('POST /v1/take', ['Content-Length: 5'], '{"policy":"burst"}'),
    400,
    /the length of the body is not clear/,
  ],
  ['a length that is no number', request('POST /v1/take', ['Content-Length: 5x']), 400, /the length of the body is not clear/],
  [
    'a length beside chunks',
    request('POST /v1/take', ['Content-Length: 5', 'Transfer-Encoding: chunked']),
    400,
    /the length of the body is not clear/,
  ],
  [
    'a length after chunks',
    request('POST /v1/take', ['Transfer-Encoding: chunked', 'Content-Length: 5']),
    400,
    /the length of the body is not clear/,
  ],
  ['chunks that are not last', request('POST /v1/take', ['Transfer-Encoding: chunked, gzip']), 400, /the length of the body is not clear/],
  ['no HTTP at all', 'hello\r\n\r\n', 400, /not an HTTP\/1\.1 request/],
]

for (const [what, bytes, status, detail] of CASES) {
  test(`${what} is answered with ${status} and a hint`, async (t) => {
    const { url, engine } = await runService(t)
    const response = await rawExchange(url, bytes)
    assert.equal(response.status, status, response.body)
    assert.match(problemOf(response).detail, detail)
    assert.deepEqual(engine.policy('burst')?.counts, { allowed: 0, denied: 0, impossible: 0, peeks: 0 })
  })
}

for (const [method, path, allow] of [
  ['PUT', '/v1/take', 'GET, POST'],
  ['HEAD', '/v1/take', 'GET, POST'],
  ['DELETE', '/v1/peek', 'GET, POST'],
  ['POST', '/v1/auth', 'GET, HEAD'],
  ['POST', '/metrics', 'GET, HEAD'],
  ['OPTIONS', '/livez', 'GET, HEAD'],
]) {
  test(`${method} ${path} is answered with 405 and Allow: ${allow}`, async (t) => {
    const { url } = await runService(t)
    const response = await rawExchange(url, request(`${method} ${path}?${GOOD}`))
    assert.equal(response.status, 405)
    assert.equal(response.headers.get('allow'), allow)
  })
}

for (const host of ['', 'localhost', 'localhost:8080', '127.0.0.1:', '[::1]:8080', 'a_b.example', 'xn--bcher-kva.example']) {
  test(`"${host}" is a Host`, async (t) => {
    const { url } = await runService(t)
    assert.equal((await rawExchange(url, `GET /livez HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status, 200)
  })
}

test('names inside values are no members', async (t) => {
  const { url } = await runService(t)
  for (const key of ['","key":"b', '{"key":1}', 'key', ':', '\\\\', '"']) {
    const response = await rawExchange(url, json(JSON.stringify({ policy: 'burst', key, cost: 1 }, null, 1)))
    assert.equal(response.status, 200, response.body)
  }
})

function problemOf({ status, headers, body }: RawResponse): { detail: string } {
  assert.equal(headers.get('content-type'), 'application/problem+json')
  assert.equal(headers.get('cache-control'), 'no-store')
  const problem = JSON.parse(body)
  assert.deepEqual([problem.type, problem.status], ['about:blank', status])
  assert.equal(typeof problem.title, 'string')
  assert.match(problem.code, /^[A-Z_]+$/)
  return problem
}

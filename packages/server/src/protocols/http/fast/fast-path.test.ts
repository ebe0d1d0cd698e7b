import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { manualClock } from 'sluicegate'
import { type ClientBounds, DEFAULT_CLIENTS } from 'sluicegate-config/config.js'
import { parseConfig } from 'sluicegate-config/read-config.js'
import type { Token } from 'sluicegate-config/tokens.js'
import { everyNth, longTest, Random, shortOrLong } from 'sluicegate-testkit'
import { damaged } from 'sluicegate-testkit/service/fuzz/fuzz-input.js'
import { connectTo, readToEnd } from 'sluicegate-testkit/service/many-connections.js'
import { atOnce } from 'sluicegate-testkit/service/running-service.js'
import { Access } from '../../../access.js'
import { after } from '../../../after.js'
import { Engine } from '../../../engine/engine.js'
import { DEFAULT_LIMIT_SETTINGS } from '../../../envoy/limit-settings.js'
import { RateLimits } from '../../../envoy/rate-limits.js'
import { Guard } from '../../guard.js'
import { httpSurface } from '../access.js'
import type { Route, WholeHandler } from '../handler.js'
import { HttpServer } from '../http-server.js'
import { type Router, router } from '../router.js'
import { decisionRoutes } from '../verbs.js'

const YAML = `
policies:
  burst: { algorithm: token-bucket, limit: 10000, window: 1m, burst: 100 }
  even: { algorithm: gcra, limit: 5, window: 1s, burst: 1 }
  permits: { algorithm: concurrency, limit: 3, ttl: 1m }
`
const TOKENS: readonly Token[] = [{ name: 'app', secret: 'a-secret-of-the-app', scope: 'decide' }]

interface ServerOptions {
  /** Whether plain requests go past the parser. */
  readonly isDirect: boolean
  readonly tokens?: readonly Token[]
  /** Instead of the verbs of the service. */
  readonly routes?: [path: string, route: Route][]
  readonly bounds?: ClientBounds
}

/** A server whose keys and clock are its own. */
async function listen(t: TestContext, { isDirect, tokens = [], routes, bounds = DEFAULT_CLIENTS }: ServerOptions) {
  const engine = new Engine(parseConfig(YAML).policies, { clock: manualClock(0) })
  const access = new Access(tokens)
  const limits = new RateLimits(engine, [], DEFAULT_LIMIT_SETTINGS, () => 0)
  const all = routes ?? decisionRoutes(engine, limits, access)
  const guard = new Guard('http', { error: () => undefined })
  const both = router(httpSurface({ probes: [], routes: all, changes: [], access }), guard)
  let direct = 0
  const counting: Router = {
    ...both,
    wholeCall(...request) {
      const call = isDirect ? both.wholeCall(...request) : undefined
      if (call !== undefined) direct++
      return call
    },
  }
  const server = new HttpServer({ router: counting, bounds, guard, onError: assert.ifError })
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  t.after(async () => {
    await server.stop(0)
    engine.close()
  })
  return { url, server, engine, guard, direct: () => direct }
}

const LAST = 'GET /v1/peek?policy=burst&key=end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

/** Enough for the server, in the same process, to read a part and to answer it. */
const TURNS = 4

/** What comes back for `parts`, each written in its own turn. Dates are those of the clock on the wall, and ids are random. */
async function exchange(url: string, parts: readonly (string | Buffer)[]): Promise<string> {
  const socket = await connectTo(url)
  const answer = readToEnd(socket)
  let isLast = false
  socket.on('data', (chunk: Buffer) => {
    isLast ||= /^connection: close\r$/im.test(chunk.toString('latin1'))
  })
  for (const part of [...parts, LAST]) {
    // What is written after the last answer would cost us that answer.
    if (isLast || socket.readableEnded) break
    socket.write(part)
    for (let turn = 0; turn < TURNS; turn++) await nextTurn()
  }
  socket.end()
  return (await answer).replaceAll(/^Date: .*$/gm, 'Date: D').replaceAll(/"(permit|reservation)":"[^"]*"/g, '"$1":"I"')
}

const HEADERS = 'Host: gate.example\r\nUser-Agent: app/1\r\nAccept: */*\r\n'
const post = (body: string, headers = HEADERS): string =>
  `POST /v1/take HTTP/1.1\r\n${headers}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
const take = (key: string, headers = HEADERS): string => `GET /v1/take?policy=burst&key=${key} HTTP/1.1\r\n${headers}\r\n`

test('plain requests are answered with the same bytes as by the parser, whatever their headers are', async (t) => {
  const parsed = await listen(t, { isDirect: false })
  const direct = await listen(t, { isDirect: true })
  const requests = Array.from({ length: 10 }, (_, i) =>
    take(`k${i % 3}`, `X-Request-Id: ${i}\r\n${HEADERS}Cookie: ${'c'.repeat(i * 300)}\r\n`),
  )
  assert.equal(await exchange(direct.url, requests), await exchange(parsed.url, requests))
  assert.deepEqual([parsed.direct(), direct.direct()], [0, 9])
})

test('bodies of JSON are answered with the same bytes as by the parser, and those that come later go to it', async (t) => {
  const parsed = await listen(t, { isDirect: false })
  const direct = await listen(t, { isDirect: true })
  const bodies = [
    '{"policy":"burst","key":"a"}',
    '{"policy":"burst","key":"ż"}',
    '{"policy":"burst"}',
    '{',
    '',
    '[]',
    '{"key":"a","key":"b"}',
  ]
  const requests = bodies.map((body) => post(body))
  const [first = '', second = ''] = requests
  for (const parts of [requests, [requests.join('')], [first, ...second, first], [first.slice(0, -5), first.slice(-5), first]])
    assert.equal(await exchange(direct.url, parts), await exchange(parsed.url, parts))
  // The first of each connection, and what comes in pieces, go to the parser.
  assert.equal(direct.direct(), 6 + 6 + 0 + 1)
})

test('requests in one packet, and in pieces of one byte, are answered in order', async (t) => {
  const parsed = await listen(t, { isDirect: false })
  const direct = await listen(t, { isDirect: true })
  const text = Array.from({ length: 6 }, (_, i) => take(`k${i % 2}`)).join('')
  assert.equal(await exchange(direct.url, [text]), await exchange(parsed.url, [text]))
  assert.equal(direct.direct(), 5)
  assert.equal(await exchange(direct.url, [...text]), await exchange(parsed.url, [...text]))
})

for (const [i, [what, second]] of (
  [
    ['another version', take('a').replace('HTTP/1.1', 'HTTP/1.0')],
    ['another method', take('a').replace('GET', 'HEAD')],
    ['a method in lower case', take('a').replace('GET', 'get')],
    ['a second space', take('a').replace('GET ', 'GET  ')],
    ['a bare line feed in the target', take('a\nX-Sluicegate-Key: b')],
    ['a whole URL', take('a').replace('/v1', 'http://other.example/v1')],
    ['an empty line before it', `\r\n${take('a')}`],
    ['bytes above ASCII in the target', take('\xff')],
    ['a path without a handler', 'GET /openapi HTTP/1.1\r\n'.concat(HEADERS, '\r\n')],
    ['a line that goes on in the next one', take('a', `X-More: 1\r\n 2\r\n${HEADERS}`)],
    ['a space before the colon', take('a', `${HEADERS}X-More : 1\r\n`)],
    ['a bare line feed in a header', take('a', `${HEADERS}X-More: 1\nX-Sluicegate-Key: b\r\n`)],
    ['a zero in a header', take('a', `${HEADERS}X-More: \0\r\n`)],
    ['no Host', take('a', 'Accept: */*\r\n')],
    ['two lengths', post('{"policy":"burst","key":"a"}', `${HEADERS}Content-Length: 28\r\n`)],
    ['a length with a sign', post('{}').replace('Length: 2', 'Length: +2')],
    ['a head of 9,000 bytes', take('a', `${HEADERS}Cookie: ${'c'.repeat(9_000)}\r\n`)],
  ] as const
).entries()) {
  everyNth(i, 4)(`a request with ${what} goes to the parser`, async (t) => {
    const parsed = await listen(t, { isDirect: false })
    const direct = await listen(t, { isDirect: true })
    const parts = [take('a'), Buffer.from(second, 'latin1'), take('a')]
    assert.equal(await exchange(direct.url, parts), await exchange(parsed.url, parts))
    // Where the parser has gone on, the third request may be read here again.
    assert.ok(direct.direct() <= 1, String(direct.direct()))
  })
}

test('the body of a request is never read as a request', async (t) => {
  const { url, engine } = await listen(t, { isDirect: true })
  const inner = take('smuggled')
  const headers = `${HEADERS}Content-Type: application/json\r\n`
  const head = `POST /v1/take HTTP/1.1\r\n${headers}Content-Length: ${inner.length}\r\n\r\n`
  const chunked = `POST /v1/take HTTP/1.1\r\n${headers}Transfer-Encoding: chunked\r\n\r\n`
  await exchange(url, [take('a'), head, inner, take('a')])
  await exchange(url, [take('a'), head + inner.slice(0, 10), inner.slice(10) + take('a'), take('a')])
  await exchange(url, [take('a'), head + inner + take('a')])
  // The length counts from where the parser has the end of the head, a line feed or more.
  for (const end of ['\n\n', '\r\n\n', '\n\r\n'])
    await exchange(url, [take('a'), head.replace(/(?:\r\n){2}$/, end) + inner.slice(0, 10), inner.slice(10), take('a')])
  await exchange(url, [take('a'), chunked, `${inner.length.toString(16)}\r\n`, inner, '\r\n0\r\n\r\n', take('a')])
  await exchange(url, [take('a'), 'GET /v1/take?policy=burst&key=a HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n', inner])
  assert.equal(atOnce(engine.policy('burst')?.peek('smuggled', 1)).remaining, 100)
})

test('bytes of a body before a request are not taken for its headers', async (t) => {
  const { url } = await listen(t, { isDirect: true })
  const request = `GET /v1/auth?policy=burst HTTP/1.1\r\nHost: x\r\n\r\n`
  const body = `GET /v1/auth?policy=burst HTTP/1.1\r\nX-Sluicegate-Key: `
  const head = `POST /v1/take HTTP/1.1\r\n${HEADERS}Content-Length: ${body.length}\r\n\r\n`
  for (const parts of [
    [head, body + request, body + request],
    [head + body + request, body + request],
  ]) {
    const answers = await exchange(url, parts)
    // The last one has a key.
    assert.deepEqual(
      [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
      ['415', '401', '204', '200'],
    )
  }
})

for (const [i, header] of [
  'Connection: close',
  'Expect: 100-continue',
  'Upgrade: x\r\nConnection: Upgrade',
  'Content-Length: 1',
  'Host: twice',
  'Proxy-Connection: close',
  'Transfer-Encoding: identity',
  'Content-Type: a\r\nContent-Type: b',
].entries()) {
  everyNth(i, 4)(`requests with ${header} go to the parser, each of them`, async (t) => {
    const { url, direct } = await listen(t, { isDirect: true })
    await exchange(url, Array(3).fill(take('a', `${HEADERS}${header}\r\n`)))
    assert.equal(direct(), 0)
  })
}

test('the token of each request is checked', async (t) => {
  const withToken = `${HEADERS}Authorization: Bearer a-secret-of-the-app\r\n`
  const parsed = await listen(t, { isDirect: false, tokens: TOKENS })
  const direct = await listen(t, { isDirect: true, tokens: TOKENS })
  const parts = [take('a', withToken), take('a', withToken), take('a'), take('a'), take('a', withToken)]
  const answers = await exchange(direct.url, parts)
  assert.equal(answers, await exchange(parsed.url, parts))
  assert.deepEqual(
    [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
    ['200', '200', '401', '401', '200', '401'],
  )
})

test('an answer that comes later, an error of a handler, and text beyond ASCII are as the parser would have them', async (t) => {
  const answers: [path: string, handler: WholeHandler][] = [
    [
      '/later',
      async (_, response, query) => {
        for (let turns = Number(query); turns > 0; turns--) await nextTurn()
        response.writeHead(200, ['Content-Length', String(query.length)])
        response.end(query)
      },
    ],
    ['/rejects', () => Promise.reject(new TypeError('no'))],
    [
      '/wide',
      (_, response) => {
        response.writeHead(200, ['Content-Length', '4'])
        response.end('żó')
      },
    ],
  ]
  const routes = answers.map(([path, whole]): [string, Route] => [path, { GET: { whole } }])
  const parsed = await listen(t, { isDirect: false, routes })
  const direct = await listen(t, { isDirect: true, routes })
  const requests = ['/later?20', '/later?0', '/rejects', '/wide', '/wide', '/later?1'].map(
    (target) => `GET ${target} HTTP/1.1\r\n${HEADERS}\r\n`,
  )
  for (const parts of [requests, [requests.join('')]]) assert.equal(await exchange(direct.url, parts), await exchange(parsed.url, parts))
  assert.equal(direct.direct(), 10)
  assert.deepEqual([parsed.guard.faults, direct.guard.faults], [2, 2])
})

test('an answer that takes longer than an idle connection may live is sent, and the limit holds again after it', async (t) => {
  const whole: WholeHandler = async (_, response, query) => {
    await after(Number(query))
    response.writeHead(200, ['Content-Length', '0'])
    response.end()
  }
  const { url, direct } = await listen(t, {
    isDirect: true,
    routes: [['/later', { GET: { whole } }]],
    bounds: { ...DEFAULT_CLIENTS, idleMs: 100 },
  })
  const socket = await connectTo(url)
  const all = readToEnd(socket)
  for (const ms of [0, 400, 0]) {
    socket.write(`GET /later?${ms} HTTP/1.1\r\n${HEADERS}\r\n`)
    await once(socket, 'data')
  }
  // Closed by the server.
  assert.equal([...(await all).matchAll(/HTTP\/1\.1 200/g)].length, 3)
  assert.equal(direct(), 2)
})

test('a header value that would end its line is an error of the service', async (t) => {
  const whole: WholeHandler = (_, response) => void response.writeHead(200, ['X-Name', 'a\r\nX-Other: b'])
  const { url, direct, guard } = await listen(t, { isDirect: true, routes: [['/unsafe', { GET: { whole } }]] })
  const answers = await exchange(url, Array(2).fill(`GET /unsafe HTTP/1.1\r\n${HEADERS}\r\n`))
  assert.equal(direct(), 1)
  assert.equal([...answers.matchAll(/HTTP\/1\.1 500/g)].length, 2)
  assert.doesNotMatch(answers, /X-Other/)
  assert.equal(guard.faults, 2)
})

// hostile-clients.alone.test.ts has such clients of a service in every run.
longTest('a client that never reads its direct answers is cut off, and fills no memory', async (t) => {
  const { url, server, engine, direct } = await listen(t, { isDirect: true })
  const socket = await connectTo(url)
  socket.on('error', () => {})
  const batch = take('a').repeat(1_000)
  for (let i = 0; i < 300; i++) socket.write(batch)
  const counts = engine.policy('burst')?.counts ?? assert.fail()
  const answered = (): number => counts.allowed + counts.denied
  for (let before = -1; before !== answered() || before === 0; ) {
    before = answered()
    for (let i = 0; i < 10; i++) await exchange(url, [])
  }
  assert.ok(direct() > 0 && answered() < 150_000, `${answered()} answers were made`)
  assert.equal(server.connections.inFlight, 1)
  socket.destroy()
})

test('a leaving server says so in the next answer, and closes the connection', async (t) => {
  const { url, server } = await listen(t, { isDirect: true })
  const socket = await connectTo(url)
  const all = readToEnd(socket)
  for (const _ of [1, 2]) {
    socket.write(take('a'))
    await new Promise((resolve) => socket.once('data', resolve))
  }
  server.drain()
  socket.write(take('a'))
  const answers = (await all).split('HTTP/1.1 ').slice(1)
  assert.deepEqual(
    answers.map((answer) => /^Connection: (.*)\r$/m.exec(answer)?.[1]),
    ['keep-alive', 'keep-alive', 'close'],
  )
})

/** Requests of a client whose headers differ in each of them, that sometimes sends something else, and is damaged here and there. */
function streamOf(random: Random): Buffer[] {
  const one = <Value>(list: readonly Value[]): Value => list[random.integer(0, list.length - 1)] as Value
  const printable = (): string =>
    Array.from({ length: random.magnitude(1, 30) }, () => String.fromCharCode(random.integer(0x20, 0x7f))).join('')
  const target = (): string =>
    one([
      () => `/v1/take?policy=${one(['burst', 'even', 'none'])}&key=${one(['a', 'b', '%20', 'x'.repeat(300), '%zz'])}`,
      () => `/v1/take?policy=burst&key=a&cost=${one(['2', '0', '-1', '1000', 'x'])}`,
      () => `/v1/peek?policy=${one(['burst', 'permits'])}&key=a`,
      () => '/v1/auth?policy=even&key=a',
      () => '/v1/auth',
      () => `/v1/take?policy=burst&key=${printable()}`,
      () => `/${printable()}`,
      () => one(['*', '/', '//', '/v1/take', '/v1/take?', '/v1/take#', 'http://x/v1/peek?policy=burst&key=a', '/openapi.json']),
    ])()
  const more = [
    '',
    'X-Sluicegate-Policy: burst\r\nX-Sluicegate-Key: k\r\n',
    'Sec-Fetch-Site: cross-site\r\n',
    'Connection: keep-alive\r\n',
    'Content-Length: 0\r\n',
    'Expect: 100-continue\r\n',
    'Host: twice\r\n',
    'Upgrade: x\r\nConnection: Upgrade\r\n',
    'X: \xe9\r\n',
  ]
  const likely = one(more)
  const parts: Buffer[] = []
  for (let count = random.integer(2, 10); count > 0; count--) {
    // Differs in each request, as proxies and tracing clients have it.
    const id = `X-Request-Id: ${random.integer(0, 1e9)}\r\n`
    const rest = `${one(['', id])}${HEADERS}${one(['', id])}${random.integer(0, 9) < 8 ? likely : one(more)}`
    const body = one([
      '{"policy":"burst","key":"a"}',
      '{"policy":"burst","key":"\\u0061","cost":2}',
      '{"policy":"even","key":"\xc3\xa9"}',
      '{',
      '',
    ])
    const length = one([`Content-Length: ${body.length}\r\n`, `content-length:${body.length} \r\n`, ''])
    // Node drops what comes in one packet with the body of a request to upgrade.
    const isPost = !rest.includes('Upgrade') && random.integer(0, 3) === 0
    const text = isPost
      ? `POST /v1/${one(['take', 'peek', 'batch'])} HTTP/1.1\r\n${rest}Content-Type: application/json\r\n${length}\r\n${body}`
      : `GET ${target()} HTTP/1.${random.integer(0, 20) === 0 ? 0 : 1}\r\n${rest}\r\n`
    const bytes = Buffer.from(text, 'latin1')
    parts.push(random.integer(0, 14) === 0 ? damaged(random, bytes) : bytes)
  }
  if (random.integer(0, 2) > 0) return parts
  // The same bytes, cut elsewhere.
  const all = Buffer.concat(parts)
  const cuts: Buffer[] = []
  for (let at = 0; at < all.length; ) {
    const length = random.magnitude(1, 600)
    cuts.push(all.subarray(at, at + length))
    at += length
  }
  return cuts
}

test('random streams of requests are answered as by the parser, byte for byte', async (t) => {
  const parsed = await listen(t, { isDirect: false })
  const direct = await listen(t, { isDirect: true })
  for (let seed = 1; seed <= shortOrLong(80, 250); seed++) {
    const parts = streamOf(new Random(seed))
    const [expected, found] = await Promise.all([exchange(parsed.url, parts), exchange(direct.url, parts)])
    assert.equal(found, expected, `seed ${seed}: ${JSON.stringify(Buffer.concat(parts).toString('latin1'))}`)
  }
  assert.ok(direct.direct() > shortOrLong(80, 250) / 2, `${direct.direct()} direct answers`)
})

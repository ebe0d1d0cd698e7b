import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { damaged } from 'sluicegate-testkit/service/fuzz/fuzz-input.js'
import { readPlainRequest } from './plain-request.js'

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')
const HEAD = 'GET /v1/take?key=a HTTP/1.1\r\nHost: gate.example\r\n'

test('a plain request has the fields that handlers read, or all of them, and its length', () => {
  const text = `${HEAD}X-Request-ID: 7\r\nAUTHORIZATION:\t Bearer a \t\r\nX-Sluicegate-Key:\r\n\r\n`
  const read = readPlainRequest(bytes(`${text}GET /next`), false) ?? assert.fail()
  assert.deepEqual([read.method, read.target, read.byteLength, read.body.length], ['GET', '/v1/take?key=a', text.length, 0])
  const headers = { host: 'gate.example', authorization: 'Bearer a', 'x-sluicegate-key': '' }
  assert.deepEqual(read.headers, headers)
  assert.deepEqual(readPlainRequest(bytes(text), true)?.headers, { ...headers, 'x-request-id': '7' })
})

test('a body may still be to come: the length counts it', () => {
  const head = 'POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n'
  const read = readPlainRequest(bytes(`${head}0123`), false)
  assert.deepEqual([read?.byteLength, String(read?.body)], [head.length + 10, '0123'])
})

for (const [what, text] of [
  ['an unfinished head', HEAD],
  ['no end of the last line', `${HEAD}\r`],
  ['another method', `${HEAD.replace('GET', 'PUT')}\r\n`],
  ['HTTP/1.0', `${HEAD.replace('1.1', '1.0')}\r\n`],
  ['a whole URL', `${HEAD.replace('/v1', 'http://x/v1')}\r\n`],
  ['a space in the target', `${HEAD.replace('=a', '=a b')}\r\n`],
  ['a byte above ASCII in the target', `${HEAD.replace('=a', '=\xe9')}\r\n`],
  ['a bare line feed', `${HEAD}X: 1\nY: 2\r\n\r\n`],
  ['a bare carriage return', `${HEAD}X: 1\rY: 2\r\n\r\n`],
  ['a line that goes on', `${HEAD}X: 1\r\n 2\r\n\r\n`],
  ['a space before a colon', `${HEAD}X : 1\r\n\r\n`],
  ['a line without a colon', `${HEAD}X\r\n\r\n`],
  ['a line without a name', `${HEAD}: 1\r\n\r\n`],
  ['a zero in a value', `${HEAD}X: \0\r\n\r\n`],
  ['a deletion sign in a value', `${HEAD}X: \x7f\r\n\r\n`],
  ['no Host', 'GET / HTTP/1.1\r\nX: 1\r\n\r\n'],
  ['two Hosts', `${HEAD}host: other\r\n\r\n`],
  ['a Host that is none', `${HEAD.replace('gate.example', 'a/b')}\r\n`],
  ['two keys', `${HEAD}X-Sluicegate-Key: a\r\nx-sluicegate-key: b\r\n\r\n`],
  ['a connection that closes', `${HEAD}Connection: close\r\n\r\n`],
  ['a list of connection options', `${HEAD}Connection: keep-alive, close\r\n\r\n`],
  ['Proxy-Connection', `${HEAD}Proxy-Connection: close\r\n\r\n`],
  ['Transfer-Encoding', `${HEAD}Transfer-Encoding: chunked\r\n\r\n`],
  ['Upgrade', `${HEAD}Upgrade: h2c\r\n\r\n`],
  ['Expect', `${HEAD}Expect: 100-continue\r\n\r\n`],
  ['a GET with a body', `${HEAD}Content-Length: 1\r\n\r\n1`],
  ['a POST without a length', `${HEAD.replace('GET', 'POST')}\r\n`],
  ['two lengths', `${HEAD.replace('GET', 'POST')}Content-Length: 1\r\nContent-Length: 1\r\n\r\n1`],
  ['a list of lengths', `${HEAD.replace('GET', 'POST')}Content-Length: 1, 1\r\n\r\n1`],
  ['a length with a sign', `${HEAD.replace('GET', 'POST')}Content-Length: +1\r\n\r\n1`],
  ['a hexadecimal length', `${HEAD.replace('GET', 'POST')}Content-Length: 0x1\r\n\r\n1`],
  ['a head of more than 8,192 bytes', `${HEAD}Cookie: ${'c'.repeat(8_192)}\r\n\r\n`],
] as const) {
  test(`the parser reads a request with ${what}`, () => {
    assert.equal(readPlainRequest(bytes(text), false), undefined)
    assert.equal(readPlainRequest(bytes(text), true), undefined)
  })
}

/** What Node's server reads from `input`. */
async function parsedByNode(input: Buffer): Promise<{ request: IncomingMessage; body: string }[]> {
  const read: { request: IncomingMessage; body: Promise<string> }[] = []
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    const body = once(request, 'end').then(() => Buffer.concat(chunks).toString('latin1'))
    read.push({ request, body })
    response.end()
  })
  server.maxHeadersCount = 0
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  server.emit('connection', socket)
  socket.push(input)
  for (let turn = 0; turn < 3; turn++) await nextTurn()
  const all = await Promise.all(read.map(async ({ request, body }) => ({ request, body: await body })))
  socket.destroy()
  return all
}

const NEXT = 'GET /next HTTP/1.1\r\nHost: next\r\n\r\n'

/** A request with some of what clients send, damaged or not. */
function requestOf(random: Random): Buffer {
  const one = <Value>(list: readonly Value[]): Value => list[random.integer(0, list.length - 1)] as Value
  const lines = Array.from({ length: random.integer(0, 3) }, () =>
    one([
      `X-Request-Id: ${random.integer(0, 1e9)}`,
      'Authorization: Bearer a',
      'x-sluicegate-KEY:k\xe9',
      'Connection: keep-alive',
      'Connection:KEEP-ALIVE ',
      'Content-Length: 4',
      'Content-Length: 0',
      'content-length:\t04 ',
      'Transfer-Encoding: chunked',
      'Expect: 100-continue',
      'Cookie: a=b; c=d',
      'Accept:',
      'X_y.z|~: \t\xff!',
    ]),
  )
  const [method, body] = one([
    ['GET', ''],
    ['POST', 'a\r\n\r'],
  ])
  if (method === 'POST' && random.integer(0, 3) > 0) lines.push(`Content-Length: ${body.length}`)
  const text = `${method} /${one(['', 'v1/take?key=a', '%zz#"<>`{|}', '?'])} HTTP/1.1\r\nHost: ${one(['a', '[::1]:80', ''])}\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n${body}`
  return random.integer(0, 2) === 0 ? bytes(text) : damaged(random, bytes(text))
}

test('what is plain is read as Node reads it, and the next request begins where it ends', async () => {
  let plain = 0
  for (let seed = 1; seed <= shortOrLong(1_500, 3_000); seed++) {
    const input = requestOf(new Random(seed))
    const read = readPlainRequest(input, true)
    if (read === undefined || read.byteLength > input.length) continue
    plain++
    const [first, next] = await parsedByNode(Buffer.concat([input.subarray(0, read.byteLength), bytes(NEXT)]))
    const what = `seed ${seed}: ${JSON.stringify(input.toString('latin1'))}`
    assert.deepEqual(
      [first?.request.method, first?.request.url, first?.body],
      [read.method, read.target, read.body.toString('latin1')],
      what,
    )
    assert.deepEqual({ ...first?.request.headers }, { ...read.headers }, what)
    assert.equal(next?.request.url, '/next', what)
  }
  assert.ok(plain > shortOrLong(200, 400), `${plain} plain requests`)
})

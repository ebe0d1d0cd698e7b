import assert from 'node:assert/strict'
import { test } from 'node:test'
import { longTest } from 'sluicegate-testkit'
import { connectTo, parseResponse, rawExchange, readToEnd } from 'sluicegate-testkit/service/many-connections.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'

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

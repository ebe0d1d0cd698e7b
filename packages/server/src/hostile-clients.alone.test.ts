import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { manualClock } from 'sluicegate'
import { longTest, shortOrLong, until } from 'sluicegate-testkit'
import { flood } from 'sluicegate-testkit/service/hostile-attacks.js'
import { connectTo, parseResponse, readToEnd } from 'sluicegate-testkit/service/many-connections.js'
import { runService, TWO_POLICIES } from 'sluicegate-testkit/service/running-service.js'
import { type ServiceProcess, serveProcess } from 'sluicegate-testkit/service/sluicegate-process.js'

const MB = 1_048_576
/** A service without attackers has 65 MB. */
const MAX_RSS_BYTES = 300 * MB
const ATTACKERS = shortOrLong(20, 100)
const NEIGHBOUR_ASKS = shortOrLong(8, 40)
const ROUNDS = shortOrLong(2, 3)

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
const pipelined = (path: string, bytes: number): string => get(path).repeat(Math.ceil(bytes / get(path).length))

function connected(t: TestContext, url: string, count: number): Promise<Socket[]> {
  const connect = async (): Promise<Socket> => {
    const socket = await connectTo(url)
    socket.on('error', () => {})
    t.after(() => socket.destroy())
    return socket
  }
  return Promise.all(Array.from({ length: count }, connect))
}

/** A normal client gets every answer, and the service's memory stays bounded meanwhile. */
async function neighbourIsServed(service: ServiceProcess, asks: number = NEIGHBOUR_ASKS): Promise<void> {
  for (let i = 0; i < asks; i++) {
    assert.equal((await fetch(`${service.url}/v1/take?policy=burst&key=neighbour-${i}`)).status, 200)
    const rss = service.rssBytes()
    assert.ok(rss < MAX_RSS_BYTES, `${Math.round(rss / MB)} MB`)
  }
}

/** `npm test` asks the first, `npm run test:long` all. */
const PIPELINED = ['/v1/take?policy=burst&key=a', '/page.js', '/metrics', '/nowhere'].slice(0, shortOrLong(1, 4))

for (const path of PIPELINED) {
  test(`clients that pipeline ${path} and reset leave nothing behind, and others are served meanwhile`, async (t) => {
    const service = await serveProcess(t, TWO_POLICIES)
    let rounds = 0
    const attack = async (): Promise<void> => {
      for (let round = 0; round < ROUNDS; round++) {
        const [socket] = await connected(t, service.url, 1)
        await new Promise((resolve) => socket?.write(pipelined(path, 196_608), resolve))
        socket?.resetAndDestroy()
        rounds++
      }
    }
    await Promise.all([neighbourIsServed(service), ...Array.from({ length: ATTACKERS }, attack)])
    assert.equal(rounds, ROUNDS * ATTACKERS)
    while ((await service.metric('sluicegate_connections')) > 5) await sleep(10)
    assert.ok((await service.metric('sluicegate_requests_in_flight')) <= 1)
    await neighbourIsServed(service, 1)
  })
}

for (const path of ['/events', ...PIPELINED].slice(0, shortOrLong(1, 5))) {
  test(`clients that pipeline ${path} and never read fill no memory, and others are served meanwhile`, async (t) => {
    const service = await serveProcess(t, TWO_POLICIES)
    const attackers = await connected(t, service.url, ATTACKERS)
    for (const socket of attackers) flood(socket, pipelined(path, 65_536))
    await neighbourIsServed(service)
  })
}

longTest('bodies that come in chunks of one byte and do not end fill no memory, and others are served meanwhile', async (t) => {
  // A busy machine takes longer for them than the service waits for a request.
  const service = await serveProcess(t, `${TWO_POLICIES}clients: { request-timeout: 5m }\n`)
  const attackers = await connected(t, service.url, 2 * ATTACKERS)
  const head = 'POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
  const sent = attackers.map((socket) => new Promise((resolve) => socket.write(head + '1\r\n \r\n'.repeat(6_000), resolve)))
  await neighbourIsServed(service)
  await Promise.all(sent)
  // Input that the system has buffered for the attackers arrives gradually.
  await neighbourIsServed(service)
  await until('all bodies are under way', async () => (await service.metric('sluicegate_requests_in_flight')) > attackers.length)
  await neighbourIsServed(service)
})

longTest('large bodies that do not end take bounded memory, and leave room for others when their clients go', async (t) => {
  const service = await serveProcess(t, TWO_POLICIES)
  const length = 500_000
  const head = `POST /v1/batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`
  const attackers = await connected(t, service.url, 400)
  for (const socket of attackers) socket.write(head + ' '.repeat(length - 1))
  await neighbourIsServed(service)
  for (const socket of attackers) socket.destroy()
  while ((await service.metric('sluicegate_connections')) > 5) await sleep(10)
  const body = JSON.stringify({ takes: [{ policy: 'burst', key: 'a' }] }).padEnd(length, ' ')
  const { status } = await fetch(`${service.url}/v1/batch`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  assert.equal(status, 200)
})

longTest('a new client behind many that pipeline is answered long before they are', async (t) => {
  const service = await serveProcess(t, TWO_POLICIES)
  // All of them are there, with their requests, before the service sees the first one.
  service.child.kill('SIGSTOP')
  const attackers = await connected(t, service.url, 2 * ATTACKERS)
  const requests = get('/v1/take?policy=burst&key=a').repeat(900)
  await Promise.all(attackers.map((socket) => new Promise((resolve) => socket.write(requests, resolve))))
  const decisions = service.metric('sluicegate_decisions_total', { policy: 'burst', outcome: 'denied' })
  await connected(t, service.url, 1)
  service.child.kill('SIGCONT')
  const before = await decisions
  assert.ok(before < 200 * ATTACKERS, `${before} requests of others were answered before`)
})

longTest('a client that leaves an answer unread is disconnected', async (t) => {
  const { url, connections } = await runService(t, undefined, { clients: { readMs: 200 } })
  const attackers = await connected(t, url, 3)
  for (const socket of attackers) flood(socket, pipelined('/page.js', 65_536))
  while (connections.open > 0) await sleep(5)
  assert.deepEqual(connections.cuts, { refused: 0, evicted: 0, unread: 3, held: 0 })
  assert.equal(connections.inFlight, 0)
})

test('a connection has one request answered at a time, and no more is read than the next chunk', async (t) => {
  const { url, connections } = await runService(t)
  const attackers = await connected(t, url, 20)
  for (const socket of attackers) flood(socket, pipelined('/page.js', 65_536))
  for (let i = 0; i < 50; i++) {
    await (await fetch(`${url}/livez`)).text()
    assert.ok(connections.inFlight <= attackers.length + 1)
    assert.ok(connections.heldBytes <= (attackers.length + 1) * 65_536, `${connections.heldBytes} bytes are held`)
  }
  assert.ok(connections.heldBytes > 0)
  for (const socket of attackers) socket.resetAndDestroy()
  // The rest belongs to the normal client, which sends nothing.
  while (connections.heldBytes > 0) await sleep(5)
  assert.ok(connections.open < attackers.length)
})

test('thousands of requests in one write are all answered in order, even if the client sends nothing more', async (t) => {
  const requests = shortOrLong(2_000, 10_000)
  const { url } = await runService(t, TWO_POLICIES.replaceAll('100', '10000'), { clock: manualClock(0) })
  const socket = await connectTo(url)
  const answers = readToEnd(socket)
  socket.end(get('/v1/take?policy=burst&key=a').repeat(requests))
  const remaining = Array.from((await answers).matchAll(/"remaining":(\d+)/g), ([, tokens]) => Number(tokens))
  assert.deepEqual(
    remaining,
    Array.from({ length: requests }, (_, i) => 9_999 - i),
  )
})

longTest('posts with bodies in one write are all answered, wherever they are split', async (t) => {
  const { url } = await runService(t)
  const body = JSON.stringify({ policy: 'burst', key: 'x'.repeat(900) })
  const post = `POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const bytes = post.repeat(20)
  for (const step of [bytes.length, 1_000, 7]) {
    const socket = await connectTo(url)
    const answers = readToEnd(socket)
    for (let at = 0; at < bytes.length; at += step) {
      if (!socket.write(bytes.slice(at, at + step))) await new Promise((resolve) => socket.once('drain', resolve))
    }
    socket.end()
    assert.equal((await answers).match(/"allowed"/g)?.length, 20, `${step} bytes at a time`)
  }
})

longTest('invalid HTTP behind valid requests is refused after their answers', async (t) => {
  const { url } = await runService(t)
  const socket = await connectTo(url)
  socket.write(`${get('/metrics')}${get('/livez')}no HTTP at all\r\n\r\n`)
  const statuses = Array.from((await readToEnd(socket)).matchAll(/HTTP\/1\.1 (\d+)/g), ([, status]) => status)
  assert.deepEqual(statuses, ['200', '200', '400'])
})

longTest('hundreds of idle connections and others that send their headers byte by byte delay no other client', async (t) => {
  const service = await serveProcess(t, TWO_POLICIES)
  const idle = await connected(t, service.url, shortOrLong(200, 1_000))
  const slow = await connected(t, service.url, shortOrLong(100, 500))
  let sent = 0
  const trickle = setInterval(() => {
    for (const socket of slow) socket.write('GET /livez HTTP/1.1\r\nHost: '[sent] ?? 'x')
    sent++
  }, 20)
  t.after(() => clearInterval(trickle))
  await neighbourIsServed(service)
  assert.equal(await service.metric('sluicegate_connections_cut_total', { reason: 'refused' }), 0)
  assert.equal(idle.length, shortOrLong(200, 1_000))
})

test('without a free place, the connection that has been idle longest is closed', async (t) => {
  const { url, connections } = await runService(t, undefined, { clients: { maxConnections: 10, maxConnectionsPerAddress: 10 } })
  const sockets = await connected(t, url, 10)
  const [first, second] = sockets as [Socket, Socket]
  // The first one has done something since.
  first.write(get('/livez'))
  await new Promise((resolve) => first.once('data', resolve))
  const secondEnds = readToEnd(second)
  const [newcomer] = (await connected(t, url, 1)) as [Socket]
  newcomer.write(get('/livez'))
  assert.match(String(await new Promise((resolve) => newcomer.once('data', resolve))), /^HTTP\/1\.1 200/)
  assert.equal(await secondEnds, '')
  assert.equal(connections.cuts.evicted, 1)
  assert.equal(connections.open, 10)
})

test('without a free place, a request whose body does not arrive is closed before a new connection is refused', async (t) => {
  const { url, connections } = await runService(t, undefined, { clients: { maxConnections: 4, maxConnectionsPerAddress: 4 } })
  const slow = await connected(t, url, 4)
  const head = 'POST /v1/take HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{'
  for (const socket of slow) socket.write(head)
  while (connections.inFlight < 4) await sleep(1)
  const newcomers = (await connected(t, url, 2)) as [Socket, Socket]
  while (connections.cuts.evicted < 2) await sleep(1)
  for (const newcomer of newcomers) {
    newcomer.write(get('/livez'))
    assert.match(String(await new Promise((resolve) => newcomer.once('data', resolve))), /^HTTP\/1\.1 200/)
  }
  assert.equal(connections.cuts.refused, 0)
})

longTest('without a free place and with all connections busy, a new one is refused with 503 and Retry-After', async (t) => {
  const { url, connections } = await runService(t, undefined, { clients: { maxConnections: 10, maxConnectionsPerAddress: 4 } })
  const busy = await connected(t, url, 4)
  for (const socket of busy) socket.write(get('/events'))
  while (connections.inFlight < 4) await sleep(1)
  const [newcomer] = (await connected(t, url, 1)) as [Socket]
  const answer = readToEnd(newcomer)
  newcomer.write(get('/livez'))
  const { status, headers, body } = parseResponse(await answer)
  assert.deepEqual([status, headers.get('retry-after'), headers.get('connection')], [503, '1', 'close'])
  assert.equal(JSON.parse(body).code, 'BUSY')
  assert.equal(connections.cuts.refused, 1)
  // A connection without a request is closed as well.
  const [silent] = (await connected(t, url, 1)) as [Socket]
  assert.equal(await readToEnd(silent), '')
  busy[0]?.destroy()
  while (connections.inFlight === 4) await sleep(1)
  const [next] = (await connected(t, url, 1)) as [Socket]
  next.write(get('/livez'))
  assert.match(String(await new Promise((resolve) => next.once('data', resolve))), /^HTTP\/1\.1 200/)
})

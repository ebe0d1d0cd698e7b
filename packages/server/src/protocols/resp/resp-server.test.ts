import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { manualClock } from 'sluicegate'
import { shortOrLong, until } from 'sluicegate-testkit'
import { commandBytes, repliesIn } from 'sluicegate-testkit/servers/resp.js'
import { OPEN_ACCESS, received, runningResp } from 'sluicegate-testkit/service/running-resp.js'

const PING = commandBytes('PING')

test('ten thousand commands in one write are answered in order, also to a client that closes its side', async (t) => {
  const { open } = await runningResp(t, { clock: manualClock(1.7e12) })
  const client = open()
  client.end(Buffer.concat(Array.from({ length: 10_000 }, (_, i) => commandBytes('ECHO', i))))
  const replies = repliesIn(Buffer.from(await received(client), 'latin1'))
  assert.deepEqual(
    replies,
    Array.from({ length: 10_000 }, (_, i) => String(i)),
  )
})

test('a command that arrives byte by byte is answered', async (t) => {
  const { open } = await runningResp(t)
  const client = open()
  client.setNoDelay(true)
  for (const byte of commandBytes('ECHO', 'slow')) {
    client.write(Buffer.from([byte]))
    await new Promise(setImmediate)
  }
  assert.equal(await received(client, (text) => text.endsWith('slow\r\n')), '$4\r\nslow\r\n')
})

test('a Unix socket is served, without a bound for each address', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'resp.sock')
  const { open, server } = await runningResp(t, { path, bounds: { maxConnectionsPerAddress: 1 } })
  for (const client of [open(), open()]) {
    client.write(PING)
    assert.equal(await received(client, (text) => text.length > 0), '+PONG\r\n')
  }
  assert.deepEqual(server.connections.cuts.refused, 0)
  await server.stop(1_000)
  assert.equal(existsSync(path), false)
})

test('a client that does not read its replies is not read any more, and cut off after the time to read', async (t) => {
  const { open, server } = await runningResp(t, { bounds: { readMs: 200 } })
  const client = open()
  client.pause()
  const echo = commandBytes('ECHO', 'x'.repeat(16_000))
  const write = (): void => {
    if (!client.destroyed) client.write(echo, () => setImmediate(write))
  }
  write()
  await until('the client is cut off', () => server.connections.cuts.unread === 1)
  assert.equal(server.connections.open, 0)
  assert.equal(server.connections.heldBytes, 0)
})

test('a command that stays incomplete, and a client that does not authenticate, are cut off', async (t) => {
  const { open, server } = await runningResp(t, { bounds: { requestMs: 150, readMs: 100 } })
  const slow = open()
  slow.write('*2\r\n$4\r\nEC')
  const idle = open()
  idle.write(PING)
  await received(idle, (text) => text.length > 0)
  await until('the command is cut off', () => server.connections.cuts.slow === 1)
  assert.equal(server.connections.open, 1, 'an idle connection stays')

  const other = await runningResp(t, {
    access: { ...OPEN_ACCESS, needsToken: () => true },
    bounds: { headersMs: 100, readMs: 100 },
  })
  other.open()
  await until('the client without a token is cut off', () => other.server.connections.cuts.slow === 1)
})

test('a client that keeps its side open after an error of the protocol is cut off after the time to read', async (t) => {
  const { server, port } = await runningResp(t, { bounds: { readMs: 200 } })
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  t.after(() => client.destroy())
  client.on('error', () => undefined)
  client.write('*3\r\n$99999999999\r\n')
  assert.match(await received(client, (text) => text.endsWith('\r\n')), /^-ERR Protocol error: /)
  await until('the client is cut off', () => server.connections.open === 0)
  assert.equal(server.connections.cuts.unread, 1)
})

test('the longest idle connection makes room for a new one, of its own address first', async (t) => {
  const { open, server } = await runningResp(t, { bounds: { maxConnections: 3, maxConnectionsPerAddress: 2 } })
  const [first, second] = [open(), open()]
  await served(first)
  await served(second)
  await served(first)
  const third = open()
  await served(third)
  await until('the second is evicted', () => second.closed)
  assert.equal(server.connections.cuts.evicted, 1)
  await served(first)
})

test('when no connection is idle a new one is refused with the words of Redis', async (t) => {
  const { open, server } = await runningResp(t, { bounds: { maxConnections: 1, maxConnectionsPerAddress: 1 } })
  const busy = open()
  busy.write('*1\r\n')
  await until('the connection is there', () => server.connections.open === 1)
  // Its input has arrived when another command of it has been answered.
  busy.write('$4\r\nPING\r\n*1\r\n')
  await received(busy, (text) => text.length > 0)
  assert.equal(await received(open()), '-ERR max number of clients reached\r\n')
  assert.equal(server.connections.cuts.refused, 1)
})

test('hundreds of idle connections and one that sends half commands leave the others served', async (t) => {
  const { open, server } = await runningResp(t)
  const count = shortOrLong(200, 1_000)
  const idle = Array.from({ length: count }, () => open())
  await until('all connections are there', () => server.connections.open === count)
  for (const socket of idle.slice(0, count / 2)) socket.write('*3\r\n$11\r\nCL.THROT')
  const client = open()
  for (let i = 0; i < 100; i++) await served(client)
  await until('all halves of commands are held', () => server.connections.heldBytes === (count / 2) * 512)
})

test('a stopping server answers what has arrived, and closes connections when they are quiet', async (t) => {
  const { open, server } = await runningResp(t)
  const clients = [open(), open(), open()]
  for (const client of clients) await served(client)
  const stopped = server.stop(5_000)
  const last = clients[0] as Socket
  last.write(PING)
  assert.equal(await received(last), '+PONG\r\n')
  await stopped
  assert.equal(server.connections.open, 0)
})

test('a client that never is quiet has an answer to each command that a stopping server decided', async (t) => {
  const { open, server, engine } = await runningResp(t)
  const client = open()
  let answers = 0
  client.on('data', (replies: Buffer) => {
    answers += replies.toString().split('*5').length - 1
    client.write(commandBytes('CL.THROTTLE', 'a', 1_000_000, 1_000_000, 1))
  })
  client.write(commandBytes('CL.THROTTLE', 'a', 1_000_000, 1_000_000, 1))
  await until('it is served', () => answers > 10)
  const ended = once(client, 'end')
  await server.stop(400)
  await ended
  assert.equal(engine.callRates.counts.allowed, answers)
})

test('a page of another site cannot make a browser spend tokens', async (t) => {
  const { open, engine } = await runningResp(t)
  const client = open()
  client.write('POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\nCL.THROTTLE victim 1 1 1\r\n')
  assert.equal(await received(client), '')
  assert.equal(engine.callRates.counts.allowed, 0)
})

async function served(client: Socket): Promise<void> {
  client.write(PING)
  assert.equal(await received(client, (text) => text.length > 0), '+PONG\r\n')
}

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { connectTo } from 'sluicegate-testkit/service/many-connections.js'
import { aGuard } from 'sluicegate-testkit/service/running-service.js'
import { Stream } from './stream.js'

/** A stream with one reader, and a turn of sending: a long message, and time for the sockets. */
async function setUp(t: TestContext) {
  const stream = new Stream(aGuard())
  const server = createServer((_, response) => stream.add(response, {}, 'first')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = await connectTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.after(() => {
    socket.destroy()
    server.close()
  })
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  while (!stream.isRead) await setImmediate()
  const turn = async (): Promise<void> => {
    stream.send('x'.repeat(1_000_000))
    await setImmediate()
  }
  return { stream, socket, turn }
}

test('a reader that never reads is disconnected', async (t) => {
  const { stream, turn } = await setUp(t)
  for (let turns = 0; stream.isRead; turns++) {
    await turn()
    assert.ok(turns < 1_000, 'it is still there')
  }
})

test('a reader that reads stays, however long the messages', async (t) => {
  const { stream, socket, turn } = await setUp(t)
  let bytes = 0
  socket.on('data', (chunk) => {
    bytes += chunk.length
  })
  for (let sent = 0; bytes < 50_000_000; sent++) {
    const before = bytes
    await turn()
    while (bytes < before + 500_000) await setImmediate()
    assert.ok(sent < 1_000)
  }
  assert.ok(stream.isRead)
})

import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { test } from 'node:test'
import { exchange, exchangeWalk, LightSocket } from './exchange.js'

test('a listener finds a request as Node has it, and the exchange ends with its response', async () => {
  const seen: unknown[] = []
  const listener: RequestListener = ({ method, url, headers, socket }, response) => {
    seen.push(method, url, headers.host, socket.remoteAddress, socket.remoteFamily)
    response.statusCode = 429
    response.end('later')
  }
  assert.equal(await exchange(listener, new LightSocket('203.0.113.7')), 429)
  assert.deepEqual(seen, ['GET', '/', 'localhost:3000', '203.0.113.7', 'IPv4'])
})

test('a connection serves one request after another, and nothing of them stays with it', async () => {
  const connection = new LightSocket('2001:db8::1')
  const before = connection.eventNames().map((name) => [name, connection.listenerCount(name)])
  for (let i = 0; i < 100; i++) {
    const status = await exchange((_, response) => {
      setImmediate(() => response.end('ok'))
    }, connection)
    assert.equal(status, 200)
  }
  assert.deepEqual(
    connection.eventNames().map((name) => [name, connection.listenerCount(name)]),
    before,
  )
})

test('a walk tells how many of its requests passed, and comes to every connection', async () => {
  const asked = new Map<string | undefined, number>()
  const walk = exchangeWalk(
    ({ socket: { remoteAddress } }, response) => {
      asked.set(remoteAddress, (asked.get(remoteAddress) ?? 0) + 1)
      response.statusCode = remoteAddress === '10.0.0.1' ? 200 : 403
      response.end()
    },
    ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => new LightSocket(address)),
  )
  const allowed = await walk(300)
  assert.equal(asked.size, 3)
  assert.equal(allowed, asked.get('10.0.0.1'))
})

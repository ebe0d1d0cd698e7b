import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import { tokenBucket } from '../policy/single-policy.js'
import { redis } from './redis.js'
import { runnerFor } from './runner-for.js'

/** As version 3 of node-redis looks. */
class CallbackClient {
  connected = true
  send_command(): boolean {
    return true
  }
  sendCommand(): boolean {
    return true
  }
  internal_send_command(): boolean {
    return true
  }
}

const WRONG: readonly (readonly [name: string, client: unknown])[] = [
  ['nothing', undefined],
  ['null', null],
  ['an empty object', {}],
  ['a URL', 'redis://127.0.0.1:6379'],
  ['a port', 6379],
  ['a Map', new Map()],
  ['a client of callbacks', new CallbackClient()],
  ['a client that is yet to come', Promise.resolve({})],
  ['a class instead of its instance', CallbackClient],
]

for (const [name, client] of WRONG) {
  test(`${name} is no client`, () => {
    assert.throws(
      () => runnerFor(client),
      (error) => error instanceof PolicyError && error.code === 'CLIENT_INVALID' && error.option === 'client' && error.value === client,
    )
    assert.throws(
      () => createLimiter(tokenBucket({ limit: 1, window: '1s' }), { store: redis(client as never) }),
      /^PolicyError: client: must be (a client|newer)/,
    )
  })
}

test('the message names the clients that would do', () => {
  const message =
    /redis \(4\.7 or later\) or @redis\/client, ioredis \(4\.31 or later\) or @valkey\/valkey-glide \(2 or later\).*\(got a string|\(got "redis/
  assert.throws(() => runnerFor('redis://127.0.0.1:6379'), message)
})

test('a client of an older version is refused by what to install', () => {
  assert.throws(() => runnerFor(new CallbackClient()), /must be newer: this is node-redis 3 or older.*npm install redis@5/)
  const ioredis418 = { sendCommand() {}, call() {}, send_command() {}, status: 'ready' }
  assert.throws(() => runnerFor(ioredis418), /must be newer:.*ioredis 4\.18 or older.*ioredis@5/)
})

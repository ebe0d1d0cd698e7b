import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ClientClosedError,
  ClientOfflineError,
  createClient,
  RootNodesUnavailableError,
  SocketClosedUnexpectedlyError,
} from '@redis/client'
import { ClosingError, ConnectionError, RequestError } from '@valkey/valkey-glide'
import { Redis } from 'ioredis'
import pg from 'pg'
import postgres from 'postgres'
import { freePorts } from 'sluicegate-testkit'
import { StoreError } from '../../errors.js'
import { isUnconnected } from './unconnected.js'

async function errorOf(call: () => Promise<unknown>): Promise<unknown> {
  return call().then(
    () => undefined,
    (error: unknown) => error,
  )
}

test('each client says by its error that it is not connected', async () => {
  const [port = 0] = await freePorts(1)
  const at = { port, host: '127.0.0.1' }
  const clients = [
    new Redis({ ...at, enableOfflineQueue: false }),
    new Redis({ ...at, retryStrategy: null }),
    new Redis({ ...at, maxRetriesPerRequest: 0 }),
  ]
  for (const client of clients) client.on('error', () => undefined)
  const sql = postgres({ ...at, max: 1 })
  const ended = postgres(at)
  await ended.end()
  const errors = await Promise.all([
    errorOf(() => createClient().sendCommand(['PING'])),
    ...clients.map((client) => errorOf(() => client.call('PING'))),
    errorOf(() => new pg.Pool(at).query('SELECT 1')),
    errorOf(() => sql`SELECT 1`),
    errorOf(() => ended`SELECT 1`),
    new ClientOfflineError(),
    new ClientClosedError(),
    new SocketClosedUnexpectedlyError(),
    new RootNodesUnavailableError(),
    new ClosingError('the connection was closed'),
    new ConnectionError('disconnected'),
  ])
  for (const client of clients) client.disconnect()
  await sql.end({ timeout: 0 })
  for (const error of errors) {
    assert.ok(isUnconnected(error), String(error))
    assert.ok(isUnconnected(new StoreError('OUTAGE', 'the store failed', { cause: error })))
  }
})

test('what a server answers, and a time-out, is none of it', () => {
  for (const error of [
    undefined,
    'text',
    new Error('OOM command not allowed'),
    new RequestError('NOPERM'),
    new Error('no answer within 100 ms'),
  ])
    assert.equal(isUnconnected(error), false, String(error))
  const circle = new Error('around')
  circle.cause = circle
  assert.equal(isUnconnected(circle), false)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClientPool } from '@redis/client'
import { RedisProcess } from 'sluicegate-testkit'
import { nodeRedisRunner } from './node-redis.js'

const TAKES = 200

test('a burst at a pool that has one connection open is answered by a few, and opens no more than it needs', async (t) => {
  await using server = await RedisProcess.start()
  const pool = createClientPool({ url: server.url }, { minimum: 1, maximum: 100 })
  pool.on('error', () => undefined)
  t.after(() => pool.destroy())
  await pool.connect()
  const runner = nodeRedisRunner(pool as never)
  const order: number[] = []
  const answers = Array.from({ length: TAKES }, (_, i) => runner.send('k', ['ECHO', String(i)]).then((reply) => order.push(Number(reply))))
  assert.ok(pool.totalClients <= 8, `${pool.totalClients} at once`)
  const givenUp = { aborted: true, addEventListener: () => undefined, removeEventListener: () => undefined }
  await assert.rejects(runner.send('k', ['SET', 'late', '1'], givenUp), /given up/)
  await Promise.all(answers)
  assert.equal(new Set(order).size, TAKES)
  assert.equal(await runner.send('k', ['EXISTS', 'late']), 0)
  // Each of a next burst has its connection by then, or one of the first eight.
  await Promise.all(Array.from({ length: TAKES }, () => runner.send('k', ['PING'])))
})

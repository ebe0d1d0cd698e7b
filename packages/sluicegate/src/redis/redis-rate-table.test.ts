import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createClient } from '@redis/client'
import { Random, RedisCell, shortOrLong } from 'sluicegate-testkit'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { type RandomCall, randomCalls } from 'sluicegate-testkit/twins/compare-twins.js'
import { createRateTable } from '../rate-table/create-rate-table.js'
import { createRedisRateTable, rateTableOver } from './redis-rate-table.js'

const HISTORIES = shortOrLong(50, 150)
const SEED = 20_261
const PATIENT_MS = 30_000
const RATE = { maxBurst: 15, count: 30, periodS: 60 }

const redis = await ownRedis()
after(() => redis.stop())

test('random calls decide in Redis as redis-cell does, in all five numbers', async () => {
  const runner = new GivenTime(redis.runner)
  const table = rateTableOver(runner, { prefix: 'oracle', timeout: PATIENT_MS })
  const cell = new RedisCell()
  for (let history = 0; history < HISTORIES; history++) {
    const calls = randomCalls(new Random(SEED + history))
    for (const [i, { rate, quantity, nowUs }] of calls.entries()) {
      runner.nowUs = nowUs
      const expected = cell.throttle(`key ${history}`, { ...rate, quantity, nowNs: BigInt(nowUs) * 1000n })
      const { limited, limit, remaining, retryAfterS, resetAfterS } = await table.throttle(`key ${history}`, rate, quantity)
      const [cellLimited, cellLimit, cellRemaining, ...times] = expected ?? assert.fail()
      assert.deepEqual(
        [limited ? 1 : 0, limit, remaining, retryAfterS, resetAfterS],
        [cellLimited, cellLimit, Math.max(0, Math.min(cellRemaining, cellLimit)), ...times],
        `seed ${SEED + history}: ${JSON.stringify(calls.slice(0, i + 1) satisfies RandomCall[])}`,
      )
    }
  }
  assert.equal(table.outageDecisions, 0)
})

test('processes share a key, which never expires before its time', async (t) => {
  const clients = await Promise.all([1, 2].map(() => createClient({ url: redis.server.url }).connect()))
  t.after(() => {
    for (const client of clients) client.destroy()
  })
  const [one, two] = clients.map((client) => createRedisRateTable({ client, prefix: 'shared', timeout: PATIENT_MS }))
  for (let call = 0; call < 8; call++) {
    assert.equal((await one?.throttle('k', RATE))?.limited, false)
    assert.equal((await two?.throttle('k', RATE))?.limited, false)
  }
  assert.equal((await one?.throttle('k', RATE))?.limited, true)
  const [, leftMs] = [await two?.throttle('k', RATE, 0), Number(await redis.send('PTTL', 'shared:call::{k}'))]
  assert.ok(leftMs > 30_000 && leftMs <= 32_002, `${leftMs} ms`)
  one?.close()
  await assert.rejects(async () => one?.throttle('k', RATE), { code: 'CLOSED' })
  await assert.rejects(async () => two?.throttle('k', { ...RATE, count: 0 }), { code: 'LIMIT_INVALID' })
})

test('in an outage, and for a damaged key, the option decides', async (t) => {
  const client = createClient({ url: redis.server.url, disableOfflineQueue: true })
  client.on('error', () => undefined)
  await client.connect()
  t.after(() => client.destroy())
  await redis.send('SET', 'out:call::{damaged}', 'x')
  await redis.send('LPUSH', 'out:call::{list}', 'x')
  const of = (outage: 'local' | 'open' | 'closed') => createRedisRateTable({ client, prefix: 'out', outage, timeout: PATIENT_MS })
  for (const key of ['damaged', 'list']) {
    assert.equal((await of('open').throttle(key, RATE)).limited, false)
    assert.equal((await of('closed').throttle(key, RATE)).limited, true)
  }
  const local = of('local')
  // A tenth of 16 at once: one.
  assert.deepEqual(await local.throttle('list', RATE), { limited: false, limit: 16, remaining: 0, retryAfterS: -1, resetAfterS: 20 })
  assert.equal((await local.throttle('list', RATE)).retryAfterS, 20)
  assert.equal(local.outageDecisions, 2)
  assert.equal((await local.throttle('sound', RATE)).remaining, 15)
})

test('the tables in memory and in Redis have the same defaults for a call', async () => {
  const table = rateTableOver(redis.runner, { prefix: 'alike', timeout: PATIENT_MS })
  using memory = createRateTable()
  assert.deepEqual(await table.throttle('k', RATE), memory.throttle('k', RATE))
})

test('the list of denied keys has those of calls in Redis and of outages', async () => {
  const table = rateTableOver(redis.runner, { prefix: 'hot', timeout: PATIENT_MS, outage: 'closed', hotKeys: 10 })
  await redis.send('SET', 'hot:call::{damaged}', 'x')
  for (const key of ['denied', 'allowed', 'denied', 'damaged']) await table.throttle(key, { ...RATE, maxBurst: 0 })
  await table.throttle('looked at', RATE, 0)
  const { demand, denials } = table.hotKeys()
  assert.deepEqual(
    [demand, denials].map((list) => list.map(({ key, count }) => `${key} ${count}`).sort()),
    [
      ['allowed 1', 'damaged 1', 'denied 2'],
      ['damaged 1', 'denied 1'],
    ],
  )
})

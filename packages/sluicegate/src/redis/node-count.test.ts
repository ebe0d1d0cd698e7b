import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { longTest, Random, RedisCluster, type RedisProcess, shortOrLong, until } from 'sluicegate-testkit'
import { NodeSet } from 'sluicegate-testkit/outage/node-set.js'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { type OwnRedis, ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { CLUSTER_CLIENTS, clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import { allOf } from '../policy/all-of.js'
import { concurrency, tokenBucket } from '../policy/single-policy.js'
import { newNodeId } from '../shared/outage/local-share.js'
import { countNodes } from './node-count.js'
import { redis as redisStore } from './redis.js'
import { RedisKeys } from './redis-keys.js'
import { createRedisRateTable } from './redis-rate-table.js'

const KEYS = new RedisKeys('count')
const BUCKET = tokenBucket({ limit: 100, window: '1s', name: 'bucket' })

let redis: OwnRedis
let server: RedisProcess
let cluster: RedisCluster
before(async () => {
  redis = await ownRedis()
  server = redis.server
  cluster = await RedisCluster.start({ replicas: 0 })
})
after(() => Promise.all([redis.stop(), cluster.stop()]))

longTest('the script counts as its twin does, at any times, also of a clock that steps', async () => {
  const time = new GivenTime(redis.runner)
  const random = new Random(7)
  for (let round = 0; round < shortOrLong(4, 10); round++) {
    const twin = new NodeSet()
    let nowUs = 1_700_000_000_000_000
    for (let i = 0; i < 60; i++) {
      nowUs += random.chance(0.05) ? random.integer(-400_000_000, 400_000_000) : random.magnitude(1, 100_000_000)
      time.nowUs = nowUs
      const id = String(random.integer(0, 20))
      assert.equal(await countNodes(time, KEYS, [`twin ${round}`], id), twin.count(nowUs, id), `step ${i} of round ${round}`)
    }
  }
})

test('a client that gives itself 12,000 ids costs a bounded memory, and a node with an id is still counted', async () => {
  await countNodes(redis.runner, KEYS, ['hostile'], 'mine')
  const counts: number[] = []
  for (let i = 0; i < 24; i++) {
    const ids = Array.from({ length: 500 }, newNodeId)
    counts.push(...(await Promise.all(ids.map((id) => countNodes(redis.runner, KEYS, ['hostile'], id)))))
  }
  assert.deepEqual([counts.at(-1), await countNodes(redis.runner, KEYS, ['hostile'], 'mine')], [10_000, 10_000])
  const bytes = await redis.send('MEMORY', 'USAGE', 'count:nodes:hostile', 'SAMPLES', '0')
  assert.ok(Number(bytes) < 1.5e6, `${bytes} bytes`)
})

for (const [kinds, where] of [
  [SERVER_CLIENTS, () => [server]],
  [CLUSTER_CLIENTS, () => cluster.roots],
] as const) {
  for (const kind of clientsForRun(kinds)) {
    test(`${kind.name}: limiters of all forms learn how many share their policy, two in one process count as two`, async () => {
      await using open = await kind.open(where())
      const { client } = open
      const options = { store: redisStore(client, { prefix: kind.name }), timeout: 5_000 }
      const both = allOf([tokenBucket({ limit: 5, window: '1s', name: 'one' }), BUCKET])
      const limiters = [
        createLimiter(BUCKET, options),
        createLimiter(BUCKET, { ...options, mode: 'exact' }),
        createLimiter(both, { ...options, store: redisStore(client, { prefix: kind.name, hashTag: 'x' }) }),
        createLimiter(concurrency({ limit: 5, name: 'places' }), options),
      ]
      for (const limiter of limiters) {
        await limiter.take('k')
        await until('it is counted', async () => limiter.stats().nodes > 0)
      }
      assert.deepEqual(
        limiters.map((limiter) => limiter.stats().nodes),
        [1, 2, 3, 1],
      )
      assert.deepEqual(
        limiters.map((limiter) => limiter.stats().share),
        [0.1, 0.1, 0.1, 0.1],
      )
      const given = createLimiter(BUCKET, { ...options, share: 0.5 })
      await given.take('k')
      assert.deepEqual([given.stats().nodes, given.stats().share], [0, 0.5])
    })
  }
}

test('tiers and policies of single keys under one name are one node: a key is decided by one of them', async () => {
  const raised = tokenBucket({ limit: 200, window: '1s', name: 'bucket' })
  const policyFor = (key: string) => (key === 'raised' ? raised : undefined)
  const limiter = createLimiter(BUCKET, { store: redisStore(redis.client, { prefix: 'tiers' }), mode: 'exact', policyFor })
  await limiter.take('a')
  await limiter.take('raised')
  await until('it is counted', async () => limiter.stats().nodes > 0)
  assert.equal(await redis.send('ZCARD', 'tiers:nodes:bucket'), 1)
})

test('another kind of value under the name, or no right to it, is no failure: the share stays a tenth', async () => {
  await redis.send('SET', 'wrong:nodes:bucket', 'x')
  const limiter = createLimiter(BUCKET, { store: redisStore(redis.client, { prefix: 'wrong' }), mode: 'exact' })
  for (let i = 0; i < 3; i++) assert.equal((await limiter.take('a')).source, 'store')
  const { nodes, share, storeFailures, openCircuits } = limiter.stats()
  assert.deepEqual([nodes, share, storeFailures, openCircuits], [0, 0.1, 0, 0])
})

test('scripts that the server forgot, and data that it lost, do not make the count collapse', async () => {
  const limiters = Array.from({ length: 12 }, () =>
    createLimiter(BUCKET, { store: redisStore(redis.client, { prefix: 'lost' }), mode: 'exact', timeout: 5_000 }),
  )
  for (const limiter of limiters) {
    await limiter.take('a')
    await until('it is counted', async () => limiter.stats().nodes > 0)
  }
  const last = limiters.at(-1)
  assert.equal(last?.stats().nodes, 12)
  await redis.send('SCRIPT', 'FLUSH')
  await redis.send('FLUSHALL')
  await until('it is counted again', async () => {
    await last?.take('a')
    return (await redis.send('ZCARD', 'lost:nodes:bucket')) === 1
  })
  assert.equal(last?.stats().nodes, 12)
})

test('tables whose rates come with the calls share by their number too', async () => {
  const rate = { maxBurst: 99, count: 100, periodS: 60 }
  const tables = Array.from({ length: 25 }, () => createRedisRateTable({ client: redis.client, prefix: 'tables' }))
  for (const table of tables) await table.throttle('a', rate)
  await until('all are counted', async () => (await redis.send('ZCARD', 'tables:nodes:')) === 25)
})

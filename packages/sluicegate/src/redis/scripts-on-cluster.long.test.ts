import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { RedisCluster, SlotMove } from 'sluicegate-testkit'
import { CLUSTER_CLIENTS, clientsForRun, NO_HASTE } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow } from '../policy/single-policy.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { redis } from './redis.js'
import { hashSlot } from './redis-keys.js'

let cluster: RedisCluster
before(async () => {
  cluster = await RedisCluster.start({ replicas: 1 })
})
after(() => cluster.stop())

const policy = fixedWindow({ limit: 1000, window: '1d', name: 'day' })
const KEYS = Array.from({ length: 30 }, (_, i) => `user:${i}`)

/** What was spent of each key, after one more take. */
async function spent(limiter: SharedLimiter): Promise<number[]> {
  const decisions = await Promise.all(KEYS.map((key) => limiter.take(key)))
  for (const { source } of decisions) assert.equal(source, 'store')
  return decisions.map(({ remaining }) => 1000 - remaining)
}

const each = (count: number): number[] => KEYS.map(() => count)

/** Each fails all primaries over, which takes seconds. */
for (const kind of CLUSTER_CLIENTS) {
  test(`with ${kind.name} every shard gets the scripts that it forgot, and those it never had after a failover`, async () => {
    await using open = await kind.open(cluster.roots)
    const limiter = createLimiter(policy, { store: redis(open.client, { prefix: kind.name }), ...NO_HASTE })
    assert.deepEqual(await spent(limiter), each(1))
    await Promise.all(cluster.nodes.map((node) => node.ask('SCRIPT', 'FLUSH')))
    assert.deepEqual(await spent(limiter), each(2))
    for (const primary of await cluster.primaries()) await cluster.failOver(primary)
    assert.deepEqual(await spent(limiter), each(3))
  })
}

test('a shard that joins later gets the scripts with its first key', async () => {
  const joined = await cluster.join()
  for (const [i, kind] of clientsForRun(CLUSTER_CLIENTS).entries()) {
    await using open = await kind.open(cluster.roots)
    const limiter = createLimiter(policy, { store: redis(open.client, { prefix: 'joined' }), ...NO_HASTE })
    const key = `joiner:${i}`
    assert.equal((await limiter.take(key)).remaining, 999)
    const move = await SlotMove.begin(cluster, hashSlot(key), joined)
    await move.moveKeys()
    await move.end()
    await joined.ask('SCRIPT', 'FLUSH')
    const { remaining, source } = await limiter.take(key)
    assert.deepEqual({ remaining, source }, { remaining: 998, source: 'store' })
  }
})

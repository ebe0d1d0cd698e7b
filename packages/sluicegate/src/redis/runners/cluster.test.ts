import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCluster } from '@redis/client'
import { longTest, type RedisProcess, SlotMove, until } from 'sluicegate-testkit'
import { clusterOfFile } from 'sluicegate-testkit/redis/own-redis.js'
import { CLUSTER_CLIENTS, clientsForRun, librariesForRun, NO_HASTE } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../../create-limiter.js'
import { allOf } from '../../policy/all-of.js'
import { fixedWindow, gcra } from '../../policy/single-policy.js'
import { redis } from '../redis.js'
import { hashSlot } from '../redis-keys.js'
import { runnerFor } from '../runner-for.js'

const cluster = await clusterOfFile()

const policy = fixedWindow({ limit: 1000, window: '1d', name: 'day' })
const INCREMENT = "return redis.call('INCR', KEYS[1])"

/** A key of its own for each test, and its slot. */
let keys = 0
function freshKey(keyPrefix: string): { readonly key: string; readonly slot: number } {
  const key = `fresh ${keys++}`
  return { key, slot: hashSlot(keyPrefix + key) }
}

async function otherThan(holder: RedisProcess): Promise<RedisProcess> {
  return (await cluster.primaries()).find((node) => node !== holder) as RedisProcess
}

for (const kind of librariesForRun(CLUSTER_CLIENTS)) {
  const { name, library, keyPrefix = '' } = kind
  // Each library finds the servers of its keys and follows MOVED; in a short run the others are tests of one kind.
  const inTime = clientsForRun(CLUSTER_CLIENTS).includes(kind) ? test : longTest

  test(`${name} brings each key to its server`, async () => {
    await using open = await kind.open(cluster.roots)
    const runner = runnerFor(open.client)
    assert.equal(runner.client, library)
    assert.equal(runner.isCluster, true)
    for (let i = 0; i < 100; i++) {
      const { key, slot } = freshKey(keyPrefix)
      assert.equal(await runner.send(key, ['EVAL', INCREMENT, '1', key]), 1)
      const holder = await (i < 6 ? cluster.primaryOf(slot) : undefined)
      if (holder !== undefined) assert.equal(await holder.ask('GET', keyPrefix + key), '1')
    }
  })

  inTime(`${name} tells the servers of slots, or nothing`, async () => {
    await using open = await kind.open(cluster.roots)
    const runner = runnerFor(open.client)
    await runner.send('a', ['EVAL', INCREMENT, '1', 'a'])
    for (const slot of [0, 5460, 8000, 12_000, 16_383]) {
      const { host, port } = await cluster.primaryOf(slot)
      assert.equal(runner.serverOf(slot), library === 'valkey-glide' ? undefined : `${host}:${port}`)
    }
  })

  inTime(`${name} asks every primary`, async () => {
    await using open = await kind.open(cluster.roots)
    const infos = await runnerFor(open.client).sendToAll(['INFO'])
    const ports = infos.map((info) => Number(/tcp_port:(\d+)/.exec(String(info))?.[1]))
    assert.deepEqual(ports.sort(), cluster.nodes.map(({ port }) => port).sort())
  })

  test(`${name} follows MOVED, and what was spent moves with the slot`, async () => {
    await using open = await kind.open(cluster.roots)
    const limiter = createLimiter(policy, { store: redis(open.client, { prefix: name }), ...NO_HASTE })
    const { key } = freshKey('')
    const slot = hashSlot(key)
    const holder = await cluster.primaryOf(slot)
    assert.equal((await limiter.take(key, 10)).remaining, 990)
    const move = await SlotMove.begin(cluster, slot, await otherThan(holder))
    await move.moveKeys()
    await move.end()
    const { remaining, source } = await limiter.take(key)
    assert.deepEqual({ remaining, source }, { remaining: 989, source: 'store' })
  })

  inTime(`${name} follows ASK`, async () => {
    await using open = await kind.open(cluster.roots)
    const runner = runnerFor(open.client)
    const { key, slot } = freshKey(keyPrefix)
    const holder = await cluster.primaryOf(slot)
    const other = await otherThan(holder)
    const move = await SlotMove.begin(cluster, slot, other)
    assert.equal(await runner.send(key, ['EVAL', INCREMENT, '1', key]), 1)
    assert.equal(await holder.ask('CLUSTER', 'COUNTKEYSINSLOT', String(slot)), '0')
    assert.equal(await other.ask('CLUSTER', 'COUNTKEYSINSLOT', String(slot)), '1')
    await move.end()
    await until('the new server is known', async () => (await runner.send(key, ['EVAL', INCREMENT, '1', key])) === 2)
  })

  inTime(`while its slot moves an ordinary take is refused by no server, wherever the key is, with ${name}`, async () => {
    await using open = await kind.open(cluster.roots)
    const limiter = createLimiter(policy, { store: redis(open.client, { prefix: name, hashTag: freshKey('').key }), ...NO_HASTE })
    const slot = hashSlot(`fresh ${keys - 1}`)
    const before = await triedAgain()
    assert.equal((await limiter.take('known')).remaining, 999)
    await limiter.block('blocked', '1m')
    const move = await SlotMove.begin(cluster, slot, await otherThan(await cluster.primaryOf(slot)))
    for (const step of [() => move.moveKeys(), () => move.end(), () => undefined]) {
      for (const key of ['known', 'new']) assert.deepEqual((await limiter.take(key)).source, 'store')
      assert.equal((await limiter.take('blocked')).allowed, false)
      await step()
    }
    assert.deepEqual([(await limiter.peek('known')).remaining, (await limiter.peek('new')).remaining], [996, 997])
    assert.equal(await triedAgain(), before)
  })

  inTime(`while its slot moves a key of several policies is asked for again by ${name}, and is charged once`, async () => {
    await using open = await kind.open(cluster.roots)
    const options = { store: redis(open.client, { prefix: name }), ...NO_HASTE }
    const [first, both] = [policy, allOf([policy, gcra({ limit: 1000, window: '1d', name: 'rate' })])].map((each) =>
      createLimiter(each, options),
    )
    assert.ok(first && both)
    const { key } = freshKey('')
    const slot = hashSlot(key)
    assert.equal((await first.take(key)).remaining, 999)
    const move = await SlotMove.begin(cluster, slot, await otherThan(await cluster.primaryOf(slot)))
    const before = await triedAgain()
    // The key of one policy is still here, and that of the other, which is new, would be there.
    const taken = both.take(key)
    await until('it was refused and asked for again', async () => (await triedAgain()) >= before + 2)
    await move.moveKeys()
    await move.end()
    const { source } = await taken
    const spent = source === 'store' ? 2 : 1
    assert.equal((await first.take(key)).remaining, 999 - spent)
  })
}

longTest('what node-redis keeps for a server that cannot be reached is dropped by its time-out, and is not sent long after', async () => {
  const rootNodes = cluster.roots.map(({ host, port }) => ({ url: `redis://${host}:${port}` }))
  const client = createCluster({ rootNodes, commandOptions: { timeout: 2000 } })
  client.on('error', () => undefined)
  await client.connect()
  const runner = runnerFor(client)
  const { key, slot } = freshKey('')
  const increment = () => runner.send(key, ['EVAL', INCREMENT, '1', key])
  assert.equal(await increment(), 1)
  const holder = await cluster.primaryOf(slot)
  await holder.kill()
  // The first finds the connection broken, the others find none.
  await assert.rejects(increment())
  await Promise.all([assert.rejects(increment()), assert.rejects(increment())])
  await holder.start()
  await cluster.ready()
  client.destroy()
})

/** How often all servers said TRYAGAIN. */
async function triedAgain(): Promise<number> {
  const stats = await Promise.all(cluster.nodes.map((node) => node.ask('INFO', 'errorstats')))
  return stats.reduce((sum, text) => sum + Number(/errorstat_TRYAGAIN:count=(\d+)/.exec(text)?.[1] ?? 0), 0)
}

import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { createClientPool } from '@redis/client'
import { RedisProcess, RedisSentinel, until } from 'sluicegate-testkit'
import { clusterOfFile, type ProxiedWay, proxiedServerOfFile, wayToSlot } from 'sluicegate-testkit/redis/own-redis.js'
import {
  CLUSTER_CLIENTS,
  type ClientKind,
  clientsForRun,
  librariesForRun,
  NO_HASTE,
  SERVER_CLIENTS,
  sentinelClients,
} from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../../create-limiter.js'
import { fixedWindow } from '../../policy/single-policy.js'
import { redis } from '../redis.js'
import { hashSlot } from '../redis-keys.js'
import { runnerFor } from '../runner-for.js'
import { nodeRedisRunner } from './node-redis.js'

let server: RedisProcess
let watched: RedisSentinel
before(async () => {
  server = await RedisProcess.start()
  watched = await RedisSentinel.start()
})
after(() => Promise.all([server.stop(), watched.stop()]))

const policy = fixedWindow({ limit: 1000, window: '1d', name: 'day' })

function behaves(
  kind: ClientKind,
  home: () => { readonly roots: readonly { host: string; port: number }[]; readonly server: RedisProcess },
): void {
  const { name, library, keyPrefix = '' } = kind

  test(`${name} brings commands to the server, and integers back as numbers`, async () => {
    const { roots, server } = home()
    await using open = await kind.open(roots)
    const runner = runnerFor(open.client)
    const key = `counter of ${name}`
    assert.equal(runner.client, library)
    assert.equal(runner.isCluster, false)
    assert.equal(runner.serverOf(0), undefined)
    assert.equal(await runner.send(key, ['EVAL', "return redis.call('INCRBY', KEYS[1], ARGV[1])", '1', key, '41']), 41)
    assert.deepEqual(await runner.send(key, ['EVAL', "return {redis.call('INCR', KEYS[1]), 2^52, 'ü'}", '1', key]), [42, 2 ** 52, 'ü'])
    assert.equal(await server.ask('GET', keyPrefix + key), '42')
  })

  test(`${name} says what the server said when it refuses`, async () => {
    await using open = await kind.open(home().roots)
    const runner = runnerFor(open.client)
    await assert.rejects(runner.send('k', ['EVAL', "return redis.error_reply('PLAIN words')", '1', 'k']), /PLAIN:? words/)
    await assert.rejects(runner.send('k', ['EVALSHA', 'f'.repeat(40), '1', 'k']), /NOSCRIPT|NoScript/)
  })

  test(`${name} asks the one server that takes writes`, async () => {
    const { roots, server } = home()
    await using open = await kind.open(roots)
    const replies = await runnerFor(open.client).sendToAll(['INFO'])
    assert.equal(replies.length, 1)
    assert.match(String(replies[0]), new RegExp(`tcp_port:${server.port}\r\n`))
    assert.match(String(replies[0]), /role:master/)
  })

  test(`limiters open no connection of their own and leave that of ${name} open`, async () => {
    const { roots } = home()
    await using open = await kind.open(roots)
    const runner = runnerFor(open.client)
    const connections = async (): Promise<string | undefined> => {
      const [info] = await runner.sendToAll(['INFO'])
      return /total_connections_received:\d+/.exec(String(info))?.[0]
    }
    // The first one on a client has a look at the server, for which a pool may take another connection.
    await createLimiter(policy, { store: redis(open.client, { prefix: name }), ...NO_HASTE }).take('zero')
    await connections()
    const before = await connections()
    for (const user of ['one', 'two', 'three']) {
      const limiter = createLimiter(policy, { store: redis(open.client, { prefix: name }), ...NO_HASTE })
      const decision = await limiter.take(user)
      assert.deepEqual([decision.allowed, decision.remaining, decision.source], [true, 999, 'store'])
      limiter.close()
    }
    assert.equal(await connections(), before)
  })
}

for (const kind of librariesForRun(SERVER_CLIENTS)) behaves(kind, () => ({ roots: [server], server }))
for (const kind of clientsForRun(sentinelClients('sluicegate'))) {
  behaves(kind, () => ({ roots: watched.roots, server: watched.servers[0] as RedisProcess }))
}

describe('pipelining', async () => {
  const { server, proxy: front } = await proxiedServerOfFile()
  const cluster = await clusterOfFile({ proxied: true })

  const TAKES = 100
  /** Those of a first reply that still came, or of a socket that was full. */
  const MOST_WRITES = 5
  const policy = fixedWindow({ limit: 1000, window: '1d', name: 'day' })

  interface Writing {
    readonly remotePort?: number
    _write(...args: unknown[]): void
    _writev(...args: unknown[]): void
  }

  /** How often this process hands something to the system for a port, from now until it is asked. */
  function writesTo(port: number): () => number {
    const sockets = Socket.prototype as unknown as Writing
    const { _write, _writev } = sockets
    let writes = 0
    const counted = (write: Writing['_write']): Writing['_write'] =>
      function (this: Writing, ...args) {
        if (this.remotePort === port) writes++
        write.apply(this, args)
      }
    sockets._write = counted(_write)
    sockets._writev = counted(_writev)
    return () => {
      Object.assign(sockets, { _write, _writev })
      return writes
    }
  }

  function pipelines(kind: ClientKind, way: () => Promise<ProxiedWay>): void {
    test(`${kind.name}: ${TAKES} takes of one turn are on their way before the first is answered, in few writes`, async () => {
      const { roots, server, proxy } = await way()
      proxy.set({ kind: 'none' })
      await using open = await kind.open(roots)
      const limiter = createLimiter(policy, { store: redis(open.client, { prefix: kind.name }), ...NO_HASTE })
      await limiter.take('k')
      const calls = await server.callsOf('evalsha')
      proxy.set({ kind: 'half-open' })
      const writes = writesTo(proxy.port)
      const taken = Promise.all(Array.from({ length: TAKES }, () => limiter.take('k')))
      await until('all have arrived', async () => (await server.callsOf('evalsha')) === calls + TAKES)
      const count = writes()
      // The core of valkey-glide writes for itself, outside of Node.js.
      assert.ok(kind.library === 'valkey-glide' ? count === 0 : count >= 1 && count <= MOST_WRITES, `${count} writes`)
      proxy.set({ kind: 'none' })
      await taken
    })
  }

  // A pool gives each call a connection of its own; ioredis 4 tells a command no socket by which to gather what is written.
  const gathers = ({ name }: ClientKind): boolean => !name.includes('pool') && !name.startsWith('ioredis 4')
  for (const kind of clientsForRun(SERVER_CLIENTS.filter(gathers))) {
    pipelines(kind, async () => ({ roots: [front], server, proxy: front }))
  }
  for (const kind of clientsForRun(CLUSTER_CLIENTS.filter(gathers))) {
    pipelines(kind, () => wayToSlot(cluster, hashSlot('k')))
  }
})

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

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { longTest } from '../run-length.js'
import { FaultProxy } from './fault-proxy.js'
import { freePorts } from './free-ports.js'
import { RedisCluster } from './redis-cluster.js'
import { RedisProcess, RedisSentinel, redisCli } from './redis-process.js'
import { until } from './until.js'

/** What comes back for a line on its own connection; else how that ended. */
function exchange({ host, port }: FaultProxy, line: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => socket.write(`${line}\r\n`))
    const end = (outcome: string): void => {
      socket.destroy()
      resolve(outcome)
    }
    socket.once('data', (data) => end(data.toString()))
    socket.once('end', () => end('end'))
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'error'))
  })
}

test('free ports differ, and leave room for the bus of a cluster', async () => {
  const ports = await freePorts(20)
  assert.equal(new Set(ports).size, 20)
  assert.ok(ports.every((port) => port >= 10_000 && port < 20_000))
})

test('a server starts empty, forgets when it is killed and started again, and is gone when it is stopped', async () => {
  const server = await RedisProcess.start()
  await server.ask('SET', 'a', '1')
  assert.equal(await server.ask('GET', 'a'), '1')
  assert.equal(await server.callsOf('set'), 1)
  await server.kill()
  await assert.rejects(server.ask('PING'))
  await server.start()
  assert.equal(await server.ask('EXISTS', 'a'), '0')
  await server.stop()
  await assert.rejects(server.ask('PING'))
})

longTest('the wall clock of a server moves in one step while it runs, and keys live by it', async () => {
  await using server = await RedisProcess.start({ hasMovableClock: true })
  const aheadS = async (): Promise<number> => Number((await server.ask('TIME')).split('\n')[0]) - Date.now() / 1000
  const isAhead = async (bySeconds: number): Promise<boolean> => Math.abs((await aheadS()) - bySeconds) < 30
  assert.ok(await isAhead(0))
  await server.ask('SET', 'a', '1', 'EX', '60')
  server.moveClock(-3600)
  assert.ok(await isAhead(-3600))
  assert.equal(await server.ask('EXISTS', 'a'), '1')
  server.moveClock(3600)
  assert.ok(await isAhead(3600))
  await until('the key has ended', async () => (await server.ask('EXISTS', 'a')) === '0')
  await server.kill()
  await server.start()
  assert.ok(await isAhead(3600))
})

test('a server that is paused answers when it is resumed', async () => {
  await using server = await RedisProcess.start()
  server.pause()
  let hasAnswered = false
  const answer = server.ask('PING').then((pong) => {
    hasAnswered = true
    return pong
  })
  // Two more programs start and end meanwhile.
  await Promise.all([redisCli('--version'), redisCli('--version')])
  assert.equal(hasAnswered, false)
  server.resume()
  assert.equal(await answer, 'PONG')
})

longTest('a server that cannot start says why', async () => {
  await using server = await RedisProcess.start()
  await assert.rejects(RedisProcess.start({ port: server.port }), /ended \(1\).*in use/s)
  await assert.rejects(RedisProcess.start({ command: 'no-such-server' }), /ENOENT/)
})

longTest('a cluster holds all slots, takes a fourth primary in, moves slots to it and back, and lets it go', async () => {
  await using cluster = await RedisCluster.start({ replicas: 0 })
  assert.equal((await cluster.primaries()).length, 3)
  const joined = await cluster.join()
  const first = cluster.nodes[0] as RedisProcess
  await cluster.reshard(joined, 100, [first])
  assert.equal((await cluster.primaries()).length, 4)
  assert.equal(await cluster.primaryOf(0), joined)
  await cluster.reshard(first, 100, [joined])
  assert.equal(await cluster.primaryOf(0), first)
  await cluster.leave(joined)
  assert.equal((await cluster.primaries()).length, 3)
})

longTest('the replica of a primary that is killed takes its slots over', async () => {
  await using cluster = await RedisCluster.start()
  const killed = await cluster.primaryOf(0)
  await killed.kill()
  await until('another holds the slots', async () => (await cluster.primaryOf(0)) !== killed)
  assert.equal((await cluster.primaries()).length, 3)
})

longTest('a node that starts again, and one that joins, are behind proxies like the others', async () => {
  await using cluster = await RedisCluster.start({ replicas: 0 })
  await cluster.behindProxies()
  const joined = await cluster.join()
  const first = cluster.nodes[0] as RedisProcess
  await joined.kill()
  await cluster.restart(joined)
  assert.match(await first.ask('CLUSTER', 'NODES'), new RegExp(`:${cluster.proxies.get(joined)?.port}@`))
  await cluster.leave(joined)
  assert.equal(cluster.proxies.size, 3)
})

longTest('sentinels name the replica when the primary is killed', async () => {
  await using watched = await RedisSentinel.start()
  const killed = await watched.primary()
  assert.equal(killed, watched.servers[0])
  await killed.kill()
  await until('another is the primary', async () => (await watched.primary()) !== killed)
})

test('a proxy passes on, counts, and loses answers but no requests when it is half open', async () => {
  await using server = await RedisProcess.start()
  await using proxy = await FaultProxy.before(server)
  assert.equal(await exchange(proxy, 'SET a 1'), '+OK\r\n')
  assert.equal(proxy.pieces, 1)
  proxy.set({ kind: 'half-open' })
  const lost = exchange(proxy, 'SET a 2')
  await until('the request has arrived', async () => (await server.ask('GET', 'a')) === '2')
  proxy.set({ kind: 'none' })
  assert.equal(await lost, 'ECONNRESET')
  assert.equal(await exchange(proxy, 'EXISTS a'), ':1\r\n')
})

test('a black hole lets nothing through, and ends in a reset', async () => {
  await using server = await RedisProcess.start()
  await using proxy = await FaultProxy.before(server)
  proxy.set({ kind: 'black-hole' })
  const lost = exchange(proxy, 'SET a 1')
  await until('the request has come', () => proxy.pieces > 0)
  proxy.set({ kind: 'none' })
  assert.equal(await lost, 'ECONNRESET')
  assert.equal(await server.ask('EXISTS', 'a'), '0')
})

longTest('a cut resets connections, new ones too; latency delays both ways', async () => {
  await using server = await RedisProcess.start()
  await using proxy = await FaultProxy.before(server)
  proxy.set({ kind: 'cut' })
  assert.equal(await exchange(proxy, 'PING'), 'ECONNRESET')
  assert.equal(proxy.connections, 1)
  proxy.set({ kind: 'latency', delayMs: 30, jitterMs: 10 })
  const startedMs = performance.now()
  assert.equal(await exchange(proxy, 'PING'), '+PONG\r\n')
  assert.ok(performance.now() - startedMs >= 58)
})

longTest('a slow close ends the connection after the request, before the answer', async () => {
  await using server = await RedisProcess.start()
  await using proxy = await FaultProxy.before(server)
  proxy.set({ kind: 'slow-close', afterMs: 1 })
  assert.equal(await exchange(proxy, 'SET a 1'), 'end')
  await until('the request was carried out', async () => (await server.ask('GET', 'a')) === '1')
})
longTest('the nodes of a cluster behind proxies send everybody there', async () => {
  await using cluster = await RedisCluster.start({ replicas: 0 })
  await cluster.behindProxies()
  const slots = await (cluster.nodes[0] as RedisProcess).ask('CLUSTER', 'SLOTS')
  for (const { port } of cluster.roots) assert.ok(slots.includes(String(port)))
  for (const { port } of cluster.nodes) assert.ok(!slots.split('\n').includes(String(port)))
  assert.equal((await cluster.primaries()).length, 3)
})

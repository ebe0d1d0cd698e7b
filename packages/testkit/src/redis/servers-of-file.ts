import { after, afterEach } from 'node:test'
import { FaultProxy } from '../servers/fault-proxy.js'
import { RedisCluster } from '../servers/redis-cluster.js'
import { RedisProcess } from '../servers/redis-process.js'
import type { Address, ClientKind, OpenClient } from './redis-clients.js'

// Servers for all tests of a file: they stop after its last.

export async function serverOfFile(args: readonly string[] = []): Promise<RedisProcess> {
  const server = await RedisProcess.start({ args })
  after(() => server.stop())
  return server
}

/** A server and a proxy before it, which passes everything on again after each test. */
export async function proxiedServerOfFile(): Promise<{ readonly server: RedisProcess; readonly proxy: FaultProxy }> {
  const server = await serverOfFile()
  const proxy = await FaultProxy.before(server)
  afterEach(() => proxy.set({ kind: 'none' }))
  after(() => proxy.stop())
  return { server, proxy }
}

/** Three primaries, with `proxied` each behind a proxy. */
export async function clusterOfFile({ proxied = false } = {}): Promise<RedisCluster> {
  const cluster = await RedisCluster.start({ replicas: 0 })
  after(() => cluster.stop())
  if (proxied) await cluster.behindProxies()
  return cluster
}

/** A server behind a proxy, and where its clients connect first. */
export interface ProxiedWay {
  readonly roots: readonly Address[]
  readonly server: RedisProcess
  readonly proxy: FaultProxy
}

/** To the server that has a slot, of a cluster behind proxies. */
export async function wayToSlot(cluster: RedisCluster, slot: number): Promise<ProxiedWay> {
  const server = await cluster.primaryOf(slot)
  return { roots: cluster.roots, server, proxy: cluster.proxies.get(server) as FaultProxy }
}

/** A client of each kind, by its name, of one server. */
export async function clientsOfFile(kinds: readonly ClientKind[]): Promise<ReadonlyMap<string, OpenClient>> {
  const server = await RedisProcess.start()
  const opened = new Map<string, OpenClient>()
  for (const kind of kinds) opened.set(kind.name, await kind.open([server]))
  after(async () => {
    for (const open of opened.values()) await open[Symbol.asyncDispose]()
    await server.stop()
  })
  return opened
}

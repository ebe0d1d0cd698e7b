import { readFileSync } from 'node:fs'
import { after, afterEach, type TestContext } from 'node:test'
import { createClient } from '@redis/client'
import { createLimiter, type Policy, type SharedLimiter, type SharedOptions } from '../../../sluicegate/dist/index.js'
import type { CommandRunner } from '../../../sluicegate/dist/redis/command-runner.js'
import { redis } from '../../../sluicegate/dist/redis/index.js'
import type { RedisClient } from '../../../sluicegate/dist/redis/runner-for.js'
import { nodeRedisRunner } from '../../../sluicegate/dist/redis/runners/node-redis.js'
import { FaultProxy } from '../servers/fault-proxy.js'
import { freePorts } from '../servers/free-ports.js'
import { RedisCluster } from '../servers/redis-cluster.js'
import { RedisProcess } from '../servers/redis-process.js'
import type { Address, ClientKind, OpenClient, User } from './redis-clients.js'

/** A server of one's own, and a client of it. */
export interface OwnRedis {
  readonly server: RedisProcess
  readonly client: RedisClient
  readonly runner: CommandRunner
  /** Any command. */
  send(...command: readonly string[]): Promise<unknown>
  stop(): Promise<void>
}

export async function ownRedis(args: readonly string[] = []): Promise<OwnRedis> {
  const [port = 0] = await freePorts(1)
  const server = await RedisProcess.start({ port, args })
  const client = createClient({ url: server.url })
  client.on('error', () => undefined)
  await client.connect()
  return {
    server,
    client,
    runner: nodeRedisRunner(client),
    send: (...command) => client.sendCommand([...command]),
    stop: async () => {
      client.destroy()
      await server.stop()
    },
  }
}

/** Limiters over one server, which are closed, with the server, when the test is over. */
interface LimitersOfTest {
  readonly server: RedisProcess
  limiter(policy: Policy, options?: Partial<SharedOptions>): SharedLimiter
}

/** @param disableOfflineQueue whether a call fails while the client has no connection. */
export async function limitersOfTest(t: TestContext, disableOfflineQueue = false): Promise<LimitersOfTest> {
  const server = await RedisProcess.start()
  const client = createClient({ url: server.url, disableOfflineQueue })
  client.on('error', () => undefined)
  await client.connect()
  const limiters: SharedLimiter[] = []
  t.after(async () => {
    for (const limiter of limiters) limiter.close()
    client.destroy()
    await server.stop()
  })
  return {
    server,
    limiter(policy, options = {}) {
      const limiter = createLimiter(policy, { store: redis(client), timeout: 30_000, ...options })
      limiters.push(limiter)
      return limiter
    },
  }
}

export const USER: User = { username: 'limiter', password: 'secret' }

const GUIDE = readFileSync(new URL('../../../../docs/redis.md', import.meta.url), 'utf8')

/** The commands that a limiter needs, as they are documented. */
export const DOCUMENTED_COMMANDS = commandsIn(/ACL SETUSER limiter .*?-@all(.*?)```/s)

/** Those that one with overrides needs beside. */
export const DOCUMENTED_FOR_OVERRIDES = commandsIn(/need these as well:\n\n```(.*?)```/s)

/** Lets {@link USER} do this and no more. */
export async function allow(nodes: readonly RedisProcess[], commands: readonly string[], keys = 'sluicegate:*'): Promise<void> {
  const rules = ['reset', 'on', `>${USER.password}`, `~${keys}`, '-@all', ...commands.map((command) => `+${command}`)]
  for (const node of nodes) await node.ask('ACL', 'SETUSER', USER.username, ...rules)
}

/** Where a server is found by {@link USER}. */
export function userUrl({ host, port }: RedisProcess): string {
  return `redis://${USER.username}:${USER.password}@${host}:${port}`
}

/** The commands of an ACL rule in the guide. */
function commandsIn(place: RegExp): string[] {
  const rule = place.exec(GUIDE)?.[1] ?? ''
  return [...rule.matchAll(/\+([a-z]+)/g)].map(([, command]) => command as string)
}

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

import { createRequire } from 'node:module'
import type { GlideClient, GlideClusterClient } from '@valkey/valkey-glide'
import type { Cluster, Redis } from 'ioredis'
import type { RedisClient } from '../../../sluicegate/dist/redis/runner-for.js'
import { IS_LONG_RUN } from '../run-length.js'

export interface Address {
  readonly host: string
  readonly port: number
}

export interface User {
  readonly username: string
  readonly password: string
}

/** A connected client as a caller would have it. */
export interface OpenClient extends AsyncDisposable {
  readonly client: RedisClient
}

/** A way in which callers connect. */
export interface ClientKind {
  readonly name: string
  readonly library: 'node-redis' | 'ioredis' | 'valkey-glide'
  /** What it puts before every key. */
  readonly keyPrefix?: string
  /** @param roots the server, nodes of a cluster, or sentinels. */
  open(roots: readonly Address[], user?: User): Promise<OpenClient>
}

type NodeRedisLibrary = Pick<typeof import('@redis/client'), 'createClient' | 'createCluster'>
type IoredisLibrary = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>

// Each library takes a fifth of a second of the processor to load: it is loaded for the first client of its kind.
const require = createRequire(import.meta.url)
const nodeRedis = () => import('@redis/client')
const ioredis = () => import('ioredis')
/** Older versions, which look alike where they are used here. */
const nodeRedis4 = (): NodeRedisLibrary => require('redis4')
const ioredis4 = (): IoredisLibrary => ({ Redis: require('ioredis4'), Cluster: require('ioredis4').Cluster })

async function valkeyGlide() {
  const glide = await import('@valkey/valkey-glide')
  // What it has to say of the faults that tests make.
  glide.Logger.setLoggerConfig('off')
  return glide
}

/** Waiting for a busy machine is no fault. */
const PATIENT_MS = 30_000
/** Options of a limiter whose every call waits for its answer, on a machine that is busy. */
export const NO_HASTE = { mode: 'exact', outage: 'closed', timeout: 60_000 } as const
const AUTO = { enableAutoPipelining: true } as const
const PREFIX = 'app:'

/** Those of one server. */
export const SERVER_CLIENTS: readonly ClientKind[] = [
  {
    name: 'node-redis',
    library: 'node-redis',
    open: async ([server], user) => openNodeRedis((await nodeRedis()).createClient({ url: urlOf(server), ...user })),
  },
  {
    name: 'a pool of node-redis',
    library: 'node-redis',
    open: async ([server], user) => openNodeRedis((await nodeRedis()).createClientPool({ url: urlOf(server), ...user })),
  },
  {
    name: 'ioredis',
    library: 'ioredis',
    open: async ([server], user) => openIoredis(new (await ioredis()).Redis({ ...addressesIn([server as Address])[0], ...user })),
  },
  {
    name: 'ioredis with autopipelining and a key prefix',
    library: 'ioredis',
    keyPrefix: PREFIX,
    open: async ([server], user) =>
      openIoredis(new (await ioredis()).Redis({ ...addressesIn([server as Address])[0], ...user, ...AUTO, keyPrefix: PREFIX })),
  },
  {
    name: 'valkey-glide',
    library: 'valkey-glide',
    open: async (addresses, user) => openGlide(await (await valkeyGlide()).GlideClient.createClient(glideOptions(addresses, user))),
  },
  {
    name: 'node-redis 4',
    library: 'node-redis',
    open: ([server], user) => openNodeRedis(nodeRedis4().createClient({ url: urlOf(server), ...user })),
  },
  {
    name: 'ioredis 4',
    library: 'ioredis',
    open: ([server], user) => openIoredis(new (ioredis4().Redis)({ ...addressesIn([server as Address])[0], ...user })),
  },
  {
    name: 'ioredis 4 with autopipelining and a key prefix',
    library: 'ioredis',
    keyPrefix: PREFIX,
    open: ([server], user) =>
      openIoredis(new (ioredis4().Redis)({ ...addressesIn([server as Address])[0], ...user, ...AUTO, keyPrefix: PREFIX })),
  },
]

export const CLUSTER_CLIENTS: readonly ClientKind[] = [
  {
    name: 'node-redis on a cluster',
    library: 'node-redis',
    open: async (roots, user) =>
      openNodeRedis((await nodeRedis()).createCluster({ rootNodes: roots.map((root) => ({ url: urlOf(root) })), defaults: { ...user } })),
  },
  {
    name: 'ioredis on a cluster',
    library: 'ioredis',
    open: async (roots, user) => openIoredis(new (await ioredis()).Cluster(addressesIn(roots), { redisOptions: { ...user } })),
  },
  {
    name: 'ioredis on a cluster with autopipelining and a key prefix',
    library: 'ioredis',
    keyPrefix: PREFIX,
    open: async (roots, user) =>
      openIoredis(new (await ioredis()).Cluster(addressesIn(roots), { ...AUTO, keyPrefix: PREFIX, redisOptions: { ...user } })),
  },
  {
    name: 'valkey-glide on a cluster',
    library: 'valkey-glide',
    open: async (roots, user) => openGlide(await (await valkeyGlide()).GlideClusterClient.createClient(glideOptions(roots, user))),
  },
  {
    name: 'node-redis 4 on a cluster',
    library: 'node-redis',
    open: (roots, user) =>
      openNodeRedis(nodeRedis4().createCluster({ rootNodes: roots.map((root) => ({ url: urlOf(root) })), defaults: { ...user } })),
  },
  {
    name: 'ioredis 4 on a cluster',
    library: 'ioredis',
    open: (roots, user) => openIoredis(new (ioredis4().Cluster)(addressesIn(roots), { redisOptions: { ...user } })),
  },
]

/** The kinds that a test of more than the connection itself asks: all in a long run, the first in a short one. */
export function clientsForRun(kinds: readonly ClientKind[]): readonly ClientKind[] {
  return IS_LONG_RUN ? kinds : kinds.slice(0, 1)
}

/** The kinds that a test of the connection asks: all in a long run, one of each library in a short one. */
export function librariesForRun(kinds: readonly ClientKind[]): readonly ClientKind[] {
  if (IS_LONG_RUN) return kinds
  return kinds.filter(({ library }, at) => kinds.findIndex((kind) => kind.library === library) === at)
}

/** Those who ask sentinels for the primary that is called so. */
export function sentinelClients(name: string): readonly ClientKind[] {
  return [
    {
      name: 'node-redis with sentinels',
      library: 'node-redis',
      open: async (roots) => openNodeRedis((await nodeRedis()).createSentinel({ name, sentinelRootNodes: addressesIn(roots) })),
    },
    {
      name: 'ioredis with sentinels',
      library: 'ioredis',
      open: async (roots) => openIoredis(new (await ioredis()).Redis({ name, sentinels: addressesIn(roots) })),
    },
    {
      name: 'ioredis 4 with sentinels',
      library: 'ioredis',
      open: (roots) => openIoredis(new (ioredis4().Redis)({ name, sentinels: addressesIn(roots) })),
    },
  ]
}

interface NodeRedis {
  on(event: 'error', listener: () => void): unknown
  connect(): Promise<unknown>
  /** From version 5 on; before, `disconnect`. */
  destroy?(): unknown
  disconnect?(): unknown
}

async function openNodeRedis(client: NodeRedis & RedisClient): Promise<OpenClient> {
  client.on('error', () => undefined)
  await client.connect()
  return { client, [Symbol.asyncDispose]: async () => void (await (client.destroy ?? client.disconnect)?.call(client)) }
}

async function openIoredis(client: Redis | Cluster): Promise<OpenClient> {
  client.on('error', () => undefined)
  await new Promise<void>((resolve) => client.once('ready', () => resolve()))
  return { client, [Symbol.asyncDispose]: async () => client.disconnect() }
}

function glideOptions(roots: readonly Address[], credentials?: User) {
  return { addresses: addressesIn(roots), requestTimeout: PATIENT_MS, ...(credentials && { credentials }) }
}

function openGlide(client: GlideClient | GlideClusterClient): OpenClient {
  return { client, [Symbol.asyncDispose]: async () => client.close() }
}

/** Of a server as a test knows it the address alone. */
function addressesIn(roots: readonly Address[]): Address[] {
  return roots.map(({ host, port }) => ({ host, port }))
}

function urlOf(server: Address | undefined): string {
  return `redis://${server?.host}:${server?.port}`
}

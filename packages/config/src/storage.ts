import { DEFAULT_STORAGE, type RedisStorageConfig, type StorageConfig } from './config.js'
import type { Section } from './section.js'

const MAX_NODES = 100
const PREFIX = /^[\x21-\x7e]{1,100}$/
/** Those of the library. */
export const DEFAULT_REDIS = { prefix: undefined, mode: undefined, outage: 'local', timeoutMs: 100 } as const

/** The section `storage`: `redis` with the address of a server or of some nodes of a cluster; left out, keys are in memory. */
export function readStorage(section: Section): StorageConfig {
  const redis = section.has('redis') ? readRedis(section.section('redis')) : undefined
  section.done()
  return redis ?? DEFAULT_STORAGE
}

function readRedis(section: Section): RedisStorageConfig {
  const url = section.secret('url')
  const nodes = section.secrets('nodes', 'addresses of cluster nodes')
  if (url !== undefined && nodes !== undefined) section.fault('nodes', 'are of a cluster, and url is of a single server: give one of them')
  if (url === undefined && nodes === undefined) section.require('url', ': give url for a single server, or nodes for a cluster')
  if (nodes !== undefined && (nodes.length < 1 || nodes.length > MAX_NODES)) section.fault('nodes', `must be 1 to ${MAX_NODES}`)
  for (const each of nodes ?? [url]) {
    const fault = each === undefined ? undefined : redisUrlFault(each)
    if (fault !== undefined) section.fault(nodes === undefined ? 'url' : 'nodes', fault)
  }
  const prefix = section.text('prefix', 'sluicegate')
  if (prefix !== undefined && !PREFIX.test(prefix)) section.fault('prefix', 'must be 1 to 100 printable ASCII characters without spaces')
  const config = {
    kind: 'redis',
    urls: nodes ?? (url === undefined ? [] : [url]),
    isCluster: nodes !== undefined,
    prefix,
    mode: section.oneOf('mode', ['leased', 'exact'] as const),
    outage: section.oneOf('outage', ['local', 'open', 'closed'] as const) ?? DEFAULT_REDIS.outage,
    timeoutMs: section.duration('timeout', 1, 60_000) ?? DEFAULT_REDIS.timeoutMs,
  } as const
  section.done()
  return config
}

/** Why `text` is no address of a server; undefined when it is one. Never contains the address, which may hold a password. */
export function redisUrlFault(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && ['redis:', 'rediss:'].includes(url.protocol) && url.hostname !== '') return undefined
  return 'must be a URL such as redis://127.0.0.1:6379 or rediss://user:password@host:6380'
}

/** The address without its password, for people and logs. */
export function redisUrlText(text: string): string {
  const url = new URL(text)
  if (url.password !== '') url.password = '****'
  return url.href
}

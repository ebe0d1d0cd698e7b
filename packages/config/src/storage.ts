import { DEFAULT_STORAGE, type HomeConfig, type PostgresPlace, type RedisPlace, type StorageConfig } from './config.js'
import type { Section } from './section.js'
import { readPem } from './tls.js'

const MAX_NODES = 100
const PREFIX = /^[\x21-\x7e]{1,100}$/
/** Those of the library. */
export const DEFAULT_REDIS = { prefix: undefined, mode: undefined, outage: 'local', timeoutMs: 100, refusedAtStart: 'fail' } as const

/** As a template leaves behind whose variable was not set: clients then send none. */
const EMPTY_PASSWORD = /^\w+:\/\/[^/@?#]*:@/
const NO_PASSWORD = 'has an empty password: give it, or leave out the colon'

const REGION = /^[\w.-]{1,40}$/
/** That of the library. */
const DEFAULT_HOME_TIMEOUT_MS = 1000

const TABLE = /^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$/
const MAX_CONNECTIONS = 1000
/** A round trip to a database under load is longer than to Redis. */
const DEFAULT_POSTGRES = { table: 'sluicegate', connections: 10, timeoutMs: 250 } as const

/** The section `storage`: `redis` or `postgres` with the address of a server; left out, keys are in memory. */
export function readStorage(section: Section): StorageConfig {
  const redis = section.has('redis') ? readStore(section.section('redis'), readPlace, DEFAULT_REDIS.timeoutMs) : undefined
  const postgres = section.has('postgres')
    ? readStore(section.section('postgres'), readPostgresPlace, DEFAULT_POSTGRES.timeoutMs)
    : undefined
  if (redis !== undefined && postgres !== undefined) section.fault('postgres', 'and redis are two stores: give one of them')
  const home = section.has('home') ? readHome(section.section('home')) : undefined
  if (home !== undefined && redis === undefined) section.fault('home', 'needs redis, the store of this region')
  section.done()
  return (home === undefined ? redis : redis && { ...redis, home }) ?? postgres ?? DEFAULT_STORAGE
}

function readHome(section: Section): HomeConfig {
  const place = readHomePlace(section)
  const region = section.text('region', 'eu-west')
  if (region === undefined) section.require('region', ': give the name of this region, its own in each')
  else if (!REGION.test(region)) section.fault('region', "must be 1 to 40 letters, digits, '.', '_' or '-'")
  const share = section.number('share')
  if (share !== undefined && !(share >= 0 && share <= 1)) section.fault('share', 'must be from 0 to 1')
  const tooSmall = section.oneOf('too-small', ['home', 'share'] as const) ?? 'home'
  if (tooSmall === 'share' && !share) section.fault('too-small', 'share needs the share of this region: give share, e.g. 0.5')
  const config = {
    place,
    region: region ?? '',
    prefix: readPrefix(section),
    share,
    tooSmall,
    cold: section.oneOf('cold', ['home', 'share'] as const) ?? 'home',
    timeoutMs: section.duration('timeout', 1, 60_000) ?? DEFAULT_HOME_TIMEOUT_MS,
  } as const
  section.done()
  return config
}

function readHomePlace(section: Section): RedisPlace | PostgresPlace {
  if (!section.has('postgres')) return readPlace(section, ', or postgres for a table')
  for (const other of ['url', 'nodes']) {
    if (section.has(other)) section.fault('postgres', `and ${other} are two homes: give one of them`)
  }
  const postgres = section.section('postgres')
  const place = readPostgresPlace(postgres)
  postgres.done()
  return place
}

function readPostgresPlace(section: Section): PostgresPlace {
  const url = section.secret('url')
  if (url === undefined) section.require('url', ': give the address of the server')
  else {
    const fault = postgresUrlFault(url)
    if (fault !== undefined) section.fault('url', fault)
  }
  const table = section.text('table', 'sluicegate') ?? DEFAULT_POSTGRES.table
  if (!TABLE.test(table)) section.fault('table', 'must be a name of letters, digits and _, or schema.table')
  const connections = section.integer('connections', 1, MAX_CONNECTIONS) ?? DEFAULT_POSTGRES.connections
  return { kind: 'postgres', url: url ?? '', table, connections }
}

/** A store: where it is, and what every store has. */
function readStore<Place>(section: Section, place: (section: Section) => Place, defaultMs: number) {
  const config = {
    ...place(section),
    prefix: readPrefix(section),
    mode: section.oneOf('mode', ['leased', 'exact'] as const),
    outage: section.oneOf('outage', ['local', 'open', 'closed'] as const) ?? DEFAULT_REDIS.outage,
    timeoutMs: section.duration('timeout', 1, 60_000) ?? defaultMs,
    refusedAtStart: section.oneOf('refused-at-start', ['fail', 'serve'] as const) ?? DEFAULT_REDIS.refusedAtStart,
  } as const
  section.done()
  return config
}

function readPrefix(section: Section): string | undefined {
  const prefix = section.text('prefix', 'sluicegate')
  if (prefix !== undefined && !PREFIX.test(prefix)) section.fault('prefix', 'must be 1 to 100 printable ASCII characters without spaces')
  return prefix
}

/** Why `text` is no address of a server; undefined when it is one. The driver takes an empty authority for the public ones. */
function postgresUrlFault(text: string): string | undefined {
  if (!URL.canParse(text) || !['postgres:', 'postgresql:'].includes(new URL(text).protocol))
    return 'must be a URL such as postgres://user:password@127.0.0.1:5432/database'
  if (EMPTY_PASSWORD.test(text)) return NO_PASSWORD
  const { searchParams } = new URL(text)
  for (const name of ['sslrootcert', 'sslcert', 'sslkey']) {
    const file = searchParams.get(name)
    const reason = file === null ? undefined : readPem(file, name === 'sslkey' ? 'key' : 'certificates').reason
    if (reason !== undefined) return `${name}: ${file} ${reason}`
  }
  return undefined
}

/** The addresses of a server, or of a cluster. */
function readPlace(section: Section, others = ''): RedisPlace {
  const url = section.secret('url')
  const nodes = section.secrets('nodes', 'addresses of cluster nodes')
  if (url !== undefined && nodes !== undefined) section.fault('nodes', 'are of a cluster, and url is of a single server: give one of them')
  if (url === undefined && nodes === undefined) section.require('url', `: give url for a single server, or nodes for a cluster${others}`)
  if (nodes !== undefined && (nodes.length < 1 || nodes.length > MAX_NODES)) section.fault('nodes', `must be 1 to ${MAX_NODES}`)
  for (const each of nodes ?? [url]) {
    const fault = each === undefined ? undefined : redisUrlFault(each)
    if (fault !== undefined) section.fault(nodes === undefined ? 'url' : 'nodes', fault)
  }
  return { kind: 'redis', urls: nodes ?? (url === undefined ? [] : [url]), isCluster: nodes !== undefined }
}

/** Why `text` is no address of a server; undefined when it is one. Never contains the address, which may hold a password. */
export function redisUrlFault(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && ['redis:', 'rediss:'].includes(url.protocol) && url.hostname !== '')
    return EMPTY_PASSWORD.test(text) ? NO_PASSWORD : undefined
  return 'must be a URL such as redis://127.0.0.1:6379 or rediss://user:password@host:6380'
}

/** The address without its password, for people and logs. */
export function redisUrlText(text: string): string {
  const url = new URL(text)
  if (url.password !== '') url.password = '****'
  return url.href
}

import {
  choice,
  duration,
  integer,
  type Kind,
  option,
  part,
  secret,
  shownOf,
  standardsOf,
  text,
  type ValuesOf,
  valuesOf,
} from './option.js'
import type { Section } from './section.js'
import { readPem } from './tls.js'

const MAX_NODES = 100
const PREFIX: readonly [RegExp, string] = [/^[\x21-\x7e]{1,100}$/, 'must be 1 to 100 printable ASCII characters without spaces']
const REGION: readonly [RegExp, string] = [/^[\w.-]{1,40}$/, "must be 1 to 40 letters, digits, '.', '_' or '-'"]
const TABLE: readonly [RegExp, string] = [
  /^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?$/,
  'must be a name of letters, digits and _, or schema.table',
]
/** As a template leaves behind whose variable was not set: clients then send none. */
const EMPTY_PASSWORD = /^\w+:\/\/[^/@?#]*:@/
const NO_PASSWORD = 'has an empty password: give it, or leave out the colon'
const REDIS_URL = { pattern: '^rediss?://' }

const NODES: Kind<readonly string[]> = {
  schema: { type: 'array', minItems: 1, maxItems: MAX_NODES, items: { type: 'string', ...REDIS_URL } },
  read(section, name) {
    const nodes = section.secrets(name, 'addresses of cluster nodes')
    if (nodes !== undefined && (nodes.length < 1 || nodes.length > MAX_NODES)) section.fault(name, `must be 1 to ${MAX_NODES}`)
    for (const fault of nodes?.map(redisUrlFault) ?? []) if (fault !== undefined) section.fault(name, fault)
    return nodes
  },
  shown: (nodes) => nodes.map(redisUrlText),
}

/** A single server, or some nodes of a cluster; `net` is the network of the examples. */
const redisPlace = (url: string, net: string) => ({
  url: option(
    'url',
    { ...secret(REDIS_URL, redisUrlFault), shown: redisUrlText },
    {
      what: 'The server: `redis://` or `rediss://`, with user and password if needed. Default: none, give `nodes`.',
      example: url,
    },
  ),
  nodes: option('nodes', NODES, {
    what: 'Instead of `url`: 1 to 100 URLs of nodes of a cluster. Default: none.',
    example: [`redis://${net}.1:6379`, `redis://${net}.2:6379`],
  }),
})
const REDIS_PLACE = redisPlace('redis://127.0.0.1:6379', '10.0.0')
const HOME_REDIS = redisPlace('redis://10.1.0.1:6379', '10.1.0')

const postgresPlace = (example: string) => ({
  url: option(
    'url',
    { ...secret({ pattern: '^postgres(ql)?://' }, postgresUrlFault), shown: redisUrlText },
    {
      what: 'The server: `postgres://` or `postgresql://`, with user, password and database. Default: none, required.',
      example,
      required: ': give the address of the server',
    },
  ),
  table: option('table', text('sluicegate', TABLE), {
    what: 'The table, also as `schema.table`. Make it once: see postgres.md.',
    standard: 'sluicegate',
    example: 'limits.sluicegate',
  }),
  connections: option('connections', integer(1, 1_000), {
    what: 'The most connections of one process to the server.',
    standard: 10,
    example: 20,
  }),
})
const POSTGRES_PLACE = postgresPlace('postgres://sluicegate@127.0.0.1:5432/limits')
const HOME_POSTGRES = postgresPlace('postgres://sluicegate@10.1.0.1:5432/limits')

/** What every store has. A round trip to a database under load is longer than to Redis. */
const store = (timeoutMs: number) => ({
  prefix: option('prefix', text('sluicegate', PREFIX), {
    what: 'Begins all names in the store. Processes with the same prefix share policies of the same name.',
    usual: 'sluicegate',
    example: 'eu',
  }),
  mode: option('mode', choice(['leased', 'exact'] as const), {
    what: '`leased`: this process leases keys that it takes often, and decides most of their takes itself; any other take is one call. `exact`: one call per decision.',
    usual: 'leased',
    example: 'exact',
  }),
  outage: option('outage', choice(['local', 'open', 'closed'] as const), {
    what: "Without the store: `local` spends this process's share of each budget, `open` allows, `closed` denies.",
    standard: 'local',
    example: 'open',
  }),
  timeoutMs: option('timeout', duration(1, 60_000), {
    what: 'Of a call to the store, 1 ms to 1 min.',
    standard: timeoutMs,
    example: '50ms',
  }),
  refusedAtStart: option('refused-at-start', choice(['fail', 'serve'] as const), {
    what: 'When the store or the home answers at the start, and refuses what limiters need: `fail` ends with the reason, `serve` decides as `outage` says until it is mended.',
    standard: 'fail',
    example: 'serve',
  }),
})
const REDIS_STORE = store(100)
const POSTGRES_STORE = store(250)
export const DEFAULT_REDIS = standardsOf(REDIS_STORE)

const SHARE: Kind<number> = {
  schema: { type: 'number', minimum: 0, maximum: 1 },
  read(section, name) {
    const share = section.number(name)
    if (share !== undefined && !(share >= 0 && share <= 1)) section.fault(name, 'must be from 0 to 1')
    return share
  },
}

/** Where the budgets of several regions are: see `region()` of the library. */
const HOME = {
  region: option('region', text('eu-west', REGION), {
    what: 'The name of this region, its own in each. Default: none, required.',
    example: 'eu-west',
    required: ': give the name of this region, its own in each',
  }),
  prefix: option('prefix', text('sluicegate', PREFIX), {
    what: 'Begins all names at the home, the same in all regions.',
    usual: 'sluicegate',
    example: 'global',
  }),
  share: option('share', SHARE, {
    what: 'The part of each budget that this region decides without the home, 0 to 1. Default: 1 divided by the number of regions.',
    example: 0.25,
  }),
  tooSmall: option('too-small', choice(['home', 'share'] as const), {
    what: 'What decides policies too small to hold tokens of: the `home`, with a call for each take, or the `share` of this region, without calls. Shares of all regions are at most 1 together.',
    standard: 'home',
    example: 'share',
  }),
  cold: option('cold', choice(['home', 'share'] as const), {
    what: 'What decides a key of which the region holds nothing: a call to the `home`, or the `share` at once.',
    standard: 'home',
    example: 'share',
  }),
  timeoutMs: option('timeout', duration(1, 60_000), {
    what: 'Of a call to the home, 1 ms to 1 min.',
    standard: 1_000,
    example: '500ms',
  }),
}

const oneOf = (...names: string[]) => ({ oneOf: names.map((name) => ({ required: [name] })) })

/** The section `storage`, as its schema has it. */
export const STORAGE = {
  redis: part('redis', { ...REDIS_PLACE, ...REDIS_STORE }, {}, oneOf('url', 'nodes')),
  home: part(
    'home',
    {
      ...HOME_REDIS,
      postgres: part('postgres', HOME_POSTGRES, {
        what: 'Instead of `url`: a PostgreSQL. It counts no regions: give each its `share`. Default: none.',
        example: { url: 'postgres://sluicegate@10.1.0.1:5432/limits' },
      }),
      ...HOME,
    },
    {
      what: 'Another Redis or PostgreSQL that holds the budgets of all regions; `redis` or `postgres` is then the store of this one. See regions.md. Default: none.',
    },
    oneOf('url', 'nodes', 'postgres'),
  ),
  postgres: part('postgres', { ...POSTGRES_PLACE, ...POSTGRES_STORE }),
}

/** A Redis or Valkey. */
export interface RedisPlace {
  readonly kind: 'redis'
  /** `redis://` or `rediss://`: one of a single server, or some nodes of a cluster. May hold a password. */
  readonly urls: readonly string[]
  readonly isCluster: boolean
}

/** A table of PostgreSQL. Its URL may hold a password. */
export type PostgresPlace = Omit<ValuesOf<typeof POSTGRES_PLACE>, 'url'> & { readonly kind: 'postgres'; readonly url: string }

type HomeConfig = Omit<ValuesOf<typeof HOME>, 'region'> & { readonly place: RedisPlace | PostgresPlace; readonly region: string }

/** `home`: another store that holds the budgets of all regions. */
type StoreConfig = ValuesOf<typeof REDIS_STORE> & { readonly home?: HomeConfig | undefined }

/** Keys in Redis or Valkey, or in a table of PostgreSQL. */
export type SharedStorageConfig = (RedisPlace & StoreConfig) | (PostgresPlace & StoreConfig)

/** Where the keys are. */
export type StorageConfig = { readonly kind: 'memory' } | SharedStorageConfig

export function readStorage(section: Section): StorageConfig {
  const redis = section.has('redis') ? readStore(section.section('redis'), readPlace, REDIS_STORE) : undefined
  const postgres = section.has('postgres') ? readStore(section.section('postgres'), readPostgresPlace, POSTGRES_STORE) : undefined
  if (redis !== undefined && postgres !== undefined) section.fault('postgres', 'and redis are two stores: give one of them')
  const home = section.has('home') ? readHome(section.section('home')) : undefined
  const own = redis ?? postgres
  if (home !== undefined && own === undefined) section.fault('home', 'needs redis or postgres, the store of this region')
  section.done()
  if (own === undefined) return { kind: 'memory' }
  return home === undefined ? own : { ...own, home }
}

function readStore<Place>(section: Section, place: (section: Section) => Place, options: typeof REDIS_STORE) {
  const config = { ...place(section), ...valuesOf(section, options) }
  section.done()
  return config
}

function readHome(section: Section): HomeConfig {
  const place = readHomePlace(section)
  const { region = '', ...values } = valuesOf(section, HOME)
  if (values.tooSmall === 'share' && !values.share) section.fault('too-small', 'share needs the share of this region: give share, e.g. 0.5')
  section.done()
  return { place, region, ...values }
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
  const { url = '', ...values } = valuesOf(section, POSTGRES_PLACE)
  return { kind: 'postgres', url, ...values }
}

/** The addresses of a server, or of a cluster. */
function readPlace(section: Section, others = ''): RedisPlace {
  const { url, nodes } = valuesOf(section, REDIS_PLACE)
  if (url !== undefined && nodes !== undefined) section.fault('nodes', 'are of a cluster, and url is of a single server: give one of them')
  if (url === undefined && nodes === undefined) section.require('url', `: give url for a single server, or nodes for a cluster${others}`)
  return { kind: 'redis', urls: nodes ?? (url === undefined ? [] : [url]), isCluster: nodes !== undefined }
}

/** Why `text` is no address of a server; undefined when it is one. The driver takes an empty authority for the public ones. */
function postgresUrlFault(text: string): string | undefined {
  if (!URL.canParse(text) || !['postgres:', 'postgresql:'].includes(new URL(text).protocol))
    return 'must be a URL such as postgres://user:password@127.0.0.1:5432/database'
  if (EMPTY_PASSWORD.test(text)) return NO_PASSWORD
  const { searchParams } = new URL(text)
  for (const [name, kind] of [
    ['sslrootcert', 'authorities'],
    ['sslcert', 'certificates'],
    ['sslkey', 'key'],
  ] as const) {
    const file = searchParams.get(name)
    const reason = file === null ? undefined : readPem(file, kind).reason
    if (reason !== undefined) return `${name}: ${file} ${reason}`
  }
  return undefined
}

/** Why `text` is no address of a server; undefined when it is one. Never contains the address, which may hold a password. */
export function redisUrlFault(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url !== undefined && ['redis:', 'rediss:'].includes(url.protocol) && url.hostname !== '')
    return EMPTY_PASSWORD.test(text) ? NO_PASSWORD : undefined
  return 'must be a URL such as redis://127.0.0.1:6379 or rediss://user:password@host:6380'
}

/** The storage as a file has it, without passwords; undefined in memory. */
export function shownStorage(storage: StorageConfig): object | undefined {
  if (storage.kind === 'memory') return undefined
  const own = shownOf(storage.kind === 'redis' ? REDIS_STORE : POSTGRES_STORE, storage)
  const { home } = storage
  return { [storage.kind]: { ...shownPlace(storage), ...own }, ...(home && { home: shownHome(home) }) }
}

function shownHome({ place, ...home }: HomeConfig): object {
  return { ...(place.kind === 'postgres' ? { postgres: shownPlace(place) } : shownPlace(place)), ...shownOf(HOME, home) }
}

function shownPlace(place: RedisPlace | PostgresPlace): object {
  if (place.kind === 'postgres') return shownOf(POSTGRES_PLACE, place)
  return shownOf(REDIS_PLACE, place.isCluster ? { nodes: place.urls } : { url: place.urls[0] })
}

/** The address without its password, for people and logs. */
function redisUrlText(text: string): string {
  const url = new URL(text)
  if (url.password !== '') url.password = '****'
  return url.href
}

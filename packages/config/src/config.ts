import type { EnvoyDomain } from './envoy/envoy-domain.js'
import type { ListenAddress } from './listen-address.js'
import type { PolicyConfig } from './policy-config.js'
import type { QuotaRule, QuotaTimes } from './quotas.js'
import type { SnapshotConfig } from './snapshot.js'
import type { TlsConfig } from './tls.js'
import type { Token } from './tokens.js'

/** A whole configuration, checked: of one file, or of all files of a folder. */
export interface Config {
  readonly listen: Listen
  /** Undefined: without encryption. Unix sockets never have it. */
  readonly tls: TlsConfig | undefined
  readonly tokens: readonly Token[]
  readonly clients: ClientBounds
  readonly stop: StopTimes
  readonly storage: StorageConfig
  readonly policies: readonly PolicyConfig[]
  /** Files in the form of Envoy's rate limit service. */
  readonly domains: readonly EnvoyDomain[]
  readonly throttle: ThrottleConfig
  /** Of the rate limit quota service. */
  readonly quotas: QuotaTimes
  /** Undefined: the entry `name` of a bucket id names the policy. */
  readonly quotaRules: readonly QuotaRule[] | undefined
  readonly dashboard: DashboardConfig
  readonly log: LogConfig
  readonly snapshot: SnapshotConfig
  /** Processes that share the ports; 1: this one alone. */
  readonly processes: number
  /** Worker threads that share the ports; 1: none. */
  readonly threads: number
  /** A file or folder with a configuration that is compared with this one; undefined: none. */
  readonly candidate: string | undefined
}

/** Where each protocol listens; undefined for one that is off. */
export type Listen = Readonly<Record<ListenerName, ListenAddress | undefined>>

/** The surfaces of the service. `admin` is HTTP as well, with the verbs that change other callers' keys. */
export type ListenerName = 'http' | 'grpc' | 'resp' | 'admin'
export const LISTENER_NAMES: readonly ListenerName[] = ['http', 'grpc', 'resp', 'admin']

/** Where the keys are. */
export type StorageConfig = { readonly kind: 'memory' } | RedisStorageConfig | PostgresStorageConfig

/** A Redis or Valkey. */
export interface RedisPlace {
  readonly kind: 'redis'
  /** `redis://` or `rediss://`: one of a single server, or some nodes of a cluster. May hold a password. */
  readonly urls: readonly string[]
  readonly isCluster: boolean
}

/** A table of PostgreSQL. */
export interface PostgresPlace {
  readonly kind: 'postgres'
  /** `postgres://` or `postgresql://`. May hold a password. */
  readonly url: string
  readonly table: string
  /** The most connections of this process. */
  readonly connections: number
}

/** Keys in Redis or Valkey. */
export interface RedisStorageConfig extends RedisPlace, SharedStorageConfig {
  /** Another store that holds the budgets of all regions; undefined: this one. */
  readonly home?: HomeConfig | undefined
}

/** Where the budgets of several regions are: see the option `home` of the library's `createRedisLimiter`. */
export interface HomeConfig {
  readonly place: RedisPlace | PostgresPlace
  readonly region: string
  readonly prefix: string | undefined
  /** Undefined: 1 divided by the number of regions. */
  readonly share: number | undefined
  readonly tooSmall: 'home' | 'share'
  readonly cold: 'home' | 'share'
  readonly timeoutMs: number
}

/** Keys in a table of PostgreSQL. */
export interface PostgresStorageConfig extends PostgresPlace, SharedStorageConfig {}

/** What all stores have. */
interface SharedStorageConfig {
  readonly prefix: string | undefined
  /** See the option `mode` of the library's `createRedisLimiter`; undefined: leased where the policy can be. */
  readonly mode: 'leased' | 'exact' | undefined
  readonly outage: 'local' | 'open' | 'closed'
  readonly timeoutMs: number
  /** When the store or the home answers at the start, and refuses what limiters need. */
  readonly refusedAtStart: 'fail' | 'serve'
}

/** The log, JSON lines on the error output. */
export interface LogConfig {
  readonly level: LogLevel
}

export type LogLevel = (typeof LOG_LEVELS)[number]
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** Bounds on what clients may use. */
export interface ClientBounds {
  readonly maxConnections: number
  /** Connections of one IPv4 address, or of one /56 of IPv6. */
  readonly maxConnectionsPerAddress: number
  /** How long a request's headers may take to arrive. */
  readonly headersMs: number
  /** How long a whole request may take to arrive. */
  readonly requestMs: number
  /** How long a client may leave an answer unread. */
  readonly readMs: number
  /** How long a connection is kept between two requests. */
  readonly idleMs: number
}

/** How the service stops. */
export interface StopTimes {
  /** After SIGTERM: the time for which the port stays open and requests are answered, so that the load balancer sees `/readyz` change. */
  readonly drainMs: number
  /** After that: the time that requests in flight have to finish. */
  readonly finishMs: number
}

/** The table of the keys of `CL.THROTTLE`. Undefined: the library's defaults. */
export interface ThrottleConfig {
  readonly maxKeys: number | undefined
  readonly growTo: number | undefined
}

/** The live page at `/`. */
export interface DashboardConfig {
  readonly keys: KeyDisplay
}

/** How the page shows keys; `off` serves no page at all. */
export type KeyDisplay = 'masked' | 'shown' | 'off'

export const KEY_DISPLAYS: readonly KeyDisplay[] = ['masked', 'shown', 'off']

/** Loopback only, unless the file or the command line says otherwise: by default the service authenticates no client. */
export const DEFAULT_LISTEN: Listen = { http: { host: '127.0.0.1', port: 8080 }, grpc: undefined, resp: undefined, admin: undefined }
export const DEFAULT_STORAGE: StorageConfig = { kind: 'memory' }
export const DEFAULT_LOG: LogConfig = { level: 'info' }
export const DEFAULT_CLIENTS: ClientBounds = {
  maxConnections: 10_000,
  maxConnectionsPerAddress: 5_000,
  headersMs: 10_000,
  requestMs: 15_000,
  readMs: 10_000,
  // Longer than a proxy's own (nginx: 60 s), so that the proxy closes first.
  idleMs: 75_000,
}
/** Long enough for a probe every second or two to see it, and well below the 30 s after which Kubernetes ends a process. */
export const DEFAULT_STOP: StopTimes = { drainMs: 5_000, finishMs: 10_000 }
export const DEFAULT_DASHBOARD: DashboardConfig = { keys: 'masked' }
/** Sections other than policies: each stands in one file only, and takes effect at a start only. */
export const SETTINGS = [
  'listen',
  'tls',
  'tokens',
  'clients',
  'stop',
  'storage',
  'throttle',
  'quotas',
  'dashboard',
  'log',
  'snapshot',
  'processes',
  'threads',
  'candidate',
] as const satisfies readonly (keyof Config)[]

import type { ClientBounds, StopTimes } from './clients.js'
import type { EnvoyDomain } from './envoy/envoy-domain.js'
import type { Listen } from './listen.js'
import { choice, option, text, type ValuesOf } from './option.js'
import type { PolicyConfig } from './policy-config.js'
import type { PricesConfig } from './prices.js'
import type { QuotaRule, QuotaTimes } from './quotas.js'
import type { SnapshotConfig } from './snapshot.js'
import type { StorageConfig } from './storage.js'
import type { ThrottleConfig } from './table-size.js'
import type { TlsConfig } from './tls.js'
import type { Token } from './tokens.js'
import type { WebhookConfig } from './webhook.js'

export { type ClientBounds, DEFAULT_CLIENTS, DEFAULT_STOP, type StopTimes } from './clients.js'
export { LISTENER_NAMES, type Listen, type ListenerName } from './listen.js'
export type { PostgresPlace, RedisPlace, SharedStorageConfig, StorageConfig } from './storage.js'
export type { ThrottleConfig } from './table-size.js'

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
  /** What tokens of models cost; undefined: no costs by model. */
  readonly prices: PricesConfig | undefined
  readonly dashboard: ValuesOf<typeof DASHBOARD>
  readonly log: ValuesOf<typeof LOG>
  readonly snapshot: SnapshotConfig
  /** Processes that share the ports; 1: this one alone. */
  readonly processes: number
  /** Worker threads that share the ports; 1: none. */
  readonly threads: number
  /** A file or folder with a configuration that is compared with this one; undefined: none. */
  readonly candidate: string | undefined
  /** Where soft limits are announced; undefined: in the log and metrics alone. */
  readonly webhook: WebhookConfig | undefined
}

export type LogLevel = (typeof LOG_LEVELS)[number]
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** The section `log`: JSON lines on the error output. */
export const LOG = {
  level: option('level', choice(LOG_LEVELS), {
    what: 'The least level that is logged, as JSON lines on the error output. Keys and secrets are never in it.',
    standard: 'info',
    example: 'warn',
  }),
}

/** How the page shows keys; `off` serves no page at all. */
export type KeyDisplay = 'masked' | 'shown' | 'off'

/** The section `dashboard`: the live page at `/`. */
export const DASHBOARD = {
  keys: option('keys', choice<KeyDisplay>(['masked', 'shown', 'off']), {
    what: '`masked`: the page shows pseudonyms. `shown`: the keys. `off`: no page, and no list of keys is kept.',
    standard: 'masked',
    example: 'off',
  }),
}

export const CANDIDATE = option('candidate', text('next.yaml'), {
  what: 'A file or folder, relative to this file, with a configuration that decides beside this one, without effect. Default: none.',
  example: 'next/gate.yaml',
})

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
  'prices',
  'dashboard',
  'log',
  'snapshot',
  'processes',
  'threads',
  'candidate',
  'webhook',
] as const satisfies readonly (keyof Config)[]

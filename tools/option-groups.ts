/** A part of docs/options.md: the options of an interface of the library. */
export interface OptionGroup {
  /** What takes the options, as it begins their headings: `createLimiter`. */
  readonly of: string
  readonly interface: string
  /** In `packages/sluicegate/src`. */
  readonly file: string
  /** Where the options are explained, from `docs`; of single options elsewhere. */
  readonly link: string
  readonly links?: Readonly<Record<string, string>>
  /** Options that an earlier group explains. */
  readonly omit?: readonly string[]
  /** What takes a single option, too, for its heading. */
  readonly also?: Readonly<Record<string, string>>
  /** What an example needs to compile, beside {@link EXAMPLES_PRELUDE}; an example that is an object is one of `interface`. */
  readonly prelude?: string
}

/** The parts of the page, in its order. */
export const OPTION_SECTIONS: readonly { readonly title: string; readonly about: string; readonly groups: readonly OptionGroup[] }[] = [
  {
    title: 'Policies',
    about: 'A duration is a number of milliseconds or a text: `250ms`, `10s`, `1m`, `24h`, `30d`.',
    groups: [
      group('every policy', 'PolicyOptions', 'policy/single-policy.ts', 'which-limiter.md', {
        links: { limit: 'which-limiter.md#the-largest-limits', window: 'policies/fixed-window.md' },
      }),
      group('tokenBucket, gcra', 'RateOptions', 'policy/single-policy.ts', 'policies/token-bucket.md'),
      group('fixedWindow', 'FixedWindowOptions', 'policy/single-policy.ts', 'policies/fixed-window.md', { omit: ['window'] }),
      group('concurrency', 'ConcurrencyOptions', 'policy/single-policy.ts', 'policies/concurrency.md'),
    ],
  },
  {
    title: 'Limiters in memory',
    about: '`attachLimiter` and `restoreLimiter` take some of them again: those that hold functions, clocks and lists.',
    groups: [
      group('createLimiter', 'LimiterOptions', 'limiter.ts', 'memory.md', {
        links: {
          hotKeys: 'memory.md#watching',
          policyFor: 'exceptions.md#another-policy-for-some-keys',
          policies: 'exceptions.md#another-policy-for-some-keys',
          overrides: 'exceptions.md#policies-of-single-keys',
          banAfter: 'exceptions.md#ban-after-repeated-denials',
          allow: 'exceptions.md#allow-and-deny-lists',
          deny: 'exceptions.md#allow-and-deny-lists',
          shadow: 'exceptions.md#shadow-see-what-would-be-denied',
        },
        also: {
          maxKeys: 'createRateTable, serveLimiter, limiterObject, limitedFetch',
          onFull: 'serveLimiter, limiterObject',
          hotKeys: 'createRateTable',
          overrides: 'serveLimiter',
          policyFor: 'limitedFetch',
          shadow: 'rateLimit',
        },
      }),
      group('createLimiter, createQueue, limitedFetch, createLedger', 'TurnOptions', 'arguments.ts', 'waiting.md', {
        links: { clock: 'clocks.md' },
        also: { clock: 'createRateTable, serveLimiter, limiterObject, slowDown' },
      }),
      group('createLimiter', 'WatchOptions', 'watch-options.ts', 'budgets.md#a-ledger'),
      group('createLimiter', 'SoftLimitOptions', 'soft-limit-options.ts', 'budgets.md#soft-limits'),
      group('createLedger', 'LedgerOptions', 'ledger/ledger.ts', 'budgets.md#a-ledger'),
      group('banAfter', 'BanOptions', 'ban-options.ts', 'exceptions.md#ban-after-repeated-denials'),
      group('wait, run', 'WaitOptions', 'arguments.ts', 'waiting.md', {
        also: { signal: 'slowed.take', maxWait: 'reserve, createQueue, limitedFetch', cost: 'slowed.take' },
      }),
      group('open', 'OpenOptions', 'holds/hold.ts', 'budgets.md', { prelude: 'const limiter = createLimiter(policy)' }),
    ],
  },
  {
    title: 'Limiters over stores',
    about: 'All also take the options of limiters in memory but `onFull`. What a store cannot have it refuses, with what to do instead.',
    groups: [
      group('createLimiter', 'SharedOptions', 'shared/shared-options.ts', 'shared.md', {
        links: {
          mode: 'shared.md#leased-or-exact',
          lease: 'shared.md#leased-or-exact',
          outage: 'outages.md',
          share: 'outages.md#the-share-of-a-process',
          timeout: 'outages.md',
        },
        also: {
          mode: 'serveLimiter, limiterObject',
          lease: 'serveLimiter, limiterObject',
          timeout: 'region',
          share: 'region',
          store: 'rateLimit',
        },
        omit: ['overrides'],
      }),
      group('redis, postgres, casStore', 'StoreOptions', 'shared/store.ts', 'shared.md'),
      group('redis', 'RedisOptions', 'redis/redis.ts', 'redis.md'),
      group('postgresTable', 'PostgresTableOptions', 'postgres/table-name.ts', 'postgres.md', {
        also: { table: 'postgres, postgresLedger, postgresLedgerTable' },
      }),
      group('primary', 'PrimaryOptions', 'cluster/primary.ts', 'cluster.md'),
      group('serveLimiter', 'ServeOptions', 'cluster/serve-limiter.ts', 'cluster.md', { prelude: 'const limiter = createLimiter(policy)' }),
      group('region', 'RegionOptions', 'regions/region-options.ts', 'regions.md'),
      group('durableObjects', 'DurableObjectsOptions', 'durable-objects/durable-objects.ts', 'edge.md'),
    ],
  },
  {
    title: 'Queues',
    about: '`run` and `wrap` of a limiter have a queue with the defaults. `wrap` takes the options of `run`, too.',
    groups: [
      group('createQueue', 'QueueOptions', 'queue/queue-options.ts', 'queue.md', { also: { concurrency: 'limitedFetch' } }),
      group('run', 'RunOptions', 'queue/queue-options.ts', 'queue.md', {
        omit: ['cost'],
        also: { timeout: 'createQueue', priority: 'limitedFetch' },
      }),
      group('wrap', 'WrapOptions', 'queue/queue-options.ts', 'queue.md'),
    ],
  },
  {
    title: 'Middleware',
    about: '`rateLimit` of every framework, and the options of its parts.',
    groups: [
      group('rateLimit', 'LimitOptions', 'middleware/middleware-options.ts', 'frameworks.md', {
        omit: ['store'],
        links: {
          key: 'keys.md',
          policy: 'frameworks.md#a-policy-for-each-request',
          slowDown: 'frameworks.md#slow-down',
        },
      }),
      group('rateLimit', 'MiddlewareOptions', 'middleware/middleware-options.ts', 'frameworks.md', {
        links: { headers: 'headers.md', body: 'headers.md', counts: 'frameworks.md#counting-by-response', onOutage: 'outages.md' },
      }),
      group('rateLimit in Fastify', 'HookOption', 'adapters/fastify.ts', 'frameworks.md#fastify', {
        prelude:
          "const { rateLimit } = await import('sluicegate/fastify'); const { default: fastify } = await import('fastify'); const app = fastify()",
      }),
      group('rateLimit in Hono and for Fetch', 'AddressOption', 'adapters/hono.ts', 'frameworks.md#hono', {
        prelude: "const { rateLimit } = await import('sluicegate/hono')",
      }),
      group('slowDown', 'SlowDownOptions', 'slow-down.ts', 'frameworks.md#slow-down'),
      group('headers', 'HeaderOptions', 'headers/header-writer.ts', 'headers.md', { also: { unit: 'rateLimit' } }),
      group('address', 'AddressOptions', 'keys/address.ts', 'keys.md'),
      group('apiKey', 'ApiKeyOptions', 'keys/readers.ts', 'keys.md'),
      group('readers of keys', 'ReaderOptions', 'keys/key-reader.ts', 'keys.md'),
    ],
  },
  {
    title: 'Outbound',
    about: '`limited`, the interceptor for undici, takes the same options as `limitedFetch`.',
    groups: [
      group('limitedFetch', 'OutboundOptions', 'outbound/outbound-options.ts', 'outbound.md', {
        omit: ['policyFor', 'priority', 'concurrency', 'maxKeys'],
      }),
    ],
  },
]

function group(of: string, interfaceName: string, file: string, link: string, more: Partial<OptionGroup> = {}): OptionGroup {
  return { of, interface: interfaceName, file, link, ...more }
}

/** Names that examples use. */
export const EXAMPLES_PRELUDE = `
import cluster from 'node:cluster'
import { concurrency, createLimiter, createQueue, credits, fixedWindow, levels, type LimiterOptions, manualClock, type Policy, type Store, slidingLog, slidingWindow, slowDown, tokenBucket } from 'sluicegate'
import { primary, serveLimiter } from 'sluicegate/cluster'
import { durableObjects, limiterObject, type ObjectNamespace } from 'sluicegate/durable-objects'
import { type HeaderOptions } from 'sluicegate/http'
import { address, apiKey, header } from 'sluicegate/keys'
import { createLedger, type LedgerSink } from 'sluicegate/ledger'
import { limitedFetch } from 'sluicegate/outbound'
import { postgres, type PostgresClient, postgresLedger, postgresTable } from 'sluicegate/postgres'
import { redis, type RedisClient } from 'sluicegate/redis'
import { region } from 'sluicegate/regions'
import { casStore, type CasStore } from 'sluicegate/store'
import { rateLimit } from 'sluicegate/express'
declare const store: Store, local: Store, home: Store
declare const name: string
declare const mine: CasStore
declare const client: RedisClient, a: RedisClient, b: RedisClient
declare const pool: PostgresClient
declare const env: { LIMITS: ObjectNamespace }
declare const waitUntil: (promise: Promise<unknown>) => void
declare const policy: Policy, free: Policy, pro: Policy
declare const plans: Map<string, Policy>
declare const policyFor: (key: string) => Policy | undefined
declare const org: Policy, team: Policy
declare const sink: LedgerSink
declare const banned: Set<string>
declare const limiter: ReturnType<typeof createLimiter>
declare const job: () => Promise<void>
declare const send: (user: string) => Promise<void>
declare const ask: () => Promise<{ usage: { total_tokens: number } }>
declare const getConnInfo: (context: unknown) => { remote: { address: string } }
`

/** Where sections of the configuration file are explained, by the beginning of an option's path; the longest that fits. */
export const CONFIG_LINKS: Readonly<Record<string, string>> = {
  listen: 'service-run.md#listeners',
  tls: 'service-security.md#tokens-and-certificates',
  tokens: 'service-security.md#tokens-and-certificates',
  candidate: 'service-run.md#candidate',
  clients: 'service-security.md#bounds',
  stop: 'service-run.md#stopping',
  storage: 'service.md#storage',
  'storage.redis.outage': 'outages.md',
  policies: 'service.md#configuration',
  'policies.NAME.tiers': 'tiers.md#tiers',
  'policies.NAME.keys': 'tiers.md#tiers',
  'policies.NAME.tier-file': 'tiers.md#tiers',
  'policies.NAME.priorities': 'tiers.md#priorities',
  'policies.NAME.default-priority': 'tiers.md#priorities',
  'policies.NAME.max-priority': 'tiers.md#priorities',
  'policies.NAME.all-of': 'service.md#several-policies-at-once',
  'policies.NAME.levels': 'service.md#several-policies-at-once',
  'policies.NAME.max-keys': 'memory.md',
  'policies.NAME.max-settle': 'service-api.md#reserve-and-settle',
  'policies.NAME.soft': 'service.md#soft-limits',
  'policies.NAME.on-full': 'memory.md#when-the-table-is-full',
  processes: 'service-run.md#more-cores',
  threads: 'service-run.md#more-cores',
  throttle: 'resp.md#clthrottle',
  quotas: 'rlqs.md#rules',
  prices: 'model-tokens.md#prices',
  dashboard: 'monitoring.md#the-page',
  log: 'service-run.md',
  snapshot: 'service-run.md#snapshots',
  webhook: 'service.md#soft-limits',
}

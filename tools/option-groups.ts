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
  /** Options that an earlier group has in the same words. */
  readonly omit?: readonly string[]
  /** What an example needs to compile, beside {@link EXAMPLES_PRELUDE}; an example that is an object is one of `interface`. */
  readonly prelude?: string
}

/** The parts of the page, in its order. */
export const OPTION_SECTIONS: readonly { readonly title: string; readonly about: string; readonly groups: readonly OptionGroup[] }[] = [
  {
    title: 'Policies',
    about: '`gcra` has the options of `tokenBucket`. A duration is a number of milliseconds or a text: `250ms`, `10s`, `1m`, `24h`, `30d`.',
    groups: [
      { of: 'tokenBucket', interface: 'RateOptions', file: 'policy/single-policy.ts', link: 'policies/token-bucket.md' },
      {
        of: 'fixedWindow',
        interface: 'FixedWindowOptions',
        file: 'policy/single-policy.ts',
        link: 'policies/fixed-window.md',
        omit: ['limit', 'name'],
      },
      {
        of: 'slidingWindow',
        interface: 'SlidingWindowOptions',
        file: 'policy/single-policy.ts',
        link: 'policies/sliding-window.md',
        omit: ['limit', 'window', 'name'],
      },
      {
        of: 'slidingLog',
        interface: 'SlidingLogOptions',
        file: 'policy/single-policy.ts',
        link: 'policies/sliding-log.md',
        omit: ['window', 'name'],
      },
      {
        of: 'concurrency',
        interface: 'ConcurrencyOptions',
        file: 'policy/single-policy.ts',
        link: 'policies/concurrency.md',
        omit: ['name'],
      },
    ],
  },
  {
    title: 'Limiters in memory',
    about: '`attachLimiter` and `restoreLimiter` take some of them again: those that hold functions, clocks and lists.',
    groups: [
      {
        of: 'createLimiter',
        interface: 'LimiterOptions',
        file: 'limiter.ts',
        link: 'memory.md',
        links: {
          clock: 'clocks.md',
          hotKeys: 'memory.md#watching',
          maxWaiters: 'waiting.md',
          queue: 'queue.md',
          policyFor: 'exceptions.md#another-policy-for-some-keys',
          policies: 'exceptions.md#another-policy-for-some-keys',
          overrides: 'exceptions.md#policies-of-single-keys',
          banAfter: 'exceptions.md#ban-after-repeated-denials',
          allow: 'exceptions.md#allow-and-deny-lists',
          deny: 'exceptions.md#allow-and-deny-lists',
          shadow: 'exceptions.md#shadow-see-what-would-be-denied',
        },
      },
      { of: 'banAfter', interface: 'BanOptions', file: 'ban-options.ts', link: 'exceptions.md#ban-after-repeated-denials' },
      { of: 'wait', interface: 'WaitOptions', file: 'arguments.ts', link: 'waiting.md' },
    ],
  },
  {
    title: 'Limiters over Redis, node:cluster and stores',
    about:
      'All also take `policyFor`, `policies`, `banAfter`, `allow`, `deny` and `shadow` of `createLimiter`. Those from `outage` to `overrides` are of `createClusterLimiter` too, and but for `overrides` of `createStoreLimiter`.',
    groups: [
      {
        of: 'createRedisLimiter',
        interface: 'RedisLimiterOptions',
        file: 'redis/create-redis-limiter.ts',
        link: 'redis.md',
        links: { mode: 'redis.md#leased-or-exact', lease: 'redis.md#leased-or-exact' },
      },
      {
        of: 'createRedisLimiter',
        interface: 'SharedOptions',
        file: 'shared/shared-options.ts',
        link: 'redis.md',
        links: {
          outage: 'outages.md',
          localShare: 'outages.md#the-share-of-a-process',
          timeoutMs: 'outages.md',
          queue: 'queue.md',
          overrides: 'redis.md#policies-of-single-keys',
        },
      },
      { of: 'createClusterLimiter', interface: 'ClusterLimiterOptions', file: 'cluster/create-cluster-limiter.ts', link: 'cluster.md' },
      { of: 'createPostgresLimiter', interface: 'PostgresStoreOptions', file: 'postgres/postgres-store.ts', link: 'postgres.md' },
      { of: 'postgresTable', interface: 'PostgresTableOptions', file: 'postgres/table-name.ts', link: 'postgres.md' },
      { of: 'createStoreLimiter', interface: 'StoreLimiterOptions', file: 'store/create-store-limiter.ts', link: 'stores.md' },
      { of: 'serveLimiter', interface: 'ServeOptions', file: 'cluster/serve-limiter.ts', link: 'cluster.md' },
    ],
  },
  {
    title: 'Durable Objects',
    about:
      '`createDurableObjectLimiter` also takes the options from `outage` to `hotKeys` of `createRedisLimiter`, and the layers of `createLimiter`.',
    groups: [
      {
        of: 'createDurableObjectLimiter',
        interface: 'DurableObjectLimiterOptions',
        file: 'durable-objects/create-durable-object-limiter.ts',
        link: 'edge.md',
      },
      { of: 'limiterObject', interface: 'LimiterObjectOptions', file: 'durable-objects/limiter-object.ts', link: 'edge.md' },
    ],
  },
  {
    title: 'Queues',
    about: '`limiter.queue(options)` and the option `queue` take those of `createQueue` but `clock`, `wrap` those of `run` too.',
    groups: [
      { of: 'createQueue', interface: 'QueueOptions', file: 'queue/queue-options.ts', link: 'queue.md' },
      { of: 'createQueue', interface: 'OwnQueueOptions', file: 'queue/queue-options.ts', link: 'queue.md' },
      { of: 'run', interface: 'RunOptions', file: 'queue/queue-options.ts', link: 'queue.md' },
      { of: 'wrap', interface: 'WrapOptions', file: 'queue/queue-options.ts', link: 'queue.md' },
    ],
  },
  {
    title: 'Middleware',
    about: '`rateLimit` of every framework, and the options of its parts.',
    groups: [
      {
        of: 'rateLimit',
        interface: 'LimitOptions',
        file: 'middleware/middleware-options.ts',
        link: 'frameworks.md',
        links: {
          key: 'keys.md',
          unit: 'headers.md',
          policy: 'frameworks.md#a-policy-for-each-request',
          slowDown: 'frameworks.md#slow-down',
        },
      },
      {
        of: 'rateLimit',
        interface: 'MiddlewareOptions',
        file: 'middleware/middleware-options.ts',
        link: 'frameworks.md',
        links: { headers: 'headers.md', body: 'headers.md', counts: 'frameworks.md#counting-by-response', onOutage: 'outages.md' },
      },
      {
        of: 'rateLimit in Fastify',
        interface: 'HookOption',
        file: 'adapters/fastify.ts',
        link: 'frameworks.md#fastify',
        prelude:
          "const { rateLimit } = await import('sluicegate/fastify'); const { default: fastify } = await import('fastify'); const app = fastify()",
      },
      {
        of: 'rateLimit in Hono',
        interface: 'AddressOption',
        file: 'adapters/hono.ts',
        link: 'frameworks.md#hono',
        prelude: "const { rateLimit } = await import('sluicegate/hono')",
      },
      {
        of: 'rateLimit for Fetch',
        interface: 'AddressOption',
        file: 'adapters/fetch.ts',
        link: 'frameworks.md#elsewhere',
        prelude: "const { rateLimit } = await import('sluicegate/fetch')",
      },
      { of: 'slowDown', interface: 'SlowDownOptions', file: 'slow-down.ts', link: 'frameworks.md#slow-down' },
      { of: 'headers', interface: 'HeaderOptions', file: 'headers/header-writer.ts', link: 'headers.md' },
      { of: 'address', interface: 'AddressOptions', file: 'keys/address.ts', link: 'keys.md' },
      { of: 'apiKey', interface: 'ApiKeyOptions', file: 'keys/readers.ts', link: 'keys.md' },
      { of: 'readers of keys', interface: 'ReaderOptions', file: 'keys/key-reader.ts', link: 'keys.md' },
    ],
  },
  {
    title: 'Outbound',
    about: '`limited`, the interceptor for undici, takes the same options as `limitedFetch`.',
    groups: [{ of: 'limitedFetch', interface: 'OutboundOptions', file: 'outbound/outbound-options.ts', link: 'outbound.md' }],
  },
]

/** Names that examples use. */
export const EXAMPLES_PRELUDE = `
import cluster from 'node:cluster'
import { type BanOptions, concurrency, createLimiter, createQueue, fixedWindow, manualClock, type Policy, slidingLog, slidingWindow, type SlowDownOptions, tokenBucket } from 'sluicegate'
import { createClusterLimiter, serveLimiter } from 'sluicegate/cluster'
import { createDurableObjectLimiter, limiterObject, type ObjectNamespace } from 'sluicegate/durable-objects'
import { type HeaderOptions } from 'sluicegate/http'
import { address, apiKey, header } from 'sluicegate/keys'
import { limitedFetch } from 'sluicegate/outbound'
import { createPostgresLimiter, type PostgresClient, postgresTable } from 'sluicegate/postgres'
import { createRedisLimiter, type RedisClient } from 'sluicegate/redis'
import { createStoreLimiter, type CasStore } from 'sluicegate/store'
import { rateLimit } from 'sluicegate/express'
declare const store: CasStore
declare const client: RedisClient, homeClient: RedisClient
declare const pool: PostgresClient
declare const namespace: ObjectNamespace
declare const waitUntil: (promise: Promise<unknown>) => void
declare const policy: Policy, free: Policy, pro: Policy
declare const plans: Map<string, Policy>
declare const policyFor: (key: string) => Policy | undefined
declare const banned: Set<string>
declare const limiter: ReturnType<typeof createLimiter>
declare const job: () => Promise<void>
declare const send: (user: string) => Promise<void>
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
  'policies.NAME.max-keys': 'memory.md',
  'policies.NAME.grow-to': 'memory.md',
  'policies.NAME.on-full': 'memory.md#when-the-table-is-full',
  processes: 'service-run.md#more-cores',
  threads: 'service-run.md#more-cores',
  throttle: 'resp.md#clthrottle',
  quotas: 'rlqs.md#rules',
  dashboard: 'monitoring.md#the-page',
  log: 'service-run.md',
  snapshot: 'service-run.md#snapshots',
}

import type { PolicyConfig } from './policy-config.js'
import type { Section } from './section.js'
import { didYouMean } from './spelling.js'

/** Times of the assignments of the rate limit quota service. */
export interface QuotaTimes {
  /** How long an assignment is in force; whole seconds, as Envoy counts no fractions. */
  readonly ttlSeconds: number
  /** After that time without a request a bucket is abandoned. */
  readonly idleMs: number
}

/** Which buckets of data planes a policy limits. */
export interface QuotaRule {
  /** Name of a policy whose rate can be split. */
  readonly policy: string
  /** Undefined: any. */
  readonly domain: string | undefined
  /** Entries that a bucket id must have; a `*` in a value stands for any text. */
  readonly match: ReadonlyMap<string, string>
  /** Entries whose values have a budget of their own; undefined: all that `match` leaves open. */
  readonly key: readonly string[] | undefined
  /** Of a policy with windows: tokens that may be admitted at once. Undefined: a tenth of the limit. */
  readonly burst: number | undefined
}

const DEFAULT_QUOTAS: QuotaTimes = { ttlSeconds: 15, idleMs: 600_000 }
const MAX_RULES = 1_000
/** As of bucket ids. */
const MAX_ENTRIES = 16
const NO_QUOTA: ReadonlySet<string> = new Set(['concurrency', 'all-of'])

/** Whether the rate of a policy can be split among data planes. */
export function isSplittable({ policy }: PolicyConfig): boolean {
  return !NO_QUOTA.has(policy.algorithm)
}

/** The section `quotas`; `policies` are those of all files in our own form. */
export function readQuotas(
  section: Section,
  policies: readonly PolicyConfig[],
): { readonly quotas: QuotaTimes; readonly quotaRules: readonly QuotaRule[] | undefined } {
  const ttlMs = section.duration('ttl', 1_000, 3_600_000)
  if (ttlMs !== undefined && ttlMs % 1_000 !== 0) section.fault('ttl', 'must be whole seconds, for example 15s')
  const idleMs = section.duration('idle', 1_000, 30 * 86_400_000) ?? DEFAULT_QUOTAS.idleMs
  const list = section.list('rules', 'rules such as { policy: per-team, domain: edge }')
  if (list !== undefined && list.length > MAX_RULES) section.fault('rules', `must be at most ${MAX_RULES}, not ${list.length}`)
  const byName = new Map(policies.map((each) => [each.policy.name, each]))
  const quotaRules = list?.flatMap((each) => readRule(each, byName) ?? [])
  section.done()
  return { quotas: { ttlSeconds: ttlMs === undefined ? DEFAULT_QUOTAS.ttlSeconds : ttlMs / 1_000, idleMs }, quotaRules }
}

function readRule(section: Section, policies: ReadonlyMap<string, PolicyConfig>): QuotaRule | undefined {
  section.require('policy')
  const policy = section.text('policy', 'per-team')
  const domain = section.text('domain', 'edge')
  const matching = section.section('match')
  const match = new Map(matching.names().flatMap((name) => entryOf(matching, name)))
  matching.done()
  if (match.size > MAX_ENTRIES) section.fault('match', `must be at most ${MAX_ENTRIES} entries, not ${match.size}`)
  const key = section.texts('key', 'names of entries, for example [team]')
  const config = policy === undefined ? undefined : policies.get(policy)
  if (policy !== undefined && config === undefined)
    section.fault('policy', `is no policy of these files${didYouMean(policy, [...policies.keys()])}`)
  if (config !== undefined && !isSplittable(config))
    section.fault('policy', `is ${config.policy.algorithm}, which has no rate that can be split among data planes`)
  const burst = readBurst(section, config)
  section.done()
  return policy === undefined ? undefined : { policy, domain, match, key, burst }
}

function entryOf(matching: Section, name: string): [string, string][] {
  const value = matching.label(name, 'staging or "*"')
  return value === undefined ? [] : [[name, value]]
}

function readBurst(section: Section, config: PolicyConfig | undefined): number | undefined {
  const burst = section.integer('burst', 1, Math.max(1, (config?.policy.limit ?? Number.MAX_SAFE_INTEGER) - 1))
  const algorithm = config?.policy.algorithm
  if (burst !== undefined && (algorithm === 'token-bucket' || algorithm === 'gcra'))
    section.nameFault('burst', `is for policies with windows: the burst of ${algorithm} is that of the policy`)
  return burst
}

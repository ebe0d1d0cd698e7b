import { duration, type Kind, option, schemaOf, text, type ValuesOf, valuesOf } from './option.js'
import type { PolicyConfig } from './policy-config.js'
import type { Section } from './section.js'
import { didYouMean } from './spelling.js'
import { timeSpanText } from './time-span.js'

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

const MAX_RULES = 1_000
/** As of bucket ids. */
const MAX_ENTRIES = 16
const NO_QUOTA: ReadonlySet<string> = new Set(['concurrency', 'all-of'])

/** Whole seconds, as Envoy counts no fractions. */
const SECONDS: Kind<number> = {
  schema: { type: 'string', pattern: '^\\d{1,9}(ms|s|m|h|d)$' },
  read(section, name) {
    const ms = section.duration(name, 1_000, 3_600_000)
    if (ms !== undefined && ms % 1_000 !== 0) section.fault(name, 'must be whole seconds, for example 15s')
    return ms === undefined ? undefined : ms / 1_000
  },
  shown: (seconds) => timeSpanText(seconds * 1_000),
}

const ENTRIES: Kind<ReadonlyMap<string, string>> = {
  schema: { type: 'object', maxProperties: MAX_ENTRIES, additionalProperties: { type: ['string', 'number', 'boolean'] } },
  read(section, name) {
    const matching = section.section(name)
    const match = new Map(matching.names().flatMap((entry) => entryOf(matching, entry)))
    matching.done()
    if (match.size > MAX_ENTRIES) section.fault(name, `must be at most ${MAX_ENTRIES} entries, not ${match.size}`)
    return match
  },
  shown: (match) => (match.size > 0 ? Object.fromEntries(match) : undefined),
}

const KEY: Kind<readonly string[]> = {
  schema: { type: 'array', items: { type: 'string' } },
  read: (section, name) => section.texts(name, 'names of entries, for example [team]'),
}

export const QUOTA_RULE = {
  policy: option('policy', text('per-team'), {
    what: 'A policy of these files, but `concurrency` and `all-of`.',
    example: 'per-user',
    required: '',
  }),
  domain: option('domain', text('edge'), { what: "The domain of Envoy's filter. Default: any.", example: 'edge' }),
  match: option('match', ENTRIES, {
    what: 'Entries that a bucket id must have, at most 16; `*` stands for any text. Default: any.',
    example: { env: 'prod', team: '*' },
  }),
  key: option('key', KEY, {
    what: 'Entries whose values have separate budgets. Default: all that `match` leaves open.',
    example: ['team'],
  }),
  // Its range is that of the policy.
  burst: option<number>(
    'burst',
    { schema: { type: 'integer', minimum: 1 }, read: () => undefined },
    { what: 'Of a policy with windows: tokens that may be admitted at once. Default: a tenth of the limit.', example: 2 },
  ),
}

/** The section `quotas`: times of the assignments of the rate limit quota service. */
const TIMES = {
  ttlSeconds: option('ttl', SECONDS, {
    what: 'How long an assignment is in force, in whole seconds up to 1 h.',
    standard: 15,
    example: '30s',
  }),
  idleMs: option('idle', duration(1_000, 30 * 86_400_000), {
    what: 'After that time without a request a bucket is abandoned.',
    standard: 600_000,
    example: '5m',
  }),
}

export const QUOTAS = {
  ...TIMES,
  rules: option<readonly Section[]>(
    'rules',
    {
      schema: { type: 'array', maxItems: MAX_RULES, items: schemaOf(QUOTA_RULE) },
      read(section, name) {
        const list = section.list(name, 'rules such as { policy: per-team, domain: edge }')
        if (list !== undefined && list.length > MAX_RULES) section.fault(name, `must be at most ${MAX_RULES}, not ${list.length}`)
        return list
      },
    },
    {
      what: 'Which buckets a policy limits; the first that matches, at most 1,000. Default: the entry `name` of a bucket id names the policy.',
      example: [{ policy: 'per-user', domain: 'edge' }],
    },
  ),
}

export type QuotaTimes = ValuesOf<typeof TIMES>

/** Whether the rate of a policy can be split among data planes. */
export function isSplittable({ policy }: PolicyConfig): boolean {
  return !NO_QUOTA.has(policy.algorithm)
}

/** The section `quotas`; `policies` are those of all files in our own form. */
export function readQuotas(
  section: Section,
  policies: readonly PolicyConfig[],
): { readonly quotas: QuotaTimes; readonly quotaRules: readonly QuotaRule[] | undefined } {
  const { rules, ...quotas } = valuesOf(section, QUOTAS)
  const byName = new Map(policies.map((each) => [each.policy.name, each]))
  const quotaRules = rules?.flatMap((each) => readRule(each, byName) ?? [])
  section.done()
  return { quotas, quotaRules }
}

function readRule(section: Section, policies: ReadonlyMap<string, PolicyConfig>): QuotaRule | undefined {
  const { policy, domain, match = new Map(), key } = valuesOf(section, QUOTA_RULE)
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

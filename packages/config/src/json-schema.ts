import { MAX_PARTS } from './all-of.js'
import { CLIENTS, STOP } from './clients.js'
import { CANDIDATE, DASHBOARD, LOG } from './config.js'
import { CHOICES, MAX_COST, MAX_REQUESTS_PER_UNIT, UNIT_NAMES } from './envoy/read-limit.js'
import { LISTEN } from './listen.js'
import { type JsonSchema, type Option, option, part, schemaOf } from './option.js'
import { MAX_POLICIES } from './policies.js'
import { PRICES } from './prices.js'
import { MAX_CLASSES } from './priorities.js'
import { PROCESSES } from './processes.js'
import { QUOTAS } from './quotas.js'
import { ruleSchema, tierSchema } from './rule.js'
import { SNAPSHOT } from './snapshot.js'
import { SOFT } from './soft.js'
import { STORAGE } from './storage.js'
import { ENVOY_TABLE, TABLE, THROTTLE } from './table-size.js'
import { TLS } from './tls.js'
import { MAX_TOKENS, TOKEN } from './tokens.js'
import { WEBHOOK } from './webhook.js'

// Schemas for editors, of the tables by which files are read. `npm run build` writes them into the package of the service.

const NAME = '^[\\w.-]{1,64}$'
const DRAFT = 'http://json-schema.org/draft-07/schema#'
/** YAML gives a label any of these types. */
const LABEL = { type: ['string', 'number', 'boolean'] }

/** An option that is read by a program of its own; it stands here with its schema alone. */
function told(name: string, schema: JsonSchema, what?: string, example?: unknown): Option<unknown> {
  return option<unknown>(name, { schema, read: () => undefined }, { ...(what !== undefined && { what }), example })
}

const NAMED_PART = told(
  'name',
  { type: 'string', minLength: 1 },
  'The name of the part in responses and headers. Default: `<algorithm>-<limit>-<window>`.',
  'rate',
)

/** Options of a single policy, in one of the two forms of files. */
function ofPolicies(named: (name: string) => string): Record<string, Option<unknown>> {
  const tier = { $ref: '#/$defs/tier' }
  return {
    tiers: told(
      'tiers',
      { type: 'object', propertyNames: { pattern: NAME }, additionalProperties: tier },
      'Limits by name, for some keys. Default: none.',
      { gold: { limit: 1000 } },
    ),
    keys: told(
      'keys',
      { type: 'object', additionalProperties: { anyOf: [{ type: 'string', minLength: 1 }, tier] } },
      'Keys, or prefixes that end in `*`, each with a tier or a limit. Default: none.',
      { acme: { limit: 500 } },
    ),
    tierFile: told(
      named('tier-file'),
      { type: 'string', minLength: 1 },
      'A file with the tiers of keys: .csv, .json, .yaml or .yml, watched. Default: none.',
      'tiers.csv',
    ),
    priorities: told(
      'priorities',
      {
        type: 'object',
        minProperties: 2,
        maxProperties: MAX_CLASSES,
        propertyNames: { pattern: NAME },
        additionalProperties: { type: 'string', pattern: '^\\d{1,2}(\\.\\d{1,2})?%$' },
      },
      '2 to 16 classes of requests, each with the part of the budget that it leaves to higher classes. Default: none.',
      { high: '0%', low: '20%' },
    ),
    defaultPriority: told(
      named('default-priority'),
      LABEL,
      'The class of requests that name none or an unknown one. Default: the class `default`; without one the class that is denied first.',
      'high',
    ),
    maxPriority: told(named('max-priority'), LABEL, 'The highest class that a request may name. Default: the default class.', 'low'),
  }
}

const ALL_OF = {
  algorithm: told('algorithm', { const: 'all-of' }),
  allOf: told(
    'all-of',
    { type: 'array', minItems: 1, maxItems: MAX_PARTS, items: { $ref: '#/$defs/part' } },
    `1 to ${MAX_PARTS} policies that all have to admit a request, each with a \`name\` if needed. Default: none, a single policy.`,
    [
      { algorithm: 'gcra', limit: 20, window: '1s' },
      { algorithm: 'fixed-window', limit: 10_000, window: 'month' },
    ],
  ),
  levels: told(
    'levels',
    { type: 'object', minProperties: 1, maxProperties: MAX_PARTS, additionalProperties: { $ref: '#/$defs/level' } },
    `The same with names, by which requests give their keys: 1 to ${MAX_PARTS}, the widest first. Default: none.`,
    {
      org: { algorithm: 'fixed-window', limit: 1_000_000, window: 'month' },
      user: { algorithm: 'token-bucket', limit: 5_000, window: '1m' },
    },
  ),
  ...TABLE,
  ...SOFT,
}

const SEVERAL = [{ required: ['all-of'] }, { required: ['levels'] }]

const ROOT = {
  listen: part('listen', LISTEN, { what: 'Where each protocol listens.' }),
  tls: part('tls', TLS),
  tokens: told(
    'tokens',
    { type: 'array', maxItems: MAX_TOKENS, items: schemaOf(TOKEN) },
    'Bearer tokens of clients, at most 1,000. Default: none.',
    [{ name: 'gateway', scope: 'decide', secret: '0f0e6a0b7d3c4f52a1' }],
  ),
  candidate: CANDIDATE,
  clients: part('clients', CLIENTS, { what: 'Bounds on what clients may use.' }),
  stop: part('stop', STOP),
  storage: part('storage', STORAGE, { what: 'Where the keys are. Default: in memory.' }),
  policies: told(
    'policies',
    { type: 'object', additionalProperties: { $ref: '#/$defs/policy' }, maxProperties: MAX_POLICIES },
    'Policies by name, 1 to 1,000; requests name them. A name is 1 to 120 printable ASCII characters. Default: none, one is required unless a file for Envoy has rules.',
    { 'per-user': { algorithm: 'token-bucket', limit: 100, window: '1m' } },
  ),
  ...PROCESSES,
  throttle: part('throttle', THROTTLE, { what: 'Room for the keys of CL.THROTTLE.' }),
  quotas: part('quotas', QUOTAS, {
    what: "Budgets that are split among data planes, by Envoy's rate limit quota service.",
  }),
  prices: part('prices', PRICES),
  dashboard: part('dashboard', DASHBOARD),
  log: part('log', LOG),
  snapshot: part('snapshot', SNAPSHOT),
  webhook: part('webhook', WEBHOOK),
}

/** Files in our own form. */
export function ownSchema(): JsonSchema {
  return {
    $schema: DRAFT,
    $id: 'sluicegate',
    title: 'Sluicegate',
    description: 'Configuration of the service sluicegate.',
    $defs: {
      tier: tierSchema('limit'),
      part: ruleSchema({ name: NAMED_PART, ...SOFT }),
      level: ruleSchema(SOFT),
      policy: {
        if: { anyOf: SEVERAL },
        // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
        then: schemaOf(ALL_OF, { oneOf: SEVERAL }),
        else: ruleSchema({ ...TABLE, ...SOFT, ...ofPolicies((name) => name) }),
      },
    },
    ...schemaOf(ROOT),
  }
}

/** Words of YAML 1.1, in any case. */
function anyCase(words: readonly string[]): string {
  const spelled = words.map((word) => word.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`))
  return `^(${spelled.join('|')})$`
}

const YES = ['y', 'yes', 'on', 'true']
const FLAG = { type: ['boolean', 'string'], pattern: anyCase([...YES, 'n', 'no', 'off', 'false']) }

function flag(name: string, what?: string): Option<unknown> {
  return told(name, FLAG, what)
}

function mayBeNull(definition: string): JsonSchema {
  return { anyOf: [{ $ref: `#/$defs/${definition}` }, { type: 'null' }] }
}

const UNIT_OR_WINDOW = [{ required: ['unit'] }, { required: ['window'] }]
const TOKENS = { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER }

const RATE_LIMIT = {
  name: told('name', LABEL, 'For replaces of other limits, and in responses.'),
  replaces: told('replaces', {
    type: 'array',
    items: { type: 'object', properties: { name: LABEL }, additionalProperties: false, required: ['name'] },
  }),
  unlimited: flag('unlimited'),
  unit: told('unit', { type: 'string', pattern: anyCase(UNIT_NAMES) }, 'second, minute, hour, day, week, month or year.'),
  limit: told('requests_per_unit', { type: 'integer', minimum: 0, maximum: MAX_REQUESTS_PER_UNIT }, '0 denies every hit.'),
  chargeDenied: flag('charge_denied', 'Denied hits are charged.'),
  cost: told('cost', { type: 'integer', minimum: 1, maximum: MAX_COST }, 'Tokens of a hit.'),
  algorithm: told('algorithm', { enum: CHOICES }),
  window: told('window', { type: 'string', minLength: 1 }, 'In the place of unit: 30s, or day or month of the calendar.'),
  burst: told('burst', TOKENS),
  timeZone: told('time_zone', { type: 'string', minLength: 1 }),
  ...ENVOY_TABLE,
  ...SOFT,
  ...ofPolicies((name) => name.replaceAll('-', '_')),
}

const DESCRIPTOR = {
  key: told('key', LABEL, 'The name of the entry that requests carry.'),
  value: told('value', { type: [...LABEL.type, 'null'] }, 'Left out: all values, each with a budget of its own. * stands for any text.'),
  ...Object.fromEntries(
    ['share_threshold', 'shadow_mode', 'quota_mode', 'detailed_metric', 'value_to_metric'].map((name) => [name, flag(name)]),
  ),
  ipv6Subnet: told(
    'ipv6_subnet',
    { type: 'integer', minimum: 32, maximum: 128 },
    'Bits of IPv6 by which values that are addresses count. Default 56.',
  ),
  metadata: told('metadata', { type: ['object', 'null'] }),
  rateLimit: told('rate_limit', mayBeNull('rate_limit')),
  descriptors: told('descriptors', mayBeNull('descriptors')),
}

/** Files in the form of Envoy's rate limit service. */
export function envoySchema(): JsonSchema {
  const isUnlimited = { anyOf: [{ const: true }, { type: 'string', pattern: anyCase(YES) }] }
  return {
    $schema: DRAFT,
    $id: 'envoy-ratelimit',
    title: "Envoy's ratelimit service, as sluicegate reads it",
    description: 'Rules of one domain, with the extensions of sluicegate.',
    $defs: {
      tier: tierSchema('requests_per_unit'),
      rate_limit: schemaOf(RATE_LIMIT, {
        allOf: [
          { not: { required: ['unit', 'window'] } },
          {
            if: { required: ['unlimited'], properties: { unlimited: isUnlimited } },
            // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema
            then: { not: { anyOf: UNIT_OR_WINDOW } },
            else: { required: ['requests_per_unit'], anyOf: UNIT_OR_WINDOW },
          },
        ],
      }),
      descriptor: schemaOf(DESCRIPTOR, { required: ['key'] }),
      descriptors: { type: 'array', items: { $ref: '#/$defs/descriptor' } },
    },
    ...schemaOf(
      {
        domain: told('domain', LABEL),
        descriptors: told('descriptors', mayBeNull('descriptors')),
        chargeDenied: flag('charge_denied'),
        priorityKey: told('priority_key', LABEL, 'The key of the entry that names the class of a request.'),
      },
      { required: ['domain'] },
    ),
  }
}

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import { faultsOf } from 'sluicegate-testkit/service/running-service.js'
import { parse } from 'yaml'
import { ALGORITHM_NAMES } from './algorithms.js'
import { parseConfig } from './read-config.js'

type Schema = Record<string, unknown>

const read = (name: string): Schema =>
  JSON.parse(readFileSync(new URL(`../../server/schema/${name}.json`, import.meta.url), 'utf8')) as Schema
const OWN = read('sluicegate')
const ENVOY = read('envoy-ratelimit')
const ajv = new Ajv({
  strict: true,
  strictTypes: false,
  strictRequired: false,
  allErrors: true,
  allowUnionTypes: true,
  addUsedSchema: false,
})
const isOwn = ajv.compile(OWN)
const isEnvoy = ajv.compile(ENVOY)

/** The options that the reader knows in a section, from its own message about one that it does not know. */
function readersOptions(yaml: string): string[] {
  const listed = faultsOf(yaml).flatMap((fault) => /xqzzyqx: unknown option; there are (.*)$/.exec(fault)?.[1] ?? [])
  assert.equal(listed.length, 1, `${yaml}: ${faultsOf(yaml).join('\n')}`)
  return (listed[0] as string).split(', ').sort()
}

function propertiesOf(schema: unknown): string[] {
  return Object.keys((schema as { properties: object }).properties).sort()
}

/** The schema at a path of names, through references. */
function at(root: Schema, ...steps: string[]): unknown {
  let schema: unknown = root
  for (const step of steps) schema = (schema as Schema)[step]
  return schema
}

const POLICY = 'policies: { a: { algorithm: gcra, limit: 1, window: 1s } }\n'
const ofAlgorithm = (name: string): unknown =>
  (at(OWN, '$defs', 'policy', 'else', 'allOf') as { if: { properties: { algorithm: { const: string } } }; then: unknown }[]).find(
    (each) => each.if.properties.algorithm.const === name,
  )?.then
const window = (name: string): string => (name === 'concurrency' ? 'ttl: 1s' : 'window: 1s')

const SECTIONS: readonly [yaml: string, schema: unknown][] = [
  [`${POLICY}xqzzyqx: 1\n`, OWN],
  ...['listen', 'tls', 'clients', 'stop', 'storage', 'throttle', 'quotas', 'dashboard', 'log', 'snapshot'].map(
    (name): [string, unknown] => [`${POLICY}${name}: { xqzzyqx: 1 }\n`, at(OWN, 'properties', name)],
  ),
  [`${POLICY}storage: { redis: { url: "redis://a", xqzzyqx: 1 } }\n`, at(OWN, 'properties', 'storage', 'properties', 'redis')],
  [
    `${POLICY}storage: { redis: { url: "redis://a" }, home: { url: "redis://b", region: r, xqzzyqx: 1 } }\n`,
    at(OWN, 'properties', 'storage', 'properties', 'home'),
  ],
  [
    `${POLICY}storage: { redis: { url: "redis://a" }, home: { postgres: { url: "postgres://b", xqzzyqx: 1 }, region: r } }\n`,
    at(OWN, 'properties', 'storage', 'properties', 'home', 'properties', 'postgres'),
  ],
  [`${POLICY}quotas: { rules: [{ policy: a, xqzzyqx: 1 }] }\n`, at(OWN, 'properties', 'quotas', 'properties', 'rules', 'items')],
  [
    `${POLICY}tokens: [{ name: a, scope: admin, secret: aaaaaaaaaaaaaaaaaaaaaaaa, xqzzyqx: 1 }]\n`,
    at(OWN, 'properties', 'tokens', 'items'),
  ],
  ...ALGORITHM_NAMES.map((name): [string, unknown] => [
    `policies: { a: { algorithm: ${name}, limit: 1, ${window(name)}, xqzzyqx: 1 } }\n`,
    ofAlgorithm(name),
  ]),
  ['policies: { a: { all-of: [{ algorithm: gcra, limit: 1, window: 1s }], xqzzyqx: 1 } }\n', at(OWN, '$defs', 'policy', 'then')],
  ['policies: { a: { algorithm: gcra, limit: 1, window: 1s, tiers: { p: { limit: 1, xqzzyqx: 1 } } } }\n', at(OWN, '$defs', 'tier')],
  ['policies: { a: { algorithm: gcra, limit: 1, window: 1s, keys: { p: { limit: 1, xqzzyqx: 1 } } } }\n', at(OWN, '$defs', 'tier')],
  ['domain: d\ndescriptors: []\nxqzzyqx: 1\n', ENVOY],
  ['domain: d\ndescriptors: [{ key: k, xqzzyqx: 1 }]\n', at(ENVOY, '$defs', 'descriptor')],
  [
    'domain: d\ndescriptors: [{ key: k, rate_limit: { unlimited: true, replaces: [{ name: x, xqzzyqx: 1 }] } }]\n',
    at(ENVOY, '$defs', 'rate_limit', 'properties', 'replaces', 'items'),
  ],
]

test('the schemas have the options that the reader has, section by section', () => {
  for (const [yaml, schema] of SECTIONS) {
    const known = readersOptions(yaml)
    // What only makes a clearer message elsewhere is no option of an all-of.
    const refused = yaml.includes('all-of') ? ['tiers', 'keys', 'tier-file', 'priorities', 'default-priority', 'max-priority'] : []
    assert.deepEqual(
      propertiesOf(schema),
      known.filter((option) => !refused.includes(option)),
      yaml,
    )
  }
  const all = ['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket'].flatMap((algorithm) =>
    readersOptions(
      `domain: d\ndescriptors: [{ key: k, rate_limit: { algorithm: ${algorithm}, unit: day, requests_per_unit: 1, xqzzyqx: 1 } }]\n`,
    ),
  )
  assert.deepEqual(propertiesOf(at(ENVOY, '$defs', 'rate_limit')), [...new Set(all)].sort())
})

/** Files that the reader refuses for a reason that a schema can say. */
const REFUSED = [
  'policies: { a: { algorithm: gcra, limit: 0, window: 1s } }',
  'policies: { a: { algorithm: gcra, limit: 1.5, window: 1s } }',
  'policies: { a: { algorithm: gcra, limit: "1", window: 1s } }',
  'policies: { a: { algorithm: gcra, limit: 1, window: 60 } }',
  'policies: { a: { algorithm: gcra, limit: 1, window: day } }',
  'policies: { a: { algorithm: gcra, limit: 1 } }',
  'policies: { a: { limit: 1, window: 1s } }',
  'policies: { a: { algorithm: leaky, limit: 1, window: 1s } }',
  'policies: { a: { algorithm: fixed-window, limit: 1, window: 1s, burst: 2 } }',
  'policies: { a: { algorithm: concurrency, limit: 1, window: 1s } }',
  'policies: { a: { all-of: [] } }',
  'policies: { a: { all-of: [{ algorithm: gcra, limit: 1, window: 1s, max-keys: 1 }] } }',
  'policies: { a: { algorithm: gcra, limit: 1, window: 1s, on-full: panic } }',
  'policies: { a: { algorithm: gcra, limit: 1, window: 1s, max-keys: 0 } }',
  'policies: { a: { algorithm: gcra, limit: 1, window: 1s, tiers: { p: {} } } }',
  'policies: { a: { algorithm: gcra, limit: 1, window: 1s, keys: { p: 7 } } }',
  'policies: { a: { algorithm: gcra, limit: 1, window: 1s, priorities: { a: 0% } } }',
  'policies: { a: { algorithm: gcra, limit: 1, window: 1s, priorities: { a: 0%, b: 100% } } }',
  `${POLICY}listen: { port: 70000 }`,
  `${POLICY}stop: { drain: 5 }`,
  `${POLICY}log: { level: loud }`,
  `${POLICY}quotas: { ttl: 15 }`,
  `${POLICY}quotas: { rules: [{ domain: edge }] }`,
  `${POLICY}quotas: { rules: [{ policy: a, burst: 0 }] }`,
  `${POLICY}storage: { redis: {} }`,
  `${POLICY}storage: { redis: { url: "http://a" } }`,
  `${POLICY}storage: { redis: { url: "redis://a" }, home: { url: "redis://b" } }`,
  `${POLICY}storage: { redis: { url: "redis://a" }, home: { url: "redis://b", region: "a b" } }`,
  `${POLICY}storage: { redis: { url: "redis://a" }, home: { url: "redis://b", region: r, share: 2 } }`,
  `${POLICY}storage: { redis: { url: "redis://a" }, home: { postgres: { table: t }, region: r } }`,
  `${POLICY}storage: { redis: { url: "redis://a" }, home: { postgres: { url: "redis://b" }, region: r } }`,
  `${POLICY}storage: { redis: { url: "redis://a" }, home: { url: "redis://b", postgres: { url: "postgres://b" }, region: r } }`,
  `${POLICY}tokens: [{ name: a, scope: root, secret: aaaaaaaaaaaaaaaaaaaaaaaa }]`,
  `${POLICY}tokens: [{ name: a, scope: admin, secret: short }]`,
  'descriptors: []',
  'domain: d\ndescriptors: [{ value: v }]',
  'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: decade, requests_per_unit: 1 } }]',
  'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day } }]',
  'domain: d\ndescriptors: [{ key: k, rate_limit: { requests_per_unit: 1 } }]',
  'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, window: 1s, requests_per_unit: 1 } }]',
  'domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1, algorithm: concurrency } }]',
  'domain: d\ndescriptors: [{ key: k, rate_limit: { unlimited: true, unit: day } }]',
  'domain: d\ndescriptors: [{ key: k, shadow_mode: perhaps }]',
]

/** Files that it takes. */
const TAKEN = [
  POLICY,
  'policies: { a: { algorithm: fixed-window, limit: 1, window: day, time-zone: Europe/Rome } }',
  'policies: { a: { algorithm: sliding-window, limit: 1, window: 1m }, b: { algorithm: sliding-log, limit: 1, window: 1m } }',
  'policies: { a: { algorithm: concurrency, limit: 1 } }',
  'policies: { a: { algorithm: all-of, all-of: [{ name: x, algorithm: gcra, limit: 1, window: 1s }], max-keys: 10 } }',
  'policies: { a: { algorithm: gcra, limit: 1, window: 1s, tiers: { p: { limit: 2, window: 1m, burst: 3 } }, keys: { x: p, "y*": { limit: 3 } } } }',
  'policies: { a: { algorithm: gcra, limit: 1, window: 1s, priorities: { high: 0%, low: 12.5% }, default-priority: low, max-priority: high } }',
  `${POLICY}listen: { http: off, grpc: "127.0.0.1:0", admin: "unix:/tmp/x" }\nstop: { drain: 1.5s }\nstorage: { redis: { nodes: ["redis://a"] } }`,
  `${POLICY}storage: { redis: { url: "redis://a" }, home: { nodes: ["redis://b"], region: eu-west, share: 0.5, too-small: share, cold: share, timeout: 2s } }`,
  `${POLICY}storage: { redis: { url: "redis://a" }, home: { postgres: { url: "postgresql://b", table: s.t, connections: 3 }, region: r, prefix: all } }`,
  `${POLICY}quotas: { ttl: 30s, idle: 5m, rules: [{ policy: a, domain: edge, match: { env: "*", v: 2 }, key: [env] }] }`,
  'domain: d',
  'domain: d\ndescriptors: [{ key: k, value: 7, shadow_mode: yes, rate_limit: { unit: MINUTE, requests_per_unit: 0, name: 5 } }]',
  'domain: d\npriority_key: class\ndescriptors: [{ key: k, rate_limit: { window: 30s, requests_per_unit: 1, algorithm: gcra, burst: 2, tiers: { p: { requests_per_unit: 2 } }, keys: { a: p } } }]',
  'domain: d\ndescriptors: [{ key: k, rate_limit: { unlimited: true }, descriptors: [{ key: j, value: "a*", share_threshold: true, rate_limit: { unit: week, requests_per_unit: 4, replaces: [{ name: x }] } }] }]',
]

function accepts(yaml: string): boolean {
  const value: unknown = parse(yaml)
  return /^(domain|descriptors):/m.test(yaml) ? isEnvoy(value) : isOwn(value)
}

test('the schemas refuse what the reader refuses, and take what it takes', () => {
  for (const yaml of REFUSED) {
    assert.ok(faultsOf(yaml).length > 0)
    assert.equal(accepts(yaml), false, yaml)
  }
  for (const yaml of TAKEN) {
    parseConfig(yaml)
    assert.equal(accepts(yaml), true, `${yaml}\n${ajv.errorsText(isOwn.errors)} ${ajv.errorsText(isEnvoy.errors)}`)
  }
})

test('the examples name a schema, which takes them', () => {
  const text = readFileSync(new URL('../../../examples/sluicegate.yaml', import.meta.url), 'utf8')
  assert.match(text, /^# yaml-language-server: \$schema=\S+sluicegate\.json$/m)
  assert.ok(isOwn(parse(text)), ajv.errorsText(isOwn.errors))
})

interface Described {
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Described>>
}

/** Options of a section with their places. */
function optionsIn({ properties = {} }: Described, before: readonly string[] = []): [path: readonly string[], option: Described][] {
  return Object.entries(properties).flatMap(([name, option]) => [
    [[...before, name], option] as [readonly string[], Described],
    ...optionsIn(option, [...before, name]),
  ])
}

/** A configuration with a value in its place, beside what that option needs. */
function withOption(path: readonly string[], value: unknown, beside: object): string {
  const nested = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value)
  const merged = (a: object, b: object): object =>
    Object.fromEntries(
      [...new Set([...Object.keys(a), ...Object.keys(b)])].map((name) => {
        const [one, other] = [(a as Schema)[name], (b as Schema)[name]]
        const areBoth = [one, other].every((each) => typeof each === 'object' && each !== null && !Array.isArray(each))
        return [name, areBoth ? merged(one as object, other as object) : (other ?? one)]
      }),
    )
  return JSON.stringify(merged(beside, nested as object))
}

/** Options that the reader passes on as they are, and whose defaults are those of the library. */
const OF_THE_LIBRARY: ReadonlySet<string> = new Set([
  'storage.redis.mode',
  'storage.redis.prefix',
  'storage.postgres.mode',
  'storage.postgres.prefix',
  'storage.home.prefix',
  'throttle.max-keys',
])

const ONE_POLICY = { policies: { 'per-user': { algorithm: 'token-bucket', limit: 100, window: '1m' } } }
/** What an option needs beside itself. */
const BESIDE: Readonly<Record<string, object>> = {
  'storage.redis.url': {},
  'storage.postgres.url': {},
  'storage.redis.nodes': {},
  'storage.home.url': { storage: { redis: { url: 'redis://a' }, home: { region: 'r' } } },
  'storage.home.nodes': { storage: { redis: { url: 'redis://a' }, home: { region: 'r' } } },
  'storage.home.postgres': { storage: { redis: { url: 'redis://a' }, home: { region: 'r' } } },
  'storage.home.too-small': { storage: { redis: { url: 'redis://a' }, home: { url: 'redis://b', region: 'r', share: 0.5 } } },
  'snapshot.every': { snapshot: { file: 'keys.snapshot' } },
  ...Object.fromEntries(['secret', 'timeout', 'retries'].map((name) => [`webhook.${name}`, { webhook: { url: 'https://a' } }])),
}
const besideOf = (path: readonly string[]): object => {
  const stores = {
    redis: { redis: { url: 'redis://a' } },
    postgres: { postgres: { url: 'postgres://a' } },
    home: {
      redis: { url: 'redis://a' },
      home: { ...(path[2] === 'postgres' ? { postgres: { url: 'postgres://b' } } : { url: 'redis://b' }), region: 'r' },
    },
  }
  const store = path[0] === 'storage' && path.length >= 3 ? { storage: stores[path[1] as keyof typeof stores] } : {}
  return { ...ONE_POLICY, ...(BESIDE[path.join('.')] ?? store) }
}

test('the reader takes each example of the schema, and each default is what it does without the option', () => {
  // Files that do not exist are faults of their own kind; a policy is not in force without its limit.
  const described = optionsIn(OWN as Described).filter(([path]) => !['policies', 'candidate', 'tls', 'prices'].includes(path[0] as string))
  let defaults = 0
  for (const [path, option] of described) {
    for (const example of option.examples ?? []) {
      const yaml = withOption(path, example, besideOf(path))
      assert.doesNotThrow(() => parseConfig(yaml), yaml)
      assert.ok(accepts(yaml), yaml)
    }
    if (option.default === undefined) continue
    const [written, without] = [withOption(path, option.default, besideOf(path)), JSON.stringify(besideOf(path))]
    if (!OF_THE_LIBRARY.has(path.join('.'))) assert.deepEqual(parseConfig(written), parseConfig(without), path.join('.'))
    defaults++
  }
  assert.ok(defaults > 15)
  for (const name of ALGORITHM_NAMES) {
    const needs = name === 'concurrency' ? { algorithm: name, limit: 10 } : { algorithm: name, limit: 10, window: '1m' }
    for (const [[option = ''], { examples = [] }] of optionsIn(ofAlgorithm(name) as Described)) {
      if (['algorithm', 'tier-file'].includes(option)) continue
      const more = option.endsWith('-priority') ? { priorities: { high: '0%', low: '20%' } } : {}
      const others = option === 'time-zone' ? { window: 'day' } : {}
      for (const example of examples) {
        const yaml = JSON.stringify({ policies: { a: { ...needs, ...more, ...others, [option]: example } } })
        assert.doesNotThrow(() => parseConfig(yaml), yaml)
      }
    }
  }
})

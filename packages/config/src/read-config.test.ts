import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { shortOrLong } from 'sluicegate-testkit'
import { faultsOf as faults, onePolicy as one } from 'sluicegate-testkit/service/running-service.js'
import type { Config } from './config.js'
import { parseConfig, readConfig } from './read-config.js'

const EXAMPLE = fileURLToPath(new URL('../../../examples/sluicegate.yaml', import.meta.url))

test('the example that ships is accepted', () => {
  const { listen, policies, dashboard } = readConfig(EXAMPLE)
  assert.deepEqual(listen.http, { host: '127.0.0.1', port: 8080 })
  assert.deepEqual(dashboard, { keys: 'masked' })
  assert.deepEqual(
    policies.map(({ policy: { name, algorithm, limit, windowMs, burst } }) => ({ name, algorithm, limit, windowMs, burst })),
    [
      { name: 'per-user', algorithm: 'token-bucket', limit: 10, windowMs: 60_000, burst: 10 },
      { name: 'uploads', algorithm: 'gcra', limit: 5, windowMs: 1_000, burst: 1 },
      { name: 'logins', algorithm: 'sliding-log', limit: 5, windowMs: 600_000, burst: 5 },
      { name: 'api', algorithm: 'all-of', limit: 20, windowMs: 31 * 86_400_000, burst: 20 },
    ],
  )
})

test('omitted options have their defaults: loopback, 8080, masked keys, burst = limit', () => {
  const config: Config = parseConfig(one('algorithm: gcra, limit: 7, window: 10s'))
  assert.deepEqual(config.listen, { http: { host: '127.0.0.1', port: 8080 }, grpc: undefined, resp: undefined, admin: undefined })
  assert.deepEqual(config.dashboard, { keys: 'masked' })
  const [{ policy, maxKeys, onFull } = assert.fail()] = config.policies
  assert.deepEqual({ burst: policy.burst, maxKeys, onFull }, { burst: 7, maxKeys: undefined, onFull: 'evict' })
})

test('a section with nothing in it is a fault where the default would be less: no encryption, a budget for this service alone', () => {
  const own = 'policies: { own: { algorithm: gcra, limit: 7, window: 10s } }'
  for (const section of ['tls', 'storage', 'snapshot'])
    for (const nothing of ['', ' {}', ' ~'])
      assert.match(
        faults(`${section}:${nothing}\n${own}`).join(),
        new RegExp(`^[^,]*${section}: has nothing in it: fill it in, or leave it out$`),
      )
  assert.equal(faults(`tls: none\n${own}`).length, 1)
})

test('every option is read', () => {
  const config = parseConfig(`
listen: { host: "::1", port: 0 }
policies:
  a policy, "quoted": { algorithm: token-bucket, limit: 2, window: 250ms, burst: 9, max-keys: 64, on-full: deny }
dashboard: { keys: off }
`)
  assert.deepEqual(config.listen.http, { host: '::1', port: 0 })
  assert.deepEqual(config.dashboard, { keys: 'off' })
  const [{ policy, maxKeys, onFull } = assert.fail()] = config.policies
  assert.equal(policy.name, 'a policy, "quoted"')
  assert.deepEqual([policy.limit, policy.windowMs, policy.burst, maxKeys, onFull], [2, 250, 9, 64, 'deny'])
})

test('all faults are reported at once, in the order of the file, each with its line and column', () => {
  const yaml = `listen:
  prot: 80
policies:
  a:
    algorithm: tokenbucket
    limit: 0
    window: 1 minute
    burst: 1.5
  b:
    limit: ten
    window: 60
    on-full: drop
    maxKeys: 5
dashboard:
  keys: hidden
extra: 1
`
  const found = faults(yaml)
  assert.deepEqual(
    found.map((fault) => /^gate\.yaml:(\d+:\d+: [\w.-]+): ./.exec(fault)?.[1]),
    [
      '2:3: listen.prot',
      '5:16: policies.a.algorithm',
      '6:12: policies.a.limit',
      '7:13: policies.a.window',
      '8:12: policies.a.burst',
      '9:3: policies.b.algorithm',
      '10:12: policies.b.limit',
      '11:13: policies.b.window',
      '12:14: policies.b.on-full',
      '13:5: policies.b.maxKeys',
      '15:9: dashboard.keys',
      '16:1: extra',
    ],
    found.join('\n'),
  )
})

test('a misspelt name or choice is answered with the right one', () => {
  const [name] = faults(one('algorithm: gcra, limit: 5, window: 1s, brust: 5'))
  assert.match(name ?? '', /unknown option; did you mean "burst"\?/)
  const [choice] = faults(one('algorithm: token_bucket, limit: 5, window: 1s'))
  assert.match(choice ?? '', /must be token-bucket, gcra, .* or all-of, not "token_bucket"; did you mean "token-bucket"\?/)
  const [far] = faults(one('algorithm: gcra, limit: 5, window: 1s, colour: 5'))
  assert.match(far ?? '', /unknown option; there are algorithm, limit, window, burst, max-keys, on-full/)
})

const SINGLE_FAULTS: readonly [what: string, yaml: string, fault: RegExp][] = [
  [
    'a limit of 0',
    one('algorithm: gcra, limit: 0, window: 1s'),
    /^gate\.yaml:2:34: policies\.api\.limit: must be an integer from 1 to 9007199254740991 \(got 0\)$/,
  ],
  ['an infinite limit', one('algorithm: gcra, limit: .inf, window: 1s'), /2:34: policies\.api\.limit: must be an integer/],
  ['a limit below one', one('algorithm: gcra, limit: 0.35, window: 1s'), /limit: must be a whole number: widen the window instead/],
  ['a limit left out', one('algorithm: gcra, window: 1s'), /^gate\.yaml:2:3: policies\.api\.limit: is missing$/],
  [
    'a limit without a value',
    'policies:\n  api:\n    algorithm: gcra\n    window: 1s\n    limit:\n',
    /^gate\.yaml:5:11: policies\.api\.limit: must be a number.*not nothing$/,
  ],
  ['a window without a unit', one('algorithm: gcra, limit: 1, window: 60'), /window: must be a text, for example 250ms, 10s.*not 60$/],
  ['a window of half a millisecond', one('algorithm: gcra, limit: 1, window: 0.5ms'), /window: must be from 1 ms to 366 days/],
  ['a burst of 0', one('algorithm: gcra, limit: 1, window: 1s, burst: 0'), /burst: must be an integer/],
  ['a burst that takes decades', one('algorithm: gcra, limit: 1, window: 366d, burst: 1000'), /burst: would take more than 23 years/],
  ['no key at all', one('algorithm: gcra, limit: 1, window: 1s, max-keys: 0'), /max-keys: must be an integer from 1 to 100000000, not 0$/],
  [
    'a port out of range',
    `listen: { port: 65536 }\n${one('algorithm: gcra, limit: 1, window: 1s')}`,
    /^gate\.yaml:1:17: listen\.port: must be an integer from 0 to 65535/,
  ],
  [
    'an option that is a mapping',
    one('algorithm: gcra, limit: { a: 1 }, window: 1s'),
    /limit: must be a number, for example 100, not a mapping$/,
  ],
  ['a section that is a list', 'policies: [1, 2]\n', /^gate\.yaml:1:11: policies: must be a mapping of options, not a list/],
  ['no policies', 'listen: { port: 1 }\n', /policies: must name at least one policy/],
  ['an empty file', '', /^gate\.yaml:1:1: policies: must name at least one policy/],
  [
    'a name beyond ASCII',
    'policies:\n  größe: { algorithm: gcra, limit: 1, window: 1s }\n',
    /^gate\.yaml:2:3: policies\."größe": name: must be 1 to 120 printable ASCII/,
  ],
  [
    'an option named __proto__',
    one('algorithm: gcra, limit: 1, window: 1s, __proto__: { limit: 2 }'),
    /policies\.api\.__proto__: unknown option/,
  ],
]

for (const [what, yaml, fault] of SINGLE_FAULTS) {
  test(`${what} is refused with its place and what would be right`, () => {
    assert.match(faults(yaml)[0] ?? '', fault)
    assert.equal(faults(yaml).length, what === 'a section that is a list' ? 2 : 1, faults(yaml).join('\n'))
  })
}

const BROKEN_YAML: readonly [what: string, yaml: string, place: string][] = [
  ['the same policy twice', 'policies:\n  a: { limit: 1 }\n  a: { limit: 2 }\n', '3:3'],
  ['a bracket that is never closed', 'policies: {\n  a: 1\n', '3:1'],
  ['a bracket within another that are both never closed', 'policies: { a: { limit: 1\n', '2:1'],
  ['a tab as indentation', 'policies:\n\ta: 1\n', '2:1'],
  ['the same option twice in braces', 'policies:\n  a: { limit: 1, limit: 1 }\n', '2:18'],
  ['the same section twice', 'log: {}\npolicies: {}\n"log": {}\n', '3:1'],
  ['lists nested thousands deep', `policies: ${'['.repeat(5_000)}`, '1:\\d+'],
]

for (const [what, yaml, place] of BROKEN_YAML) {
  test(`${what} is a fault of the YAML, reported with its place`, () => {
    const all = faults(yaml)
    assert.match(all[0] ?? '', new RegExp(`^gate\\.yaml:${place}: `), all.join('\n'))
    assert.deepEqual(all, [...new Set(all)])
  })
}

test('a file with as many policies as fit is refused without comparing each name with all others', () => {
  const policies = shortOrLong(20_000, 80_000)
  const names = Array.from({ length: policies }, (_, i) => `  p${i}: 1`)
  assert.deepEqual(faults(`policies:\n${names.join('\n')}\n  p7: 1\n`), [
    `gate.yaml:${policies + 2}:3: keys must be unique: this one stands before in the same map`,
  ])
})

test('an alias stands for what it names, and a fault in it is reported where it is used', () => {
  const shared = (limit: number): string => `
policies:
  a: &numbers { algorithm: gcra, limit: ${limit}, window: 1s }
  b: *numbers
`
  assert.equal(parseConfig(shared(5)).policies[1]?.policy.limit, 5)
  assert.equal(faults(shared(0)).length, 2)
})

test('merged mappings take the time of their options, and faults of a file are bounded', () => {
  const many = (n: number, text: (i: number) => string): string => Array.from({ length: n }, (_, i) => text(i)).join('')
  const merging = many(990, (i) => `  p${i}: { <<: *base, limit: ${i + 1} }\n`)
  const config = parseConfig(`policies:\n  first: &base { algorithm: gcra, limit: 10, window: 1m }\n${merging}`)
  assert.equal(config.policies.at(-1)?.policy.windowMs, 60_000)
  const found = faults(`base: &base {${many(800, (i) => ` k${i}: 1,`)} }\npolicies:\n${merging}`)
  assert.equal(found.length, 1_001)
  assert.match(found.join('\n'), /there are more than 1000 faults: no more are listed$/m)
  const own = `a: &a {${many(600, (i) => ` k${i}: 1,`)} }\npolicies:\n${many(300, (i) => `  p${i}: { <<: *a, algorithm: gcra }\n`)}`
  assert.match(faults(own.replaceAll(' k', ' limit-k')).join('\n'), /takes over more than 100000 options|more than 1000 faults/)
})

test('a file with 800 merged mappings, some of them within others, is read in the time of its options', () => {
  const level = (i: number): string =>
    `  k${i}: &k${i} { ${i === 0 ? '' : `<<: *k${i - 1}, `}algorithm: gcra, limit: ${i + 1}, window: 1m }\n`
  const before = process.cpuUsage()
  const { policies } = parseConfig(`policies:\n${Array.from({ length: 800 }, (_, i) => level(i)).join('')}`)
  const { user, system } = process.cpuUsage(before)
  assert.equal(policies.length, 800)
  // 0.1 s; before, 8.9 s.
  assert.ok(user + system < 3_000_000, `${user + system} µs`)
})

test('an empty password or authority of a store is a fault, and no message repeats an address', (t) => {
  const policies = 'policies: { api: { algorithm: gcra, limit: 7, window: 10s } }\n'
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const empty = join(folder, 'empty.pem')
  writeFileSync(empty, '')
  const of = (store: string, url: string): string => faults(`storage: { ${store}: { url: "${url}" } }\n${policies}`).join()
  for (const url of ['redis://:@cache:6379', 'rediss://user:@cache']) assert.match(of('redis', url), /url: has an empty password/)
  assert.match(of('postgres', 'postgres://secret:@db/x'), /url: has an empty password: [^@]*$/)
  assert.equal(parseConfig(`storage: { redis: { url: "redis://user@cache" } }\n${policies}`).storage.kind, 'redis')
  assert.match(of('postgres', `postgres://u:p@db/x?sslrootcert=${empty}`), /url: sslrootcert: \S+ is an empty file/)
  assert.match(of('postgres', 'postgres://u:p@db/x?sslkey=/dev/zero'), /url: sslkey: \/dev\/zero cannot be read: it is a device/)
})

test('a file that cannot be read is one fault', () => {
  assert.throws(() => readConfig('/nowhere/gate.yaml'), /^ConfigError: \/nowhere\/gate\.yaml:1:1: cannot be read: ENOENT/)
})

test('a name given twice in different spellings is refused', () => {
  const rate = '{ algorithm: gcra, limit: 1, window: 1s }'
  assert.deepEqual(faults(`policies:\n  1: ${rate}\n  "1": ${rate}\n`), ['gate.yaml:3:3: policies.1: is given more than once'])
})

test('a second document in the file is a fault with its place, in words for the author of the file', () => {
  const yaml = one('algorithm: gcra, limit: 7, window: 10s')
  const [fault] = faults(`${yaml}---\n${yaml}`)
  assert.match(String(fault), /begins a second document/)
})

test('the table of CL.THROTTLE has its own room, by default that of the library', () => {
  const policies = 'policies:\n  api: { algorithm: gcra, limit: 7, window: 10s }\n'
  assert.deepEqual(parseConfig(policies).throttle, { maxKeys: undefined })
  assert.deepEqual(parseConfig(`${policies}throttle: { max-keys: 10 }`).throttle, { maxKeys: 10 })
  assert.deepEqual(faults(`${policies}throttle: { max-keys: 0, keys: 1 }`), [
    'gate.yaml:3:23: throttle.max-keys: must be an integer from 1 to 100000000, not 0',
    'gate.yaml:3:26: throttle.keys: unknown option; there are max-keys',
  ])
})

test('a syntax error behind a block text in a flow list has its own line', () => {
  for (const fault of faults('[[]|\na')) {
    const [, line, column] = /^gate.yaml:(\d+):(\d+):/.exec(fault) ?? []
    assert.ok(Number(column) <= (line === '1' ? 5 : 2), fault)
  }
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { envoyDomains } from 'sluicegate-testkit/service/running-service.js'
import { ConfigError } from '../fault.js'
import { readConfig } from '../read-config.js'
import type { Rule, RuleLevel } from './rule.js'

function faultsOf(yaml: string): string[] {
  return faultsIn(() => envoyDomains(yaml))
}

function faultsIn(read: () => unknown): string[] {
  try {
    read()
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message.split('\n')
  }
  return assert.fail('the file was accepted')
}

function domainOf(yaml: string) {
  return envoyDomains(yaml)[0] ?? assert.fail()
}

function rule(level: RuleLevel, key: string, value?: string): Rule {
  const rules = level.get(key)
  const found =
    value === undefined ? rules?.any : (rules?.values.get(value) ?? rules?.patterns.find((one) => one.rule.pattern === value)?.rule)
  return found ?? assert.fail(`${key} ${value}`)
}

/** A file of one limit, whose options begin in column 19 of line 4. */
function oneLimit(options: string): string {
  return `domain: edge\ndescriptors:\n  - key: user\n    rate_limit: { ${options} }\n`
}

test('a file gives the rules of a domain as a tree, and a policy for each limit', () => {
  const { domain, rules, policies } = domainOf(`
domain: edge
descriptors:
  - key: tenant
    value: blue
    descriptors:
      - key: path
        rate_limit: { unit: second, requests_per_unit: 5 }
      - key: path
        value: /login
        rate_limit: { unit: minute, requests_per_unit: 10, name: logins, replaces: [{ name: general }] }
        shadow_mode: true
  - key: path
    value: /files/*
    share_threshold: true
    value_to_metric: true
    quota_mode: true
    metadata: { owner: { team: storage } }
    rate_limit: { unit: HOUR, requests_per_unit: 7 }
  - key: internal
    rate_limit: { unlimited: true }
  - key: banned
    rate_limit: { unit: day, requests_per_unit: 0 }
`)
  assert.equal(domain, 'edge')
  assert.deepEqual(
    policies.map(({ policy }) => [policy.name, policy.algorithm, policy.limit, policy.windowMs]),
    [
      ['edge.tenant_blue.path', 'fixed-window', 5, 1_000],
      ['edge.tenant_blue.path_/login', 'fixed-window', 10, 60_000],
      ['edge.path_/files/*', 'fixed-window', 7, 3_600_000],
    ],
  )
  const { limit: login } = rule(rule(rules, 'tenant', 'blue').children, 'path', '/login')
  assert.deepEqual([login?.shadowMode, login?.name, login?.replaces], [true, 'logins', ['general']])
  const files = rule(rules, 'path', '/files/*')
  assert.deepEqual([files.shareThreshold, files.valueToMetric, files.limit?.quotaMode], [true, true, true])
  assert.deepEqual(files.limit?.metadata, { owner: { team: 'storage' } })
  assert.deepEqual([rule(rules, 'internal').limit?.unlimited, rule(rules, 'internal').limit?.policy], [true, undefined])
  assert.deepEqual([rule(rules, 'banned').limit?.requestsPerUnit, rule(rules, 'banned').limit?.policy], [0, undefined])
})

test('each unit has the window of Envoy’s ratelimit service: a month of 30 days, a year of 365', () => {
  const DAY_MS = 86_400_000
  const windows = { second: 1_000, minute: 60_000, hour: 3_600_000, day: DAY_MS, week: 7 * DAY_MS, month: 30 * DAY_MS, Year: 365 * DAY_MS }
  for (const [unit, windowMs] of Object.entries(windows)) {
    const [{ policy } = assert.fail()] = domainOf(oneLimit(`unit: ${unit}, requests_per_unit: 3`)).policies
    assert.deepEqual([policy.algorithm, policy.windowMs, policy.limit], ['fixed-window', windowMs, 3])
  }
})

test('a limit may have another window and algorithm, a burst, a cost and a table of its own', () => {
  const policyOf = (options: string) => domainOf(oneLimit(options)).policies[0] ?? assert.fail()
  assert.equal(policyOf('window: 30s, requests_per_unit: 3').policy.windowMs, 30_000)
  const bucket = policyOf('algorithm: token-bucket, unit: second, requests_per_unit: 3, burst: 9, max_keys: 50, on_full: deny')
  assert.deepEqual([bucket.policy.algorithm, bucket.policy.burst, bucket.maxKeys, bucket.onFull], ['token-bucket', 9, 50, 'deny'])
  const month = policyOf('window: month, time_zone: Europe/Rome, requests_per_unit: 3')
  assert.deepEqual(month.policy.calendar, { unit: 'month', timeZone: 'Europe/Rome' })
  assert.equal(rule(domainOf(oneLimit('unit: second, requests_per_unit: 3, cost: 5')).rules, 'user').limit?.cost, 5)
})

test('denied hits are charged where the file or a limit says so', () => {
  const { rules } = domainOf(`domain: edge
charge_denied: true
descriptors:
  - { key: a, rate_limit: { unit: second, requests_per_unit: 1 } }
  - { key: b, rate_limit: { unit: second, requests_per_unit: 1, charge_denied: false } }
`)
  assert.deepEqual([rule(rules, 'a').limit?.chargeDenied, rule(rules, 'b').limit?.chargeDenied], [true, false])
})

test('labels are texts however YAML types them, flags have each spelling of YAML 1.1, and merge keys are taken over', () => {
  const { rules } = domainOf(`domain: edge
descriptors:
  - key: 404
    value: 0x1F
    rate_limit: &slow { unit: minute, requests_per_unit: 1 }
  - key: yes
    shadow_mode: Yes
    rate_limit: { <<: *slow, requests_per_unit: 2 }
  - key: empty
    value:
    descriptors:
`)
  assert.equal(rule(rules, '404', '0x1F').limit?.requestsPerUnit, 1)
  assert.deepEqual([rule(rules, 'yes').limit?.unit, rule(rules, 'yes').limit?.requestsPerUnit], ['minute', 2])
  assert.equal(rule(rules, 'yes').limit?.shadowMode, true)
  assert.equal(rule(rules, 'empty').children.size, 0)
})

test('keys and values that read the same together are different rules with different policies', () => {
  const { rules, policies } = domainOf(`domain: edge
descriptors:
  - { key: a_b, value: c, rate_limit: { unit: second, requests_per_unit: 1 } }
  - { key: a, value: b_c, rate_limit: { unit: second, requests_per_unit: 2 } }
`)
  assert.deepEqual([rule(rules, 'a_b', 'c').limit?.requestsPerUnit, rule(rules, 'a', 'b_c').limit?.requestsPerUnit], [1, 2])
  assert.equal(new Set(policies.map(({ policy }) => policy.name)).size, 2)
})

test('names of policies are printable and short, whatever the values are', () => {
  const long = 'x'.repeat(300)
  const { policies } = domainOf(`domain: größe
descriptors:
  - { key: "ключ\\n", value: ${long}1, rate_limit: { unit: second, requests_per_unit: 1 } }
  - { key: "ключ\\n", value: ${long}2, rate_limit: { unit: second, requests_per_unit: 1 } }
`)
  for (const { policy } of policies) assert.match(policy.name, /^[ -~]{1,120}$/)
  assert.notEqual(policies[0]?.policy.name, policies[1]?.policy.name)
})

test('all faults are reported at once, each with its line and column', () => {
  const found = faultsOf(`descriptors:
  - value: blue
  - key: user
    ratelimit: { unit: second, requests_per_unit: 1 }
  - key: path
    rate_limit:
      unit: secnd
      requests_per_unit: -1
      replaces: [{ name: }]
      algorithm: bucket
  - key: path
    value: /a
    share_threshold: true
    unit: second
  - key: user
    shadow_mode: 1
`)
  assert.deepEqual(
    found.map((fault) => /^rl\.yaml:(\d+:\d+: \S+): ./.exec(fault)?.[1]),
    [
      '1:1: domain',
      '2:5: descriptors[0].key',
      '4:5: descriptors[1].ratelimit',
      '7:13: descriptors[2].rate_limit.unit',
      '8:26: descriptors[2].rate_limit.requests_per_unit',
      '9:26: descriptors[2].rate_limit.replaces[0].name',
      '10:18: descriptors[2].rate_limit.algorithm',
      '13:22: descriptors[3].share_threshold',
      '14:5: descriptors[3].unit',
      '15:10: descriptors[4].key',
      '16:18: descriptors[4].shadow_mode',
    ],
    found.join('\n'),
  )
})

const SINGLE_FAULTS: readonly [what: string, yaml: string, fault: RegExp][] = [
  ['no domain', 'descriptors: []\n', /^rl\.yaml:1:1: domain: is missing/],
  ['an empty domain', 'domain: ""\n', /domain: must not be empty$/],
  ['a list of texts', 'domain: edge\ndescriptors: [a]\n', /2:15: descriptors\[0\]: must be a mapping of options, not "a"$/],
  [
    'the same descriptor twice',
    'domain: edge\ndescriptors:\n  - { key: a, value: b }\n  - { key: a, value: b }\n',
    /^rl\.yaml:4:22: descriptors\[1\]\.value: "edge\.a_b" is there already/,
  ],
  ['the same pattern twice', 'domain: edge\ndescriptors:\n  - { key: a, value: b* }\n  - { key: a, value: b* }\n', /is there already/],
  ['no unit', oneLimit('requests_per_unit: 5'), /rate_limit\.unit: is missing: second, .* or year, or a window such as 30s$/],
  ['no number', oneLimit('unit: second'), /rate_limit\.requests_per_unit: is missing; 0 denies every hit$/],
  ['a number beyond 32 bits', oneLimit('unit: second, requests_per_unit: 4294967296'), /must be an integer from 0 to 4294967295/],
  ['a number that cannot be counted', oneLimit('unit: second, requests_per_unit: 4294967296'), /must be an integer from 0 to 4294967295/],
  ['an unlimited limit with a unit', oneLimit('unlimited: true, unit: day'), /unit: is not for a limit that is unlimited$/],
  ['a unit and a window', oneLimit('unit: second, window: 5s, requests_per_unit: 1'), /window: says the same as unit: keep one of them$/],
  [
    'a burst of a window',
    oneLimit('unit: second, requests_per_unit: 1, burst: 2'),
    /burst: is for token-bucket and gcra: choose it as the algorithm$/,
  ],
  [
    'a limit that replaces itself',
    oneLimit('unit: second, requests_per_unit: 1, name: a, replaces: [{ name: a }]'),
    /is the name of this limit itself$/,
  ],
  [
    'an option of a descriptor in its limit',
    oneLimit('unit: second, requests_per_unit: 1, shadow_mode: true'),
    /is for the descriptor: write it beside key$/,
  ],
  ['a misspelt unit', oneLimit('unit: minutes, requests_per_unit: 1'), /not "minutes"; did you mean "minute"\?$/],
  ['metadata that is a list', 'domain: edge\ndescriptors:\n  - { key: a, metadata: [1] }\n', /metadata: must be a mapping$/],
  ['a merge of a text', 'domain: edge\ndescriptors:\n  - { <<: 1, key: a }\n', /<<"?: must be a mapping, or a list of mappings/],
]

for (const [what, yaml, fault] of SINGLE_FAULTS) {
  test(`${what} is refused with its place and what would be right`, () => {
    const found = faultsOf(yaml)
    assert.match(found[0] ?? '', fault)
    assert.equal(found.length, 1, found.join('\n'))
  })
}

test('rules nested without end are refused', () => {
  let descriptors = '[]'
  for (let i = 0; i < 40; i++) descriptors = `[{ key: a, descriptors: ${descriptors} }]`
  assert.match(faultsOf(`domain: edge\ndescriptors: ${descriptors}\n`)[0] ?? '', /must not be nested deeper than 32$/)
})

test('two files with one domain are a fault, unless domains are merged; names of policies are free in all files', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'envoy-files-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const limit = (key: string, number: number) => `{ key: ${key}, rate_limit: { unit: second, requests_per_unit: ${number} } }`
  writeFileSync(join(folder, '1.yaml'), `domain: edge\ndescriptors: [${limit('a', 1)}]\n`)
  writeFileSync(join(folder, '2.yaml'), `domain: edge\ndescriptors: [${limit('b', 2)}]\n`)
  writeFileSync(join(folder, '3.yaml'), 'policies:\n  edge.a: { algorithm: gcra, limit: 1, window: 1s }\n')
  assert.match(faultsIn(() => readConfig(folder))[0] ?? '', /2\.yaml:1:9: domain: "edge" is in \S*1\.yaml already/)
  process.env.MERGE_DOMAIN_CONFIG = 'true'
  t.after(() => delete process.env.MERGE_DOMAIN_CONFIG)
  const { domains, policies } = readConfig(folder)
  const [domain = assert.fail()] = domains
  assert.deepEqual([domains.length, policies.length, domain.policies.length], [1, 1, 2])
  assert.deepEqual([rule(domain.rules, 'a').limit?.requestsPerUnit, rule(domain.rules, 'b').limit?.requestsPerUnit], [1, 2])
  assert.notEqual(rule(domain.rules, 'a').limit?.policy, 'edge.a')
  writeFileSync(join(folder, '2.yaml'), `domain: edge\ndescriptors: [${limit('a', 2)}]\n`)
  assert.match(faultsIn(() => readConfig(folder))[0] ?? '', /"edge\.a" is there already/)
})

test('metadata whose aliases repeat it without end is a fault at its place, not an error of the parser', () => {
  const levels = Array.from({ length: 7 }, (_, i) => `      l${i + 1}: &l${i + 1} [${Array(9).fill(i === 0 ? 'x' : `*l${i}`)}]\n`).join('')
  const reason = 'must be plain data: its aliases repeat too much of it, or it contains itself'
  for (const metadata of [`\n${levels}`, ' &own { inner: *own }\n'])
    assert.match(
      faultsOf(`domain: web\ndescriptors:\n  - key: user\n    metadata:${metadata}`)[0] ?? '',
      new RegExp(`^rl.yaml:[45]:\\d+: .*${reason}$`),
    )
})

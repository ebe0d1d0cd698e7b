import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ConfigError } from 'sluicegate-config/fault.js'
import { parseConfig, readConfig } from 'sluicegate-config/read-config.js'
import { readExposition } from 'sluicegate-testkit/service/exposition.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import { Engine } from './engine/engine.js'
import { measuresOf } from './measures/measures.js'

const GUIDE = read('../../../docs/service.md')
const CALLS = read('../../../docs/service-api.md')
const ENVOY = read('../../../docs/envoy.md')
const MONITORING = read('../../../docs/monitoring.md')
const ALERTS = read('../../../examples/grafana/alerts.yml')

function read(path: string): string {
  return readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8')
}

/** The contents of each fenced block of this language. */
function blocks(language: string): string[] {
  return [...GUIDE.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, block]) => block as string)
}

test('the configuration in the guide is accepted', () => {
  const [yaml = assert.fail('there is none')] = blocks('yaml')
  assert.deepEqual(
    parseConfig(yaml).policies.map(({ policy: { name } }) => name),
    ['per-user', 'uploads', 'reports', 'search', 'logins', 'api'],
  )
})

test('the faults in the guide are reported in these words', () => {
  const yaml = '\npolicies:\n  api:\n    algorithm: tokenbucket\n    limit: 5\n    window: 60\n'
  assert.throws(
    () => parseConfig(yaml, 'gate.yaml'),
    (error) => error instanceof ConfigError && assert.equal(`${error.message}\n`, blocks('text')[0]) === undefined,
  )
})

test('the table of metrics has every metric of the service with its type, and no other', () => {
  const exposed = measuresOf(new Engine([]), { all: () => [] }, '0').map(({ name, type }) => `${name} ${type}`)
  const described = Array.from(MONITORING.matchAll(/^\| `(sluicegate_\w+)` \| (\w+) \|/gm), ([, name, type]) => `${name} ${type}`)
  assert.deepEqual(described.sort(), exposed.sort())
})

test('the table of metrics has the labels of each', async (t) => {
  const service = await runService(t)
  service.engine.policy('burst')?.take('alice', 1)
  const samples = readExposition(await (await fetch(`${service.url}/metrics`)).text())
  const rows = MONITORING.matchAll(/^\| `(sluicegate_\w+)` \| \w+ \|(.*?)\|/gm)
  const labels = new Map(Array.from(rows, ([, name, text]) => [name, text]))
  for (const { name, labels: exposed } of samples.filter((each) => each.name.startsWith('sluicegate_'))) {
    const described = labels.get(name.replace(/_(bucket|sum|count)$/, '')) ?? assert.fail(name)
    for (const label of Object.keys(exposed)) if (label !== 'le') assert.ok(described.includes(`\`${label}\``), `${label} of ${name}`)
  }
})

test('the table of alerts has every alert with its severity, and no other', () => {
  const described = Array.from(
    MONITORING.matchAll(/^\| `(Sluicegate\w+)` \| .* \| (\w+) \|$/gm),
    ([, name, severity]) => `${name} ${severity}`,
  )
  const shipped = Array.from(ALERTS.matchAll(/alert: (\w+)[\s\S]*?severity: (\w+)/g), ([, name, severity]) => `${name} ${severity}`)
  assert.deepEqual(described.sort(), shipped.sort())
})

test('the page of calls has every problem code that a client can receive', () => {
  const codes = read('../src/protocols/http/problem.ts').matchAll(/^ {2}\| '([A-Z_]+)'/gm)
  const missing = Array.from(codes, ([, code]) => code as string).filter((code) => code !== 'INTERNAL' && !CALLS.includes(`\`${code}\``))
  assert.deepEqual(missing, [])
})

test('the configurations in the guide of tiers are accepted', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-docs-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const guide = read('../../../docs/tiers.md')
  const [own = '', envoy = ''] = [...guide.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, yaml]) => yaml as string)
  const [data = ''] = [...guide.matchAll(/```text\n([\s\S]*?)```/g)].map(([, text]) => text as string)
  writeFileSync(join(folder, 'tenants.csv'), data)
  writeFileSync(join(folder, 'own.yaml'), own)
  writeFileSync(join(folder, 'envoy.yaml'), envoy)
  const { policies, domains } = readConfig(folder)
  const limits = ['acme', 'trial-1', 'globex', 'initech', 'partner-7', 'x'].map((key) => policies[0]?.tiers?.policyOf(key).limit)
  assert.deepEqual(limits, [20_000, 10, 1_000, 500, 20_000, 100])
  assert.equal(domains[0]?.policies[0]?.tiers?.policyOf('acme').limit, 1_000)
})

test('the configurations in the guide of quotas are accepted', () => {
  const yaml = [...read('../../../docs/rlqs.md').matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => text as string)
  const own = yaml.filter((text) => /^policies:/m.test(text)).map((text) => parseConfig(text))
  assert.deepEqual(
    own.map(({ quotas, quotaRules }) => [quotas.ttlSeconds, quotaRules?.map(({ policy }) => policy)]),
    [
      [15, undefined],
      [15, ['per-team', 'shared']],
    ],
  )
})

test('the rules in the guide of Envoy are accepted', () => {
  const rules = [...ENVOY.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, yaml]) => yaml as string).filter((yaml) => /^domain:/m.test(yaml))
  assert.deepEqual(
    rules.flatMap((yaml) => parseConfig(yaml).domains.flatMap(({ policies }) => policies.map(({ policy }) => policy.name))),
    ['edge.user', 'edge.path_/login*', 'edge.user', 'edge.report'],
  )
})

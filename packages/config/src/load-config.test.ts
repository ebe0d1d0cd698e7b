import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Config } from './config.js'
import { allPolicies } from './domains.js'
import { ConfigError } from './fault.js'
import { configLoader } from './load-config.js'
import { configFiles, readConfig } from './read-config.js'
import type { Tiers } from './tiers/tiers.js'

const PROGRAM = `import { serveReader } from '${new URL('./reader-thread.js', import.meta.url)}'; serveReader()`
const loader = configLoader(new URL(`data:text/javascript,${encodeURIComponent(PROGRAM)}`))

const OWN = `listen: { port: 0 }
tokens: [{ name: app, scope: decide, secret: 0123456789abcdef }]
quotas: { rules: [{ policy: plain, match: { a: b } }] }
policies:
  plain: { algorithm: fixed-window, limit: 5, window: month, time-zone: Europe/Rome, priorities: { high: 0%, low: 20% } }
  both: { all-of: [{ name: x, algorithm: gcra, limit: 20, window: 1h }, { name: y, algorithm: fixed-window, limit: 30, window: day }] }
  tiered: { algorithm: gcra, limit: 5, window: 1m, tiers: { big: { limit: 50 } }, keys: { alice: big, bob: { limit: 7 } }, tier-file: t.csv }
  other: { algorithm: gcra, limit: 6, window: 1m, tiers: { big: { limit: 60 } }, tier-file: t.csv }
`
const ENVOY = `domain: edge
descriptors:
  - key: user
    value: a*b*
    share_threshold: true
    rate_limit: { unit: minute, requests_per_unit: 5 }
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 9, name: outer }
    descriptors:
      - { key: path, value: /x, shadow_mode: true, metadata: { a: [1] }, rate_limit: { unlimited: true, replaces: [{ name: outer }] } }
      - { key: path, rate_limit: { unit: second, requests_per_unit: 0 } }
  - { key: flag, value: "true", ipv6_subnet: 64 }
`

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'own.yaml'), OWN)
  writeFileSync(join(folder, 'envoy.yaml'), ENVOY)
  const rows = Array.from({ length: 2_500 }, (_, i) => `k${i},${i % 2 === 0 ? 'big' : ''},${i % 2 === 0 ? '' : 100 + (i % 3)}\n`)
  writeFileSync(join(folder, 't.csv'), `key,tier,limit\n${rows.join('')}pre-*,big,\n`)
  return folder
}

/** All that can be seen of a configuration. */
function seen(config: Config): unknown {
  const of = (tiers: Tiers | undefined) =>
    tiers && { limits: tiers.limits, size: tiers.size, ids: ['alice', 'bob', 'k1', 'k1000', 'pre-x', 'z'].map((key) => tiers.idOf(key)) }
  const policies = allPolicies(config).map(({ tiers, ...policy }) => ({ ...policy, tiers: of(tiers) }))
  return { ...config, policies, domains: config.domains.map(({ policies: _, ...domain }) => domain) }
}

test('a configuration that another thread has read is the one that this thread reads', async (t) => {
  const folder = folderOf(t)
  const here = readConfig(folder)
  for (const files of [undefined, configFiles(folder)]) {
    const there = await loader.config(folder, files, {})
    assert.deepEqual(seen(there), seen(here))
    assert.ok(allPolicies(there).every(({ policy }) => Object.isFrozen(policy)))
    const data = (config: Config, i: number) => config.policies[i]?.tiers?.parts.fileData
    assert.equal(data(there, 2), data(here, 2), 'a file that has not changed is not read again')
    assert.equal(data(there, 3), data(there, 2))
  }
  appendFileSync(join(folder, 't.csv'), 'new,,777\n')
  const [[, changed = assert.fail()] = assert.fail()] = await loader.data([join(folder, 't.csv')])
  assert.deepEqual([changed.size, changed.exact('new')], [2_502, 'limit=777 window= burst='])
  assert.equal((await loader.config(folder, undefined, {})).policies[2]?.tiers?.parts.fileData, changed)
})

test('faults that another thread has found are those of this one', async (t) => {
  const folder = folderOf(t)
  appendFileSync(join(folder, 't.csv'), 'k1,big,\n')
  appendFileSync(join(folder, 'own.yaml'), '  wrong: { algorithm: gcra, limit: 0, window: 1m }\n')
  const faults = async (read: () => unknown): Promise<ConfigError> => {
    try {
      await read()
    } catch (error) {
      if (error instanceof ConfigError) return error
    }
    return assert.fail('without a fault')
  }
  const here = await faults(() => readConfig(folder))
  assert.equal(here.faults.length, 3)
  assert.deepEqual((await faults(() => loader.config(folder, undefined, {}))).faults, here.faults)
  assert.ok((await faults(() => loader.data([join(folder, 'none.csv')]))).mayPass)
})

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ConfigError } from '../fault.js'
import { readConfig } from '../read-config.js'

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-tier-file-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

/** The faults of a configuration with this data file, without the folder. */
function faultsOf(folder: string, name: string, text: string): string[] {
  writeFileSync(join(folder, name), text)
  writeFileSync(
    join(folder, 'own.config'),
    `policies:
  tenant:
    algorithm: token-bucket
    limit: 10
    window: 1m
    tiers: { pro: { limit: 100 } }
    tier-file: ${name}
`,
  )
  try {
    readConfig(join(folder, 'own.config'))
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message.split('\n').map((line) => line.replaceAll(`${folder}/`, ''))
  }
}

const SAME = {
  'a.csv': 'key,tier,limit,window,burst\nacme,pro,,,\r\n"with, comma ""q""",,50,1h,60\n\neu-*,pro,,,\n',
  'a.json': '{\n "acme": "pro", "with, comma \\"q\\"": {"limit": 50, "window": "1h", "burst": 60},\n "eu-*": "pro" }\n',
  'a.yaml': 'acme: pro\n\'with, comma "q"\': { limit: 50, window: 1h, burst: 60 }\n"eu-*": pro\n',
}

for (const [name, text] of Object.entries(SAME)) {
  test(`${name}: tiers, limits and prefixes are read`, (t) => {
    const folder = folderOf(t)
    assert.deepEqual(faultsOf(folder, name, text), [])
    const [policy] = readConfig(join(folder, 'own.config')).policies
    const limits = ['acme', 'with, comma "q"', 'eu-1', 'other'].map((key) => policy?.tiers?.policyOf(key))
    assert.deepEqual(
      limits.map((each) => [each?.limit, each?.windowMs, each?.burst]),
      [
        [100, 60_000, 100],
        [50, 3_600_000, 60],
        [100, 60_000, 100],
        [10, 60_000, 10],
      ],
    )
  })
}

test('an empty data file is a fault, and one that says that no key has a tier is none', (t) => {
  const folder = folderOf(t)
  for (const name of ['b.csv', 'b.json', 'b.yaml'])
    for (const text of ['', '\n \n']) assert.match(faultsOf(folder, name, text).join(), new RegExp(`^${name}:1:1: is an empty file`))
  assert.match(faultsOf(folder, 'b.yml', '# all of them\n').join(), /^b\.yml:1:1: is an empty file/)
  for (const [name, text] of [
    ['b.csv', 'key,tier\n'],
    ['b.json', '{}'],
    ['b.yaml', '{}'],
  ] as const)
    assert.deepEqual(faultsOf(folder, name, text), [])
})

test('every fault of a data file has its line and column', (t) => {
  const folder = folderOf(t)
  assert.deepEqual(faultsOf(folder, 'b.csv', 'key,tier,limit\na,prp,\nb,,\nc,pro,5\na,pro,\nd\n,pro,\ne,,x\nf,,0\n'), [
    'b.csv:3:1: needs a tier or a limit',
    'b.csv:4:1: has a tier and a limit of its own: give one of them',
    'b.csv:5:1: "a" is given more than once',
    'b.csv:6:1: has 1 fields, and the first line has 3',
    'b.csv:7:1: the key is empty',
    'b.csv:8:1: limit must be a number',
  ])
  assert.deepEqual(faultsOf(folder, 'b.csv', 'key,tier,limit\nx,pro,\na,prp,\nb,,0\n'), [
    'b.csv:3:1: there is no tier "prp"; did you mean "pro"?',
    'b.csv:4:1: limit must be an integer from 1 to 9007199254740991 (got 0)',
  ])
  assert.match(faultsOf(folder, 'b.csv', 'tenant,tier\na,pro\n').join(), /^b\.csv:1:1: the first line must name the columns: key, tier/)
  assert.match(faultsOf(folder, 'b.csv', 'key,tier\n"a,pro\n').join(), /^b\.csv:2:\d+: has a quote that does not end/)
  assert.deepEqual(faultsOf(folder, 'b.json', '{\n  "a": "pro",\n  "a": "pro",\n  "b": {"limit": 5, "rate": 1},\n  "c": 7 }'), [
    'b.json:3:3: "a" is given more than once',
    'b.json:4:21: "rate" is no option: there are tier, limit, window and burst',
    'b.json:5:3: must have a tier, or an object with a limit',
  ])
  assert.match(
    faultsOf(folder, 'b.json', '{"a": "pro"').join(),
    /^b\.json:1:12: is not the JSON of an object of keys: , or } is missing here/,
  )
  assert.match(faultsOf(folder, 'b.json', '["a"]').join(), /^b\.json:1:1: is not the JSON/)
  assert.match(faultsOf(folder, 'b.json', '{"a": "pro"} x').join(), /^b\.json:1:14: has something after the object/)
  assert.match(faultsOf(folder, 'b.yaml', 'a: pro\nb: { limit: 5, rate: 1 }\n').join(), /^b\.yaml:2:16: b\.rate: unknown option/)
  assert.match(faultsOf(folder, 'b.yaml', 'a: 7\n').join(), /^b\.yaml:1:4: a: must be the name of a tier/)
  assert.match(faultsOf(folder, 'b.txt', 'a').join(), /^b\.txt:1:1: must end in \.csv, \.json/)
  assert.match(faultsOf(folder, 'b.csv', 'key,tier\n\ud800').join(), /b\.csv/)
  rmSync(join(folder, 'b.csv'))
  assert.match(faultsOf(folder, 'b.json', 'x').join(), /b\.json:1:1/)
})

test('a data file has bounds: rows with faults, lengths of prefixes, different limits, YAML', (t) => {
  const folder = folderOf(t)
  const rows = (n: number, row: (i: number) => string): string =>
    `key,tier,limit\n${Array.from({ length: n }, (_, i) => row(i)).join('\n')}\n`
  assert.equal(
    faultsOf(
      folder,
      'c.csv',
      rows(5_000, (i) => `k${i},,`),
    ).length,
    100,
  )
  assert.match(
    faultsOf(
      folder,
      'c.csv',
      rows(33, (i) => `${'x'.repeat(i)}*,pro,`),
    ).join(),
    /^c\.csv:34:1: has prefixes of more than 32 different lengths$/,
  )
  assert.match(
    faultsOf(
      folder,
      'c.csv',
      rows(501, (i) => `k${i},,${i + 1}`),
    ).join(),
    /^c\.csv:502:1: has more than 500 different limits/,
  )
  assert.match(
    faultsOf(
      folder,
      'c.csv',
      rows(1, () => `${'k'.repeat(1_025)},pro,`),
    ).join(),
    /at most 1024 characters/,
  )
  assert.match(faultsOf(folder, 'c.yaml', `# ${'x'.repeat(1_000_000)}\n`).join(), /use CSV or JSON/)
})

test('tiers are refused where they cannot be', (t) => {
  const folder = folderOf(t)
  const file = join(folder, 'own.yaml')
  const faults = (yaml: string): string => {
    writeFileSync(file, yaml)
    try {
      readConfig(file)
      return ''
    } catch (error) {
      return (error as Error).message.replaceAll(`${folder}/`, '')
    }
  }
  const policy = (more: string): string => `policies:\n  a: { algorithm: token-bucket, limit: 1, window: 1s, ${more} }\n`
  assert.match(faults(policy('tiers: { pro: { limit: 0 } }')), /^own\.yaml:2:78: policies\.a\.tiers\.pro\.limit: must be an integer/)
  assert.match(faults(policy('tiers: { pro: { window: 1s } }')), /policies\.a\.tiers\.pro\.limit: is missing/)
  assert.match(faults(policy('keys: { x: pro }')), /^own\.yaml:2:63: policies\.a\.keys\.x: there is no tier "pro"/)
  assert.match(faults(policy('tier-file: none.csv')), /^none\.csv:1:1: cannot be read: ENOENT/)
  assert.match(faults('policies:\n  a: { all-of: [{ algorithm: gcra, limit: 1, window: 1s }], keys: {} }\n'), /keys: is not for all-of/)
  const rule = (more: string): string => `domain: d\ndescriptors:\n  - { key: k, ${more} }\n`
  assert.match(
    faults(rule('value: v, rate_limit: { unit: day, requests_per_unit: 1, keys: { x: { requests_per_unit: 2 } } }')),
    /tiers: are for descriptors whose value is open/,
  )
  assert.equal(faults(rule('rate_limit: { unit: day, requests_per_unit: 1, keys: { x: { requests_per_unit: 2 } } }')), '')
})

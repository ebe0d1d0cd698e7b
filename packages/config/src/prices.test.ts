import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ConfigError } from './fault.js'
import { readPriceFile } from './prices.js'
import { readConfig } from './read-config.js'

const folder = mkdtempSync(join(tmpdir(), 'sluicegate-prices-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function faultsIn(read: () => unknown): string[] {
  try {
    read()
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.message.replaceAll(`${folder}/`, '').split('\n')
  }
  return []
}

test('prices are read from YAML and JSON, relative to the file that names them', () => {
  const expected = {
    per: 1_000_000,
    models: { small: { input: 150_000, cached: 75_000, output: 600_000 }, 'a:b/c-1.5': { input: 0, output: 1 } },
  }
  file('p.yaml', 'per: 1000000\nmodels:\n  small: { input: 150000, cached: 75000, output: 600000 }\n  a:b/c-1.5: { input: 0, output: 1 }\n')
  const policies = 'policies: { a: { algorithm: gcra, limit: 1, window: 1s } }\n'
  const { prices } = readConfig(file('gate.yaml', `${policies}prices: { file: p.yaml }\n`))
  assert.deepEqual(prices, { file: join(folder, 'p.yaml'), table: expected })
  assert.deepEqual(readPriceFile(file('p.json', JSON.stringify(expected))), expected)
  assert.equal(readPriceFile(file('one.yaml', 'models: { m: { input: 1, output: 2 } }')).per, 1)
})

test('every fault of a file of prices has its place', () => {
  const yaml =
    'per: 10\nmodels:\n  a: { input: 0.5, output: -1 }\n  b: { input: 1 }\n  c: { input: 1, output: 1, cahced: 1 }\n  d: 5\ncurrency: EUR\n'
  const faults = faultsIn(() => readPriceFile(file('faulty.yaml', yaml)))
  for (const [i, expected] of [
    /^faulty\.yaml:1:6: per: must be/,
    /^faulty\.yaml:3:15: models\.a\.input: must be an integer from 0 to 9007199254740991/,
    /^faulty\.yaml:3:28: models\.a\.output: must be an integer/,
    /^faulty\.yaml:4:3: models\.b\.output: is missing/,
    /^faulty\.yaml:5:\d+: models\.c\.cahced: unknown option; did you mean "cached"\?/,
    /^faulty\.yaml:6:6: models\.d: must be a mapping/,
    /^faulty\.yaml:7:1: currency: unknown option/,
  ].entries())
    assert.match(faults[i] ?? '', expected, faults.join('\n'))
  assert.equal(faults.length, 7)
})

test('what is no file of prices is refused: a device, another ending, one that is too large or not there', () => {
  const policies = 'policies: { a: { algorithm: gcra, limit: 1, window: 1s } }\n'
  const named = (name: string): string[] => faultsIn(() => readConfig(file('gate.yaml', `${policies}prices: { file: ${name} }\n`)))
  assert.match(named('/dev/zero')[0] ?? '', /must end in \.json, \.yaml or \.yml/)
  assert.match(named('missing.yaml')[0] ?? '', /^missing\.yaml:1:1: cannot be read: ENOENT/)
  file('large.yaml', `models: { m: { input: 1, output: 1 } } # ${'x'.repeat(1_000_000)}`)
  assert.match(named('large.yaml')[0] ?? '', /has \d+ bytes, and 1000000 are the most/)
  assert.match(
    faultsIn(() => readConfig(file('gate.yaml', `${policies}prices: {}\n`)))[0] ?? '',
    /prices\.file: is missing: name the file with the prices/,
  )
  assert.match(
    faultsIn(() => readPriceFile(file('twice.yaml', 'models: { m: { input: 1, output: 1 }, m: { input: 2, output: 2 } }')))[0] ?? '',
    /unique/i,
  )
})

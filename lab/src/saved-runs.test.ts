import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { OCEAN_SCENARIOS } from './ocean/ocean-scenarios.js'
import type { LabFiles } from './saved-runs.js'
import { SCENARIOS } from './scenarios.js'

const saved = <Name extends keyof LabFiles>(name: Name): LabFiles[Name] =>
  JSON.parse(readFileSync(new URL(`../results/${name}.json`, import.meta.url), 'utf8'))
const namesIn = (results: readonly { readonly name: string }[]): string[] => [...new Set(results.map(({ name }) => name))].sort()

test('the committed runs have every scenario, a soak of at least half an hour, and no violation', () => {
  const [cluster, ocean] = [SCENARIOS, OCEAN_SCENARIOS].map(namesIn)
  assert.deepEqual(
    [saved('lab'), saved('soak')].map(({ results }) => namesIn(results)),
    [cluster, cluster],
  )
  assert.deepEqual(namesIn(saved('ocean').results), ocean)
  for (const name of ['lab', 'soak', 'ocean', 'ocean-soak'] as const) {
    const { minutes = 30, results } = saved(name)
    assert.ok(minutes >= 30 && results.length > 0)
    assert.deepEqual(
      results.flatMap((each) => each.violations as readonly string[]),
      [],
    )
  }
})

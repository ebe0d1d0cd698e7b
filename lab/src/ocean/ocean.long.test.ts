import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { runOceans } from './ocean-runs.js'
import { OCEAN_SCENARIOS } from './ocean-scenarios.js'

const NAMES = ['ocean: home killed']

/** Some seconds of the ocean; `npm run lab` has all scenarios. */
test('regions together admit one policy, and while their home is lost no more than their shares', async () => {
  const scenarios = OCEAN_SCENARIOS.filter(({ name }) => NAMES.includes(name))
  const results = await runOceans({ scenarios, soakMs: undefined, random: new Random(1), ran: () => undefined })
  assert.equal(results.length, NAMES.length)
  for (const { name, violations, allowed } of results) {
    assert.deepEqual(violations, [], name)
    assert.ok(allowed > 0)
  }
})

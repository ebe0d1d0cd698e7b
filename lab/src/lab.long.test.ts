import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Lab } from './lab.js'
import { runScenario } from './run-scenario.js'
import { SCENARIOS } from './scenarios.js'

const RATE = 200

/** A minute of the lab; `npm run lab` has all scenarios. */
test('invariants hold while nothing fails, while a shard is killed, and while a node crashes', async () => {
  await using lab = await Lab.start(2)
  for (const name of ['steady', 'shard killed', 'node crash']) {
    const scenario = SCENARIOS.find((each) => each.name === name)
    assert.ok(scenario !== undefined)
    const { violations, allowed } = await runScenario(lab, scenario, RATE, 1)
    assert.deepEqual(violations, [], name)
    assert.ok(allowed > 0)
  }
})

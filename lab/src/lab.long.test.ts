import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { Lab } from './lab.js'
import { Ocean } from './ocean/ocean.js'
import { OCEAN_SCENARIOS } from './ocean/ocean-scenarios.js'
import { runOcean } from './ocean/run-ocean.js'
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

/** Some seconds of the ocean; `npm run lab` has all scenarios. */
test('regions together admit one policy, and while their home is lost no more than their shares', async () => {
  await using ocean = await Ocean.start()
  const scenario = OCEAN_SCENARIOS.find(({ name }) => name === 'ocean: home killed')
  assert.ok(scenario !== undefined)
  const { violations, allowed } = await runOcean(ocean, scenario, new Random(1).integer(0, 2 ** 31))
  assert.deepEqual(violations, [])
  assert.ok(allowed > 0)
})

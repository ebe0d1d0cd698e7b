import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyNth, shortOrLong } from '../run-length.js'
import { ExploredModules } from './explored-modules.js'
import { inEachEncoding } from './scenario.js'
import { SCENARIOS } from './scenarios.js'

// What every run of the tests explores; `npm run prove:schedules` goes further.
const MOST = shortOrLong(20, 1_000)
const SEARCHES = [
  { preemptions: 2, deaths: 0, most: MOST },
  { preemptions: 1, deaths: 1, most: MOST },
]
/** Beyond those bounds, by chance. */
const WALKS = { walks: shortOrLong(3, 40), seed: 20_240_901 }
/** In a short run every third scenario. */
const STEP = 3
const LEAST_SCHEDULES = shortOrLong(30, 100) * MOST

const modules = await ExploredModules.compile(SCENARIOS)
let schedules = 0

for (const [i, scenario] of SCENARIOS.entries()) {
  everyNth(i, STEP)(`I1, I4, I7, I8 hold in every schedule: ${scenario.name}`, () => {
    for (const asked of inEachEncoding(scenario)) {
      for (const bounds of [...SEARCHES, WALKS]) {
        const found = modules.explore(asked, bounds)
        assert.equal(found.violation, undefined, JSON.stringify(found.violation, undefined, 2))
        schedules += found.schedules
      }
    }
  })
}

test(`at least ${LEAST_SCHEDULES} schedules were run`, (t) => {
  t.diagnostic(`${schedules} schedules`)
  assert.ok(schedules >= LEAST_SCHEDULES, `${schedules}`)
})

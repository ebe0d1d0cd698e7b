import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { FAULTY_REGIONS, SOUND_REGIONS } from './region-faults.js'
import { regionHistory } from './region-history.js'

const HISTORIES = shortOrLong(60, 3_000)

/** By broken rule: a history that shows it. */
const SEEDS = JSON.parse(readFileSync(new URL('../../seeds/region-histories.json', import.meta.url), 'utf8')) as Record<string, number>

test('regions together never admit more than the budget, in histories that show broken rules', () => {
  for (const seed of Object.values(SEEDS)) assert.equal(regionHistory(seed, SOUND_REGIONS).excess, undefined, `seed ${seed}`)
})

test('regions together never admit more than the budget, whatever is cut off, lost, restarted or off in its clock', () => {
  const from = Math.floor(Math.random() * 2 ** 31)
  let tokens = 0
  for (let seed = from; seed < from + HISTORIES; seed++) {
    const { excess, budget, admissions } = regionHistory(seed, SOUND_REGIONS)
    assert.equal(excess, undefined, `seed ${seed}: ${JSON.stringify({ excess, budget })}`)
    tokens += admissions.length
  }
  assert.ok(tokens > 100 * HISTORIES, `${tokens} tokens in ${HISTORIES} histories`)
})

for (const rules of FAULTY_REGIONS) {
  test(`a broken rule is found: ${rules.name}`, () => {
    assert.notEqual(regionHistory(SEEDS[rules.name] as number, rules).excess, undefined)
  })
}

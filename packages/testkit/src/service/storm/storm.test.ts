import { test } from 'node:test'
import { canSharePorts } from 'sluicegate-server/dist/processes/child.js'
import { longTest, shortOrLong } from 'sluicegate-testkit'
import { STORM_NAMES, storm } from './storm.js'
import { stormedService } from './stormed-service.js'

const CLIENTS = shortOrLong(60, 2_000)
const SEED = 20_261
/** Seeds that found a fault once, by what they stormed. */
const SAVED_SEEDS: Readonly<Partial<Record<string, readonly number[]>>> = {}

test('clients of every protocol that break off anywhere leave nothing behind, and others are answered meanwhile', async (t) => {
  const stormed = await stormedService(t, process.execPath)
  for (const name of STORM_NAMES) {
    for (const seed of [SEED, ...(SAVED_SEEDS[name] ?? [])]) await storm(stormed, name, seed, CLIENTS)
    await stormed.isAsBefore()
  }
})

for (const flag of canSharePorts() ? ['--processes', '--threads'] : ['--processes']) {
  longTest(`with ${flag} no call of others fails in a storm either`, async (t) => {
    const stormed = await stormedService(t, process.execPath, flag, '2')
    for (const name of STORM_NAMES) {
      await storm(stormed, name, SEED, CLIENTS)
      await stormed.isAsBefore()
    }
  })
}

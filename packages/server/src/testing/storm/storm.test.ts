import { test } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { STORM_NAMES, storm } from './storm.js'
import { stormedService } from './stormed-service.js'

const CLIENTS = shortOrLong(150, 5_000)
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

import { test } from 'node:test'
import { canSharePorts } from 'sluicegate-server/dist/processes/child.js'
import { ENCRYPTED, stormedService } from './bystanders.js'
import { STORM_NAMES, storm } from './storm.js'

const CLIENTS = 300
const SEED = 20_261
/** Seeds that found a fault once, by what they stormed. */
const SAVED_SEEDS: Readonly<Partial<Record<string, readonly number[]>>> = {}

/** Handshakes take longer than all else that a client does. */
const ENCRYPTED_CLIENTS = 20
/** Node.js may keep sockets of clients that break off under encryption for ever: the process, which this file has alone, need not wait. */
const LONGEST_REST_MS = 10_000

test('clients of every protocol that break off anywhere leave nothing behind, and others are answered meanwhile', async (t) => {
  const stormed = await stormedService(t, process.execPath)
  for (const name of STORM_NAMES) {
    for (const seed of [SEED, ...(SAVED_SEEDS[name] ?? [])]) await storm(stormed, name, seed, CLIENTS)
    await stormed.isAsBefore()
  }
})

test('so do clients that encrypt, also where a handshake is cut, slow, damaged, for another protocol or in the middle', async (t) => {
  const stormed = await stormedService(t, process.execPath, ENCRYPTED)
  for (const name of STORM_NAMES) {
    await storm(stormed, name, SEED, ENCRYPTED_CLIENTS)
    await stormed.isAsBefore()
  }
})

const WORKERS = canSharePorts() ? ['--processes', '--threads'] : ['--processes']
const ALL_FLAGS = WORKERS.flatMap((flag) => [[flag], [flag, ENCRYPTED]])
for (const flags of ALL_FLAGS) {
  test(`with ${flags.join(', ')} no call of others fails in a storm either`, async (t) => {
    if (flags === ALL_FLAGS.at(-1)) t.after(() => setTimeout(() => process.exit(), LONGEST_REST_MS).unref())
    const [flag = '', ...encrypted] = flags
    const stormed = await stormedService(t, process.execPath, flag, '2', ...encrypted)
    for (const name of STORM_NAMES) {
      await storm(stormed, name, SEED, encrypted.length > 0 ? ENCRYPTED_CLIENTS : CLIENTS)
      await stormed.isAsBefore()
    }
  })
}

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import { ALGORITHM_NAMES, PostgresProcess, seedsOf, shortOrLong } from 'sluicegate-testkit'
import { limiterAtGivenTimes } from 'sluicegate-testkit/postgres/given-time.js'
import { type LimiterOnStore, mismatchOnStore } from 'sluicegate-testkit/stores/compare-on-store.js'
import { postgresTable } from './table-name.js'

/** Of each algorithm; some 22 steps each. */
const SEQUENCES = shortOrLong(1, 20)
const AT_ONCE = 8

let server: PostgresProcess
let pools: readonly pg.Pool[]
before(async () => {
  server = await PostgresProcess.start()
  for (let i = 0; i < AT_ONCE; i++) await server.ask(postgresTable({ table: `at_once_${i}` }))
  pools = Array.from({ length: AT_ONCE }, () => new pg.Pool({ connectionString: server.url, max: 1 }))
})
after(async () => {
  await Promise.all(pools.map((pool) => pool.end()))
  await server.stop()
})

for (const algorithm of ALGORITHM_NAMES) {
  test(`${algorithm} in a table of PostgreSQL answers what the oracle says, field by field, over ${SEQUENCES} random sequences`, async () => {
    // Each once: the keys of a sequence have its seed in their names.
    const seeds = seedsOf(algorithm, SEQUENCES)
    // A table each: the expired rows of one are swept at its own time. And one connection, so that a sweep ends before the next sequence begins.
    const next = async (pool: pg.Pool, i: number): Promise<void> => {
      for (let seed = seeds.pop(); seed !== undefined; seed = seeds.pop()) {
        const make: LimiterOnStore = (policy, prefix) => limiterAtGivenTimes(pool, policy, { prefix, mode: 'exact' }, `at_once_${i}`)
        const mismatch = await mismatchOnStore(seed, algorithm, make, true)
        assert.equal(mismatch, undefined, `seed ${seed}: ${JSON.stringify(mismatch)}`)
      }
    }
    await Promise.all(pools.map(next))
  })
}

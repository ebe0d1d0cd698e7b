import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import {
  type Answer,
  mismatchIn,
  oracleAnswers,
  PostgresProcess,
  type Sequence,
  savedSeeds,
  seedsFrom,
  sequenceOf,
  shortOrLong,
  VECTOR_ALGORITHMS,
} from 'sluicegate-testkit'
import { limiterAtGivenTimes } from 'sluicegate-testkit/postgres/given-time.js'
import { FleetReplay, namedPolicy } from 'sluicegate-testkit/twins/fleet-replay.js'
import { postgresTable } from './table-name.js'

/** Of each algorithm; some 22 steps each. */
const SEQUENCES = shortOrLong(8, 300)
/** Over more, permits are not compared yet. */
const OF_PERMITS = 8
const AT_ONCE = 8

let server: PostgresProcess
let pool: pg.Pool
before(async () => {
  server = await PostgresProcess.start()
  await server.ask(postgresTable())
  pool = new pg.Pool({ connectionString: server.url, max: AT_ONCE })
})
after(async () => {
  await pool.end()
  await server.stop()
})

for (const algorithm of VECTOR_ALGORITHMS) {
  const sequences = algorithm === 'concurrency' ? OF_PERMITS : SEQUENCES
  test(`${algorithm} in a table of PostgreSQL answers what the oracle says, field by field, over ${sequences} random sequences`, async () => {
    const seeds = [...savedSeeds(algorithm), ...seedsFrom(1, sequences)]
    const next = async (): Promise<void> => {
      for (let seed = seeds.pop(); seed !== undefined; seed = seeds.pop()) {
        const sequence = sequenceOf(seed, algorithm)
        const kept = sequence.steps.filter(({ verb }) => verb !== 'update')
        const steps = algorithm === 'concurrency' ? kept : forwards(kept)
        const steady = { ...sequence, steps }
        const mismatch = mismatchIn(steady, oracleAnswers(steady), await answersOf(steady, `${algorithm} ${seed}`))
        assert.equal(mismatch, undefined, `seed ${seed}: ${JSON.stringify(mismatch)}`)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, next))
  })
}

/** A store keeps nothing of a full key, so it does not know that its clock ran back since; `races.test.ts` and the chaos have such clocks. */
function forwards(steps: Sequence['steps']): Sequence['steps'] {
  let latestMs = Number.NEGATIVE_INFINITY
  return steps.map((step) => {
    latestMs = Math.max(latestMs, step.atMs)
    return { ...step, atMs: latestMs }
  })
}

async function answersOf({ policy, steps }: Sequence, prefix: string): Promise<(Answer | undefined)[]> {
  const replay = new FleetReplay(limiterAtGivenTimes(pool, namedPolicy(policy), { prefix, mode: 'exact' }))
  const answers: (Answer | undefined)[] = []
  for (const step of steps) answers.push(await replay.answer(step))
  replay.close()
  return answers
}

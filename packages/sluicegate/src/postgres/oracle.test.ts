import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import pg from 'pg'
import {
  type Answer,
  mismatchIn,
  oracleAnswers,
  oracleFor,
  PostgresProcess,
  type Sequence,
  savedSeeds,
  seedsFrom,
  sequenceOf,
  shortOrLong,
  VECTOR_ALGORITHMS,
  versionedOracleFor,
} from 'sluicegate-testkit'
import { limiterAtGivenTimes } from 'sluicegate-testkit/postgres/given-time.js'
import { FleetReplay, namedPolicy } from 'sluicegate-testkit/twins/fleet-replay.js'
import { withUpdates } from 'sluicegate-testkit/twins/twin-sequence.js'
import { postgresTable } from './table-name.js'

/** Of each algorithm; some 22 steps each. */
const SEQUENCES = shortOrLong(8, 300)
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
  test(`${algorithm} in a table of PostgreSQL answers what the oracle says, field by field, over ${SEQUENCES} random sequences`, async () => {
    await compare(algorithm, 'steady', oracleFor, (_, steps) => steps.filter(({ verb }) => verb !== 'update'))
  })

  test(`${algorithm} in a table of PostgreSQL carries each key over to changed numbers when it is next touched`, async () => {
    await compare(algorithm, 'updates', versionedOracleFor, withUpdates)
  })
}

async function compare(
  algorithm: (typeof VECTOR_ALGORITHMS)[number],
  prefix: string,
  oracle: typeof oracleFor,
  stepsOf: typeof withUpdates,
): Promise<void> {
  const seeds = [...savedSeeds(algorithm), ...seedsFrom(1, SEQUENCES)]
  const next = async (): Promise<void> => {
    for (let seed = seeds.pop(); seed !== undefined; seed = seeds.pop()) {
      const { policy, steps } = sequenceOf(seed, algorithm)
      const sequence = { policy, steps: stepsOf(policy, forwards(steps)) }
      const mismatch = mismatchIn(sequence, oracleAnswers(sequence, oracle), await answersOf(sequence, `${prefix} ${algorithm} ${seed}`))
      assert.equal(mismatch, undefined, `seed ${seed}: ${JSON.stringify(mismatch)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
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

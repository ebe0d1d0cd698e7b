import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  ALGORITHM_NAMES,
  type Answer,
  largeSeeds,
  mismatchIn,
  newestFirst,
  oracleAnswers,
  savedTwinSeeds,
  seedsFrom,
  shortOrLong,
  versionedOracleFor,
} from 'sluicegate-testkit'
import { GIVEN, withGivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { compareTwins, mostAheadInStoreMs } from 'sluicegate-testkit/twins/compare-twins.js'
import { exactLimiter, FleetReplay, namedPolicy } from 'sluicegate-testkit/twins/fleet-replay.js'
import { SCRIPTS } from './scripts.gen.js'

/** Of each algorithm; some 22 steps each. */
const SEQUENCES = shortOrLong(3, 25)
/** The same with changes of policy. */
const WITH_UPDATES = shortOrLong(2, 16)
/** Of thousands of permits a take. */
const OF_PERMITS = shortOrLong(2, 8)
const NEWEST_FIRST = shortOrLong(5, 20)

const seedsBoth = (count: number): readonly number[] => [...seedsFrom(1, count), ...largeSeeds(count)]

const redis = await ownRedis()
after(() => redis.stop())

test('every script reads its time in one place, for which a given one can stand', () => {
  for (const { source } of Object.values(SCRIPTS)) {
    const given = withGivenTime(source)
    assert.ok(!given.includes("'TIME'"))
    assert.equal(given.length, source.length - "redis.call('TIME')".length + GIVEN.length + '00000000000000'.length)
  }
})

for (const algorithm of ALGORITHM_NAMES) {
  test(`${algorithm} on the store answers random sequences as the oracle and the limiter in memory do, field by field`, async () => {
    const seeds = [...savedTwinSeeds(algorithm), ...seedsBoth(algorithm === 'concurrency' ? OF_PERMITS : SEQUENCES)]
    const { sequences, steps, inMemory, mismatches } = await compareTwins(redis.runner, { algorithm, seeds, prefix: 'twins' })
    assert.deepEqual(mismatches.slice(0, 3), [])
    assert.equal(sequences, seeds.length)
    assert.ok(steps > 17 * sequences, `${steps} steps`)
    assert.ok(inMemory > sequences / 4, `${inMemory} against memory`)
  })

  test(`${algorithm} on the store carries each key over when it is next touched, as declared`, async () => {
    const seeds = [...savedTwinSeeds(algorithm), ...seedsBoth(algorithm === 'concurrency' ? OF_PERMITS : WITH_UPDATES)]
    const options = { algorithm, seeds, prefix: 'updates', updates: true, oracle: versionedOracleFor }
    const { sequences, mismatches } = await compareTwins(redis.runner, options)
    assert.deepEqual(mismatches.slice(0, 3), [])
    assert.equal(sequences, seeds.length)
  })
}

test('bookings of a rate that are given up the newest first come back on the store as the oracle says', async () => {
  for (const seed of seedsFrom(1, NEWEST_FIRST)) {
    const sequence = newestFirst(seed)
    const replay = new FleetReplay(exactLimiter(redis.runner, `newest first ${seed}`, namedPolicy(sequence.policy)))
    const actual: (Answer | undefined)[] = []
    for (const step of sequence.steps) actual.push(await replay.answer(step))
    replay.close()
    assert.equal(mismatchIn(sequence, oracleAnswers(sequence), actual, mostAheadInStoreMs), undefined, `seed ${seed}`)
  }
})

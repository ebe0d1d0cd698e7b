import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import {
  ALGORITHM_NAMES,
  compareSeeds,
  crewFor,
  EndlessDemand,
  firstMismatch,
  firstPositionExcess,
  firstShortfall,
  largeSeeds,
  newestFirst,
  Random,
  replayedInMemory,
  savedSeeds,
  seedsFrom,
  sequenceOf,
  shortOrLong,
} from 'sluicegate-testkit'
import { createLimiter, type Limiter, slidingLog } from '../index.js'

const PLAIN_SEQUENCES = shortOrLong(150, 600)
/** Of each algorithm, with all verbs. */
const SEQUENCES = shortOrLong(15, 80)
const NEWEST_FIRST = shortOrLong(10, 40)

test('every seed that once found something still finds nothing', () => {
  for (const algorithm of [undefined, ...ALGORITHM_NAMES]) {
    assert.deepEqual(compareSeeds(savedSeeds(algorithm), { algorithm }).mismatches, [], algorithm)
  }
})

test(`a rate answers ${PLAIN_SEQUENCES} random sequences of plain verbs as the oracle does, field by field`, () => {
  const { sequences, mismatches } = compareSeeds(seedsFrom(1, PLAIN_SEQUENCES))
  assert.equal(sequences, PLAIN_SEQUENCES)
  assert.deepEqual(mismatches.slice(0, 5), [])
})

for (const algorithm of ALGORITHM_NAMES) {
  test(`${algorithm} answers ${SEQUENCES} random sequences of all verbs as the oracle does, field by field`, () => {
    const { sequences, mismatches } = compareSeeds(seedsFrom(1, SEQUENCES), { algorithm })
    assert.equal(sequences, SEQUENCES)
    assert.deepEqual(mismatches.slice(0, 5), [])
  })

  test(`${algorithm} answers ${SEQUENCES} sequences with limits up to 2^53 - 1 as the oracle does, where it has such limits`, () => {
    assert.deepEqual(compareSeeds(largeSeeds(SEQUENCES), { algorithm }).mismatches.slice(0, 5), [])
  })
}

test('bookings of a rate that are given up the newest first come back as the oracle says', () => {
  for (const seed of seedsFrom(1, NEWEST_FIRST)) {
    const sequence = newestFirst(seed)
    const replayed = replayedInMemory(sequence)
    assert.equal(firstMismatch(sequence, replayed), undefined, `seed ${seed}`)
    for (const end of replayed.ends) end.close()
  }
})

test('a wrong answer in any field and at any step is noticed', () => {
  for (const algorithm of [undefined, ...ALGORITHM_NAMES]) {
    for (const field of ['allowed', 'limit', 'remaining', 'retryAfterMs', 'resetAfterMs'] as const) {
      const sequence = sequenceOf(7, algorithm)
      const replayed = replayedInMemory(sequence)
      const asked = sequence.steps.filter(({ verb }) => ['take', 'peek', 'refund', 'penalize', 'block', 'reset'].includes(verb)).length
      let calls = 0
      const wrongly = (limiter: Limiter): Limiter =>
        new Proxy(limiter, {
          get: (target, name) => {
            const method = target[name as 'take'].bind(target)
            if (name === 'reserve' || name === 'update') return method
            return (...args: Parameters<typeof method>) => {
              const decision = method(...args)
              if (++calls < asked) return decision
              return { ...decision, [field]: field === 'allowed' ? !decision.allowed : decision[field] + 1 }
            }
          },
        })
      assert.equal(firstMismatch(sequence, { ...replayed, ends: replayed.ends.map(wrongly) })?.field, field, algorithm)
    }
  }
})

const WORKERS = shortOrLong(2, 4)
const LIMIT = 1000
const WINDOW_US = 1_000_000
const LENGTH_US = 10 * WINDOW_US
/** At the start of a window. */
const START_US = 1_789_000_000_000_000
const PLANTED = shortOrLong(8, 20)
const HOT = 'hot'

const crew = crewFor({ after }, WORKERS)

test(`the log proof: ${WORKERS} threads that never stop asking get ${LIMIT} in every window of ten seconds, and in no position one more`, async (t) => {
  const clockUs = new BigInt64Array(new SharedArrayBuffer(8)).fill(BigInt(START_US))
  const clock = { nowMs: () => Number(Atomics.load(clockUs, 0)) / 1000 }
  const limiter = createLimiter(slidingLog({ limit: LIMIT, window: WINDOW_US / 1000 }), { clock, maxKeys: 10 })
  await crew.attach({ handle: limiter.handle(), clockUs })
  const random = new Random(8)
  // First some demand here and there, so that what passes is spread over the window; from then on more than there can be.
  const early = await sparseDemand(clockUs, random)
  const { momentsUs, readings } = await endlessDemand(t, clockUs, random)
  const admissions = [...early, ...readings].sort((a, b) => a - b).map((atUs) => ({ atUs, cost: 1 }))

  assert.equal(firstPositionExcess(LIMIT, WINDOW_US, admissions), undefined)
  assert.equal(firstShortfall(LIMIT, WINDOW_US, admissions, momentsUs), undefined)
  assert.ok(early.length > LIMIT / 2 && early.length < LIMIT && momentsUs.length > 500)
  assert.ok(new Set(admissions.map(({ atUs }) => atUs)).size > 200)

  // One more anywhere, or one fewer, and the proof would have failed.
  for (let planted = 0; planted < PLANTED; planted++) {
    const atUs = random.integer(START_US + WINDOW_US, Number(clockUs[0]))
    const over = firstPositionExcess(LIMIT, WINDOW_US, [...admissions, { atUs: momentsUs.find((us) => us >= atUs) ?? atUs, cost: 1 }])
    assert.equal(over?.admitted, LIMIT + 1)
    const gone = random.integer(early.length, admissions.length - 1)
    assert.equal(firstShortfall(LIMIT, WINDOW_US, admissions.toSpliced(gone, 1), momentsUs)?.admitted, LIMIT - 1)
  }
})

/** Answers the readings by which takes passed. */
async function sparseDemand(clockUs: BigInt64Array, random: Random): Promise<readonly number[]> {
  const readings: number[] = []
  while (readings.length < LIMIT / 2 + 2 * WORKERS) {
    const passed = (await crew.ask({ kind: 'take', keys: [HOT], rounds: 1 })) as number[][]
    for (const count of passed.flat()) for (let i = 0; i < count; i++) readings.push(Number(clockUs[0]))
    Atomics.add(clockUs, 0, BigInt(random.integer(1, WINDOW_US / 150)))
  }
  return readings
}

/** Returns the times of denials, each as the clock showed it, and the readings by which takes passed. */
async function endlessDemand(
  t: TestContext,
  clockUs: BigInt64Array,
  random: Random,
): Promise<{ momentsUs: readonly number[]; readings: readonly number[] }> {
  const demand = new EndlessDemand(crew, HOT, 1)
  t.after(() => demand.end())
  const momentsUs: number[] = []
  for (
    let nowUs = Number(clockUs[0]);
    nowUs < START_US + LENGTH_US;
    nowUs += random.pick([1, random.integer(1, 1000), random.integer(1, 15_000)])
  ) {
    Atomics.store(clockUs, 0, BigInt(nowUs))
    demand.awaitDenialAt(nowUs)
    momentsUs.push(nowUs)
  }
  return { momentsUs, readings: await demand.end() }
}

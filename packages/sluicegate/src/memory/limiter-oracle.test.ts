import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ALGORITHM_NAMES,
  compareSeeds,
  firstMismatch,
  newestFirst,
  replayedInMemory,
  savedSeeds,
  seedsFrom,
  sequenceOf,
  shortOrLong,
} from 'sluicegate-testkit'
import type { Limiter } from '../index.js'

const PLAIN_SEQUENCES = shortOrLong(150, 1_500)
/** Of each algorithm, with all verbs. */
const SEQUENCES = shortOrLong(15, 200)
const NEWEST_FIRST = shortOrLong(10, 100)

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

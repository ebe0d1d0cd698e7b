import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareSeeds, firstMismatch, replayedInMemory, savedSeeds, seedsFrom, sequenceOf } from 'sluicegate-testkit'
import type { Limiter } from './index.js'

const SEQUENCES = 20_000

test('every seed that once found something still finds nothing', () => {
  assert.deepEqual(compareSeeds(savedSeeds()).mismatches, [])
})

test(`the limiter answers ${SEQUENCES} random sequences as the oracle does, field by field`, () => {
  const { sequences, mismatches } = compareSeeds(seedsFrom(1, SEQUENCES))
  assert.equal(sequences, SEQUENCES)
  assert.deepEqual(mismatches.slice(0, 5), [])
})

test('a wrong answer in any field and at any step is noticed', () => {
  for (const field of ['allowed', 'limit', 'remaining', 'retryAfterMs', 'resetAfterMs'] as const) {
    const sequence = sequenceOf(7)
    const replayed = replayedInMemory(sequence)
    const last = sequence.steps.filter(({ verb }) => verb !== 'update').length
    let calls = 0
    const wrongly = (limiter: Limiter): Limiter =>
      new Proxy(limiter, {
        get: (target, name) => {
          const method = target[name as 'take'].bind(target)
          return (...args: Parameters<typeof method>) => {
            const decision = method(...args)
            if (++calls < last) return decision
            return { ...decision, [field]: field === 'allowed' ? !decision.allowed : decision[field] + 1 }
          }
        },
      })
    assert.equal(firstMismatch(sequence, { ...replayed, ends: replayed.ends.map(wrongly) })?.field, field)
  }
})

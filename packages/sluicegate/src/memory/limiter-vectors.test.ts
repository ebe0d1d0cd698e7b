import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answered, limiterAnswers, replayedInMemory, savedVectors, VECTOR_ALGORITHMS } from 'sluicegate-testkit'

for (const algorithm of VECTOR_ALGORITHMS) {
  for (const vector of savedVectors(algorithm)) {
    test(`${algorithm} vector: the limiter reproduces "${vector.name}"`, () => {
      const answers = answered(algorithm, vector, (sequence) => limiterAnswers(sequence.steps, replayedInMemory(sequence)))
      assert.deepEqual(answers, vector)
    })
  }
}

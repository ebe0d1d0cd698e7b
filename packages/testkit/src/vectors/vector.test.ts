import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answered } from './vector.js'
import { freshVectorText, savedVectors, VECTOR_ALGORITHMS, vectorText } from './vector-files.js'

for (const algorithm of VECTOR_ALGORITHMS) {
  test(`the golden vectors of ${algorithm} are what the oracle says today`, () => {
    assert.equal(vectorText(algorithm), freshVectorText(algorithm))
  })

  for (const vector of savedVectors(algorithm)) {
    test(`${algorithm} vector: the oracle reproduces "${vector.name}"`, () => {
      assert.deepEqual(answered(algorithm, vector), vector)
    })
  }

  test(`a ${algorithm} vector that says otherwise is noticed`, () => {
    const [vector] = savedVectors(algorithm)
    assert.ok(vector)
    const [first, ...rest] = vector.steps
    assert.ok(first?.answer)
    const wrong = { ...vector, steps: [{ ...first, answer: { ...first.answer, remaining: (first.answer.remaining ?? 0) + 1 } }, ...rest] }
    assert.notDeepEqual(answered(algorithm, wrong), wrong)
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  answered,
  policyOf,
  savedVectors,
  specOf,
  VECTOR_ALGORITHMS,
  type VectorAlgorithm,
  type VectorPolicy,
  type VectorSubject,
} from 'sluicegate-testkit'
import { createLimiter, manualClock } from './index.js'

for (const algorithm of VECTOR_ALGORITHMS) {
  for (const vector of savedVectors(algorithm)) {
    test(`${algorithm} vector: the limiter reproduces "${vector.name}"`, () => {
      assert.deepEqual(answered(vector, memorySubject(algorithm, vector.policy)), vector)
    })
  }
}

function memorySubject(algorithm: VectorAlgorithm, policy: VectorPolicy): VectorSubject {
  const clock = manualClock()
  const limiter = createLimiter(policyOf(algorithm, specOf(policy)), { clock, maxKeys: 4 })
  return (call, atUs) => {
    clock.set(atUs / 1000)
    if ('take' in call) return limiter.take('k', call.take)
    if ('peek' in call) return limiter.peek('k', call.peek)
    if ('refund' in call) return limiter.refund('k', call.refund)
    if ('penalize' in call) return limiter.penalize('k', call.penalize)
    if ('blockUs' in call) return limiter.block('k', call.blockUs / 1000)
    if ('reset' in call) return limiter.reset('k')
    limiter.update(policyOf(algorithm, specOf(call.update)))
    return undefined
  }
}

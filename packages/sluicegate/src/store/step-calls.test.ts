import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, tokenBucket } from '../index.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { casStore } from './cas.js'
import type { CasStep, CasStore } from './cas-store.js'

/** A store that computes, of which every step passes. @param groups of each call so far */
function passing(groups: number[]): CasStore {
  const memory = memoryStore()
  return {
    name: 'passing',
    read: (key) => memory.read(key),
    swap: (swap) => memory.swap(swap),
    step: async (asked) => {
      groups.push(asked.length)
      await new Promise(setImmediate)
      return asked.map((steps) => steps.map(passed))
    },
  }
}

function passed({ times, unit, pace, cap, amount }: CasStep) {
  const nowUs = Date.now() * 1000
  return { done: times, debt: amount, nowUs, state: { at: nowUs, rest: amount, unit, pace, cap, ahead: false, blocked: 0 } }
}

test('callers that were answered together ask together again, however many microtasks each needs, and one alone waits for no turn', async () => {
  const groups: number[] = []
  const policy = tokenBucket({ limit: 1000, window: '1s', name: 'together' })
  const limiter = createLimiter(policy, { store: casStore(passing(groups)), mode: 'exact', outage: 'closed', timeout: 5000 })
  const caller = async (key: string, hops: number): Promise<void> => {
    for (let take = 0; take < 20; take++) {
      await limiter.take(key)
      for (let hop = 0; hop < hops; hop++) await undefined
    }
  }
  await Promise.all(Array.from({ length: 16 }, (_, i) => caller(`key ${i}`, 3 * i)))
  assert.ok(groups.length <= 25, `${groups.length} calls for 20 of each of 16 callers: ${groups}`)
  await limiter.take('alone')
  groups.length = 0
  const alone = limiter.take('alone')
  for (let hop = 0; hop < 20; hop++) await undefined
  assert.deepEqual(groups, [1])
  await alone
  limiter.close()
})

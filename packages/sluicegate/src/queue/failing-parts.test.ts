import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock, type Policy, tokenBucket } from '../index.js'
import { afterDelay } from '../slow-down.js'
import { createQueue } from './create-queue.js'
import type { QueueLimiter } from './queue-options.js'

// Queues over limiters and clocks that fail: each job hears of it, no place is lost, and nothing is unhandled.

const POLICY: Policy = tokenBucket({ limit: 1, window: '1s' })
const ALLOWED = { allowed: true, limit: 1, remaining: 0, retryAfterMs: 0, resetAfterMs: 1000, policy: 'p', source: 'memory' } as const
const DENIED = { ...ALLOWED, allowed: false, retryAfterMs: 1000 }
const FAILURE = new Error('it fails')

function fail(): never {
  throw FAILURE
}

function limiterOf(parts: Partial<QueueLimiter>): QueueLimiter {
  const refuse = async () => DENIED
  return { policy: POLICY, take: () => ALLOWED, wait: refuse, refund: () => ALLOWED, penalize: () => ALLOWED, ...parts }
}

const LIMITERS: readonly (readonly [string, Partial<QueueLimiter>])[] = [
  ['take throws', { take: fail }],
  ['take rejects', { take: async () => fail() }],
  ['wait throws', { take: () => DENIED, wait: fail }],
  ['wait rejects', { take: () => DENIED, wait: async () => fail() }],
]

for (const [name, parts] of LIMITERS) {
  test(`a limiter whose ${name} rejects each job, and the queue is empty after it`, async () => {
    const queue = createQueue(limiterOf(parts), { concurrency: 1, clock: manualClock() })
    for (let i = 0; i < 3; i++)
      await assert.rejects(
        queue.run('key', () => 1),
        FAILURE,
      )
    const { queued, running, keys } = queue.stats()
    assert.deepEqual([queued, running, keys], [0, 0, 0])
  })
}

test('a limiter that only waits, and throws then, rejects the job that is next', async () => {
  let waits = 0
  const wait = async () => (waits++ === 0 ? ALLOWED : fail())
  const queue = createQueue(limiterOf({ take: () => DENIED, wait }), { clock: manualClock() })
  assert.equal(await queue.run('key', () => 1), 1)
  await assert.rejects(
    queue.run('key', () => 2),
    FAILURE,
  )
  assert.equal(queue.stats().keys, 0)
})

test('a clock that fails when a job is to start rejects it and frees its place', async () => {
  const manual = manualClock()
  let isFailing = false
  const clock = { nowMs: () => (isFailing ? fail() : manual.nowMs()), after: manual.after }
  const queue = createQueue(limiterOf({ take: async () => ALLOWED }), { concurrency: 1, clock })
  const late = queue.run('key', () => 1, { timeout: 100 })
  isFailing = true
  await assert.rejects(late, FAILURE)
  isFailing = false
  assert.equal(await queue.run('key', () => 2, { timeout: 100 }), 2)
  assert.equal(queue.stats().running, 0)
})

test('a delay whose timer cannot be set frees its place and rejects', async () => {
  let places = 1
  const delay = { ms: 10, leave: () => void places-- }
  await assert.rejects(afterDelay(delay, 'value', {}, fail), FAILURE)
  assert.equal(places, 0)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AlgorithmName, policyOf, Random, randomPolicyOf } from 'sluicegate-testkit'
import { concurrency, fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from '../../index.js'
import type { Policy } from '../../policy/policy.js'
import { shareOfPolicy } from './share-of-policy.js'

const ALGORITHMS: readonly AlgorithmName[] = [
  'token-bucket',
  'gcra',
  'fixed-window',
  'sliding-window',
  'sliding-log',
  'concurrency',
  'all-of',
]
const YEAR_MS = 366 * 86_400_000

test('a share of 0.1 is a tenth of the rate, of the burst and of the limit', () => {
  const { limit, windowMs, burst } = shareOfPolicy(tokenBucket({ limit: 500, window: '1s', burst: 1000 }), 0.1)
  assert.deepEqual([limit, windowMs, burst], [50, 1000, 100])
  assert.equal(shareOfPolicy(fixedWindow({ limit: 1000, window: '1m' }), 0.1).limit, 100)
  assert.equal(shareOfPolicy(slidingWindow({ limit: 1000, window: '1m' }), 0.1).limit, 100)
  assert.equal(shareOfPolicy(slidingLog({ limit: 105, window: '1m' }), 0.1).limit, 10)
  assert.equal(shareOfPolicy(concurrency({ limit: 20 }), 0.1).limit, 2)
})

test('a share of a few tokens is one token, less often', () => {
  const { limit, windowMs, burst } = shareOfPolicy(gcra({ limit: 3, window: '1s', burst: 2 }), 0.1)
  assert.equal(burst, 1)
  assert.equal(limit, 1)
  assert.equal(windowMs, 3333.334)
})

test('the share of a very slow rate is a token in 366 days', () => {
  const { limit, windowMs } = shareOfPolicy(tokenBucket({ limit: 1, window: '90d' }), 0.1)
  assert.deepEqual([limit, windowMs], [1, YEAR_MS])
})

test('every policy has a share of any size, and it is never more than that', () => {
  const random = new Random(4)
  for (let i = 0; i < 20_000; i++) {
    const policy = policyOf(randomPolicyOf(random, random.pick(ALGORITHMS), true))
    const share = random.chance(0.3) ? random.pick([0.1, 0.5, 1, 1 / 3, 0.01]) : 10 ** (-6 * random.fraction())
    const own = shareOfPolicy(policy, share)
    assert.equal(own.name, policy.name)
    for (const [k, part] of (own.policies ?? [own]).entries()) checkShare(part, (policy.policies ?? [policy])[k] as Policy, share)
  }
})

function checkShare(own: Policy, { algorithm, limit, windowMs, burst }: Policy, share: number): void {
  const message = `${share} of ${limit} in ${windowMs} ms, burst ${burst}, is ${own.limit} in ${own.windowMs} ms, burst ${own.burst}`
  assert.ok(own.burst <= Math.max(1, burst * share), message)
  if (algorithm !== 'token-bucket' && algorithm !== 'gcra') {
    assert.equal(own.windowMs, windowMs, message)
    assert.ok(own.limit <= Math.max(1, limit * share), message)
    return
  }
  // Doubles: one part in 2^50 is theirs.
  const rate = (limit / windowMs) * share * (1 + 2 ** -50)
  assert.ok(own.limit / own.windowMs <= Math.max(rate, 1 / YEAR_MS), message)
}

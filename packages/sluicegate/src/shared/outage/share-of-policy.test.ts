import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ALGORITHM_NAMES, policyOf, Random, randomPolicyOf, shortOrLong } from 'sluicegate-testkit'
import { concurrency, createLimiter, fixedWindow, gcra, manualClock, slidingLog, slidingWindow, tokenBucket } from '../../index.js'
import type { Policy } from '../../policy/policy.js'
import { shareOfPolicy } from './share-of-policy.js'

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
  for (let i = 0; i < shortOrLong(3_000, 20_000); i++) {
    const policy = policyOf(randomPolicyOf(random, random.pick(ALGORITHM_NAMES), true))
    const share = random.chance(0.3) ? random.pick([0.1, 0.5, 1, 1 / 3, 0.01]) : 10 ** (-6 * random.fraction())
    const own = shareOfPolicy(policy, share)
    assert.equal(own.name, policy.name)
    for (const [k, part] of (own.policies ?? [own]).entries()) checkShare(part, (policy.policies ?? [policy])[k] as Policy, share)
  }
})

test('where the shares of windows are less than a token they add up to the rate of the policy; those of a calendar are a token each', () => {
  const nodes = 64
  for (const make of [fixedWindow, slidingWindow, slidingLog]) {
    const { limit, windowMs } = shareOfPolicy(make({ limit: 10, window: '1m' }), 1 / nodes)
    assert.deepEqual([limit, windowMs], [1, 384_000])
  }
  assert.equal(shareOfPolicy(slidingLog({ limit: 1, window: '30d' }), 1 / nodes).windowMs, YEAR_MS)
  const calendar = shareOfPolicy(fixedWindow({ limit: 10, window: 'day', timeZone: 'UTC' }), 1 / nodes)
  assert.deepEqual([calendar.limit, calendar.calendar?.unit], [1, 'day'])
  assert.equal(shareOfPolicy(concurrency({ limit: 10 }), 1 / nodes).limit, 1)
})

test('a limiter goes over from any share to any other, and gets no fresh budget by it', () => {
  const random = new Random(5)
  for (let i = 0; i < shortOrLong(100, 300); i++) {
    const policy = policyOf(randomPolicyOf(random, random.pick(ALGORITHM_NAMES), true))
    const limiter = createLimiter(shareOfPolicy(policy, 0.1), { clock: manualClock(1_000_000), maxKeys: 8 })
    const shares = Array.from({ length: 6 }, () => 1 / random.magnitude(1, 1000))
    for (const share of shares) {
      limiter.update(shareOfPolicy(policy, share))
      for (let takes = 0; takes < 5; takes++) limiter.take('k')
    }
    limiter.close()
  }
})

function checkShare(own: Policy, { algorithm, limit, windowMs, burst }: Policy, share: number): void {
  const message = `${share} of ${limit} in ${windowMs} ms, burst ${burst}, is ${own.limit} in ${own.windowMs} ms, burst ${own.burst}`
  assert.ok(own.burst <= Math.max(1, burst * share), message)
  if (algorithm !== 'token-bucket' && algorithm !== 'gcra') {
    assert.ok(own.limit <= Math.max(1, limit * share), message)
    const isLonger = own.windowMs > windowMs
    assert.equal(isLonger, isLonger && own.limit === 1 && limit * share < 1, message)
    if (isLonger) assert.ok(1 / own.windowMs <= Math.max((limit / windowMs) * share * (1 + 2 ** -50), 1 / YEAR_MS), message)
    return
  }
  // Doubles: one part in 2^50 is theirs.
  const rate = (limit / windowMs) * share * (1 + 2 ** -50)
  assert.ok(own.limit / own.windowMs <= Math.max(rate, 1 / YEAR_MS), message)
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'
import { describePolicy } from './policy-text.js'

const bucket = tokenBucket({ limit: 100, window: '1m', burst: 200 })

const TEXTS: readonly [policy: Policy, text: string][] = [
  [bucket, 'token-bucket, 100 per 1m, burst 200'],
  [gcra({ limit: 5, window: '250ms', burst: 1 }), 'gcra, 5 per 250ms, burst 1'],
  [fixedWindow({ limit: 100, window: '24h' }), 'fixed-window, 100 per 1d'],
  [fixedWindow({ limit: 100, window: 'month', timeZone: 'Europe/Rome' }), 'fixed-window, 100 per month in Europe/Rome'],
  [slidingWindow({ limit: 100, window: '90s' }), 'sliding-window, 100 per 90s'],
  [slidingLog({ limit: 100, window: '10s' }), 'sliding-log, 100 per 10s'],
  [allOf([bucket]), 'all-of, 1 policy'],
  [allOf([bucket, gcra({ limit: 5, window: '1s' })]), 'all-of, 2 policies'],
]

for (const [policy, text] of TEXTS) {
  test(`a policy reads "${text}"`, () => assert.equal(describePolicy(policy), text))
}

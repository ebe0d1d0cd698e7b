import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { settlingLimiter } from 'sluicegate-testkit/receipts/settling-limiter.js'
import { createLimiter, fixedWindow, type Limiter, manualClock, type Policy, tokenBucket } from '../index.js'
import { Middleware, type Pass } from './middleware.js'
import type { MiddlewareLimiter } from './middleware-options.js'

const KEY = '192.0.2.1'

function takeAll(limiter: Limiter): number {
  let taken = 0
  while (limiter.take(KEY).allowed) taken++
  return taken
}

test('what a key takes along to another policy is no longer where it was charged, and does not come back', () => {
  const clock = manualClock()
  const other = fixedWindow({ limit: 10, window: '1h', name: 'other' })
  let chosen: Policy | undefined
  const limiter = createLimiter(fixedWindow({ limit: 10, window: '1h', name: 'own' }), { clock, policyFor: () => chosen })
  const middleware = new Middleware<PlainRequest>({ limiter, cost: 4, counts: 'failures' })
  const outcome = middleware.handle(plainFacts({}), {}) as Pass
  chosen = other
  assert.equal(limiter.peek(KEY).remaining, 6)
  outcome.settle?.(200)
  assert.equal(takeAll(limiter), 6)
  chosen = undefined
  assert.equal(takeAll(limiter), 0)
})

test('a denial of one limit that comes after the window of another returns nothing to the next window', async () => {
  const clock = manualClock(1_790_000_000_000)
  const limiter = createLimiter(fixedWindow({ limit: 100, window: 300 }), { clock })
  let deny = (): void => undefined
  const denied = { allowed: false, limit: 1, remaining: 0, retryAfterMs: 1, resetAfterMs: 1, policy: 'late', source: 'store' } as const
  const late: MiddlewareLimiter = {
    policy: tokenBucket({ limit: 1, window: '1s', name: 'late' }),
    take: () =>
      new Promise((resolve) => {
        deny = () => resolve(denied)
      }),
    peek: async () => denied,
    refund: async () => denied,
  }
  const limits = [{ limiter: settlingLimiter(() => limiter), cost: 100 }, { limiter: late }]
  const middleware = new Middleware<PlainRequest>({ limits })
  const answer = middleware.handle(plainFacts({}), {}) as Promise<Pass>
  for (let turn = 0; turn < 5; turn++) await undefined
  assert.equal(limiter.peek(KEY).remaining, 0)
  clock.advance(320)
  assert.equal(takeAll(limiter), 100)
  deny()
  assert.equal(statusOf(await answer), 429)
  assert.equal(takeAll(limiter), 0)
  clock.advance(300)
  assert.equal(takeAll(limiter), 100)
})

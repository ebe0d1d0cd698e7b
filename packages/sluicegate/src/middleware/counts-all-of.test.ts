import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { allOf, createLimiter, fixedWindow, manualClock, tokenBucket } from '../index.js'
import { Middleware, type MiddlewareResult, type Pass } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

const KEY = '192.0.2.1'
const BUCKET = tokenBucket({ limit: 3, window: '1h' })

function pass(middleware: Middleware<PlainRequest>): Pass {
  const outcome = middleware.handle(plainFacts({}), {}) as MiddlewareResult
  assert.ok(outcome.passes)
  return outcome
}

test('of allOf each policy takes back by its own rule, for a key of its own too: nothing goes to a later window of the shorter one', () => {
  const both = allOf([fixedWindow({ limit: 5, window: '1m' }), fixedWindow({ limit: 100, window: '1h' })])
  for (const options of [{}, { policyFor: () => both }]) {
    const clock = manualClock()
    using limiter = createLimiter('policyFor' in options ? BUCKET : both, { clock, ...options })
    const middleware = new Middleware<PlainRequest>({ limiter, counts: 'failures' })
    const late = pass(middleware)
    clock.advance(60_000)
    pass(middleware)
    late.settle?.(200)
    assert.deepEqual(
      limiter.peek(KEY).parts?.map(({ remaining }) => remaining),
      [4, 99],
    )
  }
})

test('several limits refund each until an end of its own, so that the shorter one holds', () => {
  const clock = manualClock()
  using minute = createLimiter(fixedWindow({ name: 'minute', limit: 5, window: '1m' }), { clock })
  using hour = createLimiter(fixedWindow({ name: 'hour', limit: 100, window: '1h' }), { clock })
  const options: MiddlewareOptions<PlainRequest> = { limits: [{ limiter: minute }, { limiter: hour }], counts: 'failures' }
  const middleware = new Middleware(options, { nowMs: () => clock.nowMs() })
  const late = Array.from({ length: 5 }, () => pass(middleware))
  clock.advance(60_000)
  for (let i = 0; i < 5; i++) pass(middleware).settle?.(500)
  for (const each of late) each.settle?.(200)
  assert.equal(statusOf(middleware.handle(plainFacts({}), {}) as MiddlewareResult), 429)
  assert.equal(hour.peek(KEY).remaining, 95)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, concurrency, createLimiter, fixedWindow, manualClock, PolicyError, tokenBucket } from '../index.js'
import { type PlainRequest, plainFacts, statusOf } from '../testing/plain-request.js'
import type { MiddlewareResult, Pass } from './middleware.js'
import { Middleware } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

const KEY = '192.0.2.1'
const BUCKET = tokenBucket({ limit: 3, window: '1h' })

function pass(keeper: Middleware<PlainRequest>): Pass {
  const outcome = keeper.handle(plainFacts({}), {}) as MiddlewareResult
  assert.ok(outcome.passes)
  return outcome
}

test('counts is refused with allOf: a late refund would go to a later window of the shorter policy', () => {
  for (const other of [concurrency({ limit: 1 }), fixedWindow({ limit: 5, window: '1m' })]) {
    const options: MiddlewareOptions<PlainRequest> = { policy: allOf([other, BUCKET]), counts: 'failures' }
    assert.throws(
      () => new Middleware(options),
      (error) => error instanceof PolicyError && error.option === 'counts' && /one of limits/.test(error.message),
    )
  }
})

test('of a key that has allOf for a policy of its own nothing comes back', () => {
  const both = allOf([fixedWindow({ limit: 5, window: '1m' }), fixedWindow({ limit: 100, window: '1h' })])
  const clock = manualClock()
  using limiter = createLimiter(BUCKET, { clock, policyFor: () => both })
  const keeper = new Middleware<PlainRequest>({ limiter, counts: 'failures' }, { nowMs: () => clock.nowMs() })
  const late = pass(keeper)
  clock.advance(60_000)
  pass(keeper)
  late.settle?.(200)
  assert.deepEqual(
    limiter.peek(KEY).parts?.map(({ remaining }) => remaining),
    [4, 98],
  )
})

test('several limits refund each until an end of its own, so that the shorter one holds', () => {
  const clock = manualClock()
  using minute = createLimiter(fixedWindow({ name: 'minute', limit: 5, window: '1m' }), { clock })
  using hour = createLimiter(fixedWindow({ name: 'hour', limit: 100, window: '1h' }), { clock })
  const options: MiddlewareOptions<PlainRequest> = { limits: [{ limiter: minute }, { limiter: hour }], counts: 'failures' }
  const keeper = new Middleware(options, { nowMs: () => clock.nowMs() })
  const late = Array.from({ length: 5 }, () => pass(keeper))
  clock.advance(60_000)
  for (let i = 0; i < 5; i++) pass(keeper).settle?.(500)
  for (const each of late) each.settle?.(200)
  assert.equal(statusOf(keeper.handle(plainFacts({}), {}) as MiddlewareResult), 429)
  assert.equal(hour.peek(KEY).remaining, 95)
})

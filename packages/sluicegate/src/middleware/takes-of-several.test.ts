import assert from 'node:assert/strict'
import { test } from 'node:test'
import { misledLimiter, promisedLimiter } from 'sluicegate-testkit/adapters/harness.js'
import { type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { createLimiter, fixedWindow, type Limiter, manualClock } from '../index.js'
import { Middleware, type MiddlewareResult } from './middleware.js'
import type { MiddlewareLimiter } from './middleware-options.js'

/** A limiter as that of a fleet: peeks are calls, and what was leased is taken at once, whatever the store knows. */
function leasing(
  limiter: Limiter,
  inHand: number,
): MiddlewareLimiter & { readonly calls: { peeks: number; takes: number; refunds: number } } {
  const calls = { peeks: 0, takes: 0, refunds: 0 }
  const later = promisedLimiter(limiter)
  let held = inHand
  return {
    calls,
    policy: limiter.policy,
    peek: (key, cost) => {
      calls.peeks++
      return later.peek(key, cost)
    },
    take: (key, cost) => {
      calls.takes++
      const decision = limiter.take(key, cost)
      return held-- > 0 ? { ...decision, allowed: true, retryAfterMs: 0, source: 'lease' } : { ...decision, source: 'lease' }
    },
    refund: (key, tokens) => {
      calls.refunds++
      return later.refund(key, tokens)
    },
  }
}

test('a limit of a fleet is not looked at before it is asked, and tokens in hand are spent whatever the store knows', () => {
  const clock = manualClock()
  const store = createLimiter(fixedWindow({ name: 'fleet', limit: 10, window: '1h' }), { clock })
  // All of it is lent to this process.
  store.take('192.0.2.1', 10)
  const fleet = leasing(store, 10)
  const own = createLimiter(fixedWindow({ name: 'own', limit: 100, window: '1h' }), { clock, hotKeys: 1 })
  const middleware = new Middleware<PlainRequest>({ limits: [{ limiter: own }, { limiter: fleet }] })
  const statuses = Array.from({ length: 12 }, () => statusOf(middleware.handle(plainFacts({}), {}) as MiddlewareResult))
  assert.deepEqual(statuses, [...Array(10).fill(200), 429, 429])
  assert.ok(fleet.calls.peeks <= 1, 'once it is found out that this asks elsewhere')
  assert.equal(fleet.calls.refunds, 0)
  // What the fleet denied cost this process nothing, and nothing had to come back.
  assert.deepEqual([own.peek('192.0.2.1').remaining, own.hotKeys().demand[0]?.count], [90, 10])
})

test('what a limit of this process denies is not asked of a fleet', () => {
  const clock = manualClock()
  const fleet = leasing(createLimiter(fixedWindow({ name: 'fleet', limit: 100, window: '1h' }), { clock }), 0)
  const own = createLimiter(fixedWindow({ name: 'own', limit: 2, window: '1h' }), { clock })
  const middleware = new Middleware<PlainRequest>({ limits: [{ limiter: fleet }, { limiter: own }] })
  const statuses = Array.from({ length: 5 }, () => statusOf(middleware.handle(plainFacts({}), {}) as MiddlewareResult))
  assert.deepEqual([statuses, fleet.calls.takes], [[200, 200, 429, 429, 429], 2])
})

test('what one limit of a fleet denies is taken of none behind it, and given back by those before it', () => {
  const clock = manualClock()
  const limiters = ['first', 'second', 'third'].map((name) => {
    const limit = name === 'second' ? 1 : 5
    return createLimiter(fixedWindow({ name, limit, window: '1h' }), { clock })
  })
  const middleware = new Middleware<PlainRequest>({ limits: limiters.map((limiter) => ({ limiter: leasing(limiter, 0) })) })
  const statuses = Array.from({ length: 3 }, () => statusOf(middleware.handle(plainFacts({}), {}) as MiddlewareResult))
  assert.deepEqual(statuses, [200, 429, 429])
  assert.deepEqual(
    limiters.map((limiter) => limiter.peek('192.0.2.1').remaining),
    [4, 0, 4],
  )
})

test('what a limit took goes back when its own functions fail afterwards', () => {
  const policy = fixedWindow({ name: 'own', limit: 5, window: '1h' })
  let asked = 0
  const policyFor = (): undefined => {
    // By the take, and then for the headers.
    if (++asked === 2) throw new RangeError('a fault')
  }
  const limiter = createLimiter(policy, { clock: manualClock(), policyFor })
  const middleware = new Middleware<PlainRequest>({ limiter, counts: 'failures' })
  assert.throws(() => middleware.handle(plainFacts({}), {}), RangeError)
  assert.equal(limiter.peek('192.0.2.1').remaining, 5)
})

test('a request that another process lets pass between preview and take passes', () => {
  const clock = manualClock()
  const own = createLimiter(fixedWindow({ name: 'own', limit: 5, window: '1h' }), { clock })
  const late = createLimiter(fixedWindow({ name: 'late', limit: 1, window: '1h' }), { clock })
  const seesTooMuch = misledLimiter(late, { allowed: false, retryAfterMs: 1 })
  const middleware = new Middleware<PlainRequest>({ limits: [{ limiter: own }, { limiter: seesTooMuch }] })
  const statuses = Array.from({ length: 2 }, () => statusOf(middleware.handle(plainFacts({}), {}) as MiddlewareResult))
  assert.deepEqual([statuses, own.peek('192.0.2.1').remaining, late.peek('192.0.2.1').remaining], [[200, 429], 4, 0])
})

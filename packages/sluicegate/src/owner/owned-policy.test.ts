import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, manualClock, type Policy, tokenBucket } from '../index.js'
import { OwnedPolicy } from './owned-policy.js'

const POLICY = tokenBucket({ limit: 10, window: '1s', name: 'p' })
const TIMES = 5
const COST = 3

test('where the clock fails in the middle of an update, what others have booked stays booked, but for the one that it failed at', () => {
  for (let reading = 1, isDone = false; !isDone; reading++) {
    let left = Number.POSITIVE_INFINITY
    const own = manualClock(1_789_000_000_000)
    const nowMs = (): number => {
      if (--left === 0) throw new Error('no clock')
      return own.nowMs()
    }
    const make = (policy: Policy) => createLimiter(policy, { clock: { ...own, nowMs } })
    const owned = new OwnedPolicy(POLICY, { mostHorizonMs: 0, clock: { ...own, nowMs }, make })
    const { limiter } = owned
    limiter.take('k', 10)
    const ahead = Array.from({ length: TIMES }, (_, order) => ({ order, booking: limiter.book('k', COST, Number.POSITIVE_INFINITY) }))
    left = reading
    try {
      owned.update(tokenBucket({ limit: 10, window: '1s', burst: 12, name: 'p' }), [{ ahead: () => ahead }])
      isDone = left > 0
    } catch (error) {
      assert.match(String(error), /no clock/)
    }
    left = Number.POSITIVE_INFINITY
    const booked = ahead.filter(({ booking }) => booking.allowed).length
    assert.ok(booked >= TIMES - 1, `${booked} are booked after a failure at reading ${reading}`)
    const { retryAfterMs } = limiter.peek('k', 10)
    assert.ok(retryAfterMs >= booked * COST * 100, `${booked} are booked and ${retryAfterMs} ms to wait after reading ${reading}`)
    limiter.close()
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, manualClock, tokenBucket } from 'sluicegate'
import { afterTake, BURST, RATE_PER_S, untilFreeUs } from './bucket.js'

test('the bucket of the contenders decides as the library does', () => {
  const clock = manualClock()
  const limiter = createLimiter(tokenBucket({ limit: RATE_PER_S, window: '1s', burst: BURST }), { clock })
  let arrivalUs = 0
  let us = 0
  // Long waits at first, then more and more often, until most are denied.
  for (let i = 0; i < 5_000; i++) {
    us += (i * 7_919) % Math.max(1, 4_000 - i)
    clock.set(us / 1000)
    const nextUs = afterTake(arrivalUs, us)
    const { allowed, retryAfterMs } = limiter.take('key')
    assert.equal(nextUs !== undefined, allowed, `take ${i}`)
    if (nextUs === undefined) assert.equal(Math.ceil(untilFreeUs(arrivalUs, us) / 1000), retryAfterMs)
    else arrivalUs = nextUs
  }
  assert.equal(afterTake(arrivalUs, us), undefined)
})

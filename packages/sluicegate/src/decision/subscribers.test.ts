import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { createLimiter, gcra, manualClock } from '../index.js'

test('a subscriber who asks about another key does not change whose answer the caller gets', () => {
  const limiter = createLimiter(gcra({ limit: 10, window: '1s' }), { clock: manualClock(), maxKeys: 1 })
  for (let i = 0; i < 12; i++) limiter.take(`key ${i}`)
  let seen = 0
  const listen = (): void => {
    if (seen++ === 0) limiter.take('another')
  }
  subscribe('sluicegate:eviction', listen)
  const answer = limiter.penalize('abuser', 60)
  unsubscribe('sluicegate:eviction', listen)
  assert.ok(seen > 0)
  assert.equal(answer.resetAfterMs, 6000)
  assert.deepEqual(answer, limiter.peek('abuser'))
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, concurrency, createLimiter, fixedWindow, gcra, manualClock, slidingLog } from '../index.js'
import { MemoryLimiter } from './memory-limiter.js'

/** More than are laid out with the memory. */
const LOST = 300

test('I8: however many threads died in the middle of a swap over several words, all goes on', () => {
  const policies = [
    { before: concurrency({ limit: 2 }), after: concurrency({ limit: 3 }) },
    { before: slidingLog({ limit: 2, window: '1h' }), after: slidingLog({ limit: 3, window: '2h' }) },
  ]
  for (const { before, after } of policies) {
    const limiter = createLimiter(before, { clock: manualClock(1_789_000_000_000), maxKeys: 10 })
    limiter.take('k')
    assert.ok(limiter instanceof MemoryLimiter)
    for (let i = 0; i < LOST; i++) assert.ok(limiter.core.openDescriptor() > 0)
    limiter.refund('k', 1)
    limiter.take('k')
    limiter.update(after)
    assert.equal(limiter.peek('k').remaining, 2)
    assert.equal(limiter.stats().contentions, 0)
  }
})

test('I8: so do several policies at once', () => {
  const parts = [gcra({ limit: 5, window: '1h' }), fixedWindow({ limit: 5, window: '1h' })]
  const limiter = createLimiter(allOf(parts), { clock: manualClock(1_789_000_000_000), maxKeys: 10 })
  const { core } = (limiter as unknown as { readonly first: MemoryLimiter }).first
  for (let i = 0; i < LOST; i++) assert.ok(core.openDescriptor() > 0)
  for (let i = 0; i < 5; i++) assert.equal(limiter.take('k').allowed, true)
  assert.equal(limiter.take('k').allowed, false)
})

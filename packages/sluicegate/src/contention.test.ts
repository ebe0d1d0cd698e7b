import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type TestContext, test } from 'node:test'
import { attachLimiter, type ContentionEvent, createLimiter, type Limiter, manualClock, StoreError, tokenBucket } from './index.js'
import type { MemoryHandle } from './memory-limiter.js'

test('a call that other threads keep from its key is given up with CONTENTION after a bounded number of attempts', (t) => {
  const limiter = oneKey()
  const moves = keepMovingIn(t, limiter)
  const events: ContentionEvent[] = []
  const hear = (event: unknown): void => void events.push(event as ContentionEvent)
  subscribe('sluicegate:contention', hear)
  assert.throws(
    () => limiter.take('k'),
    (error) => error instanceof StoreError && error.code === 'CONTENTION',
  )
  unsubscribe('sluicegate:contention', hear)
  assert.deepEqual(events, [{ policy: 'contended', key: 'k' }])
  assert.equal(limiter.stats().contentions, 1)
  assert.ok(moves() > 20 && moves() < 10_000, `${moves()} moves`)
})

test('after a call that was given up the next one decides, and other keys never noticed', (t) => {
  const limiter = oneKey()
  keepMovingIn(t, limiter)
  limiter.take('other', 3)
  assert.throws(() => limiter.take('k'), { code: 'CONTENTION' })
  t.mock.restoreAll()
  assert.equal(limiter.take('k').allowed, true)
  assert.equal(limiter.peek('other').remaining, 7)
})

test('a call that another thread gets ahead of charges once, apart from the other', (t) => {
  const limiter = oneKey()
  const rival = attachLimiter(limiter.handle())
  // An end that finds the policy changed makes a policy object, and freezing one is the moment to step in.
  const { freeze } = Object
  let interruptions = 0
  rival.update(tokenBucket({ limit: 10, window: '1h', name: 'changed' }))
  t.mock.method(Object, 'freeze', <T>(value: T): Readonly<T> => {
    if (interruptions++ === 0) rival.take('k')
    return freeze(value)
  })
  assert.equal(limiter.take('k').remaining, 7)
  t.mock.restoreAll()
  assert.ok(interruptions > 0)
})

function oneKey(): Limiter {
  const limiter = createLimiter(tokenBucket({ limit: 10, window: '1h', name: 'contended' }), {
    clock: manualClock(1_789_000_000_000),
    maxKeys: 8,
  })
  limiter.take('k')
  return limiter
}

/**
 * Makes it look as if thread after thread claimed the place of key `k` to move it in, and none ever finished: its mark stands
 * again whenever the caller pauses (see `words.ts` for its form). Answers how often.
 */
function keepMovingIn(t: TestContext, limiter: Limiter): () => number {
  const words = new BigUint64Array((limiter.handle() as MemoryHandle).memory.buffer)
  // The last word in use is the state of the only key; its identity stands before it.
  const state = words.findLastIndex((word) => word !== 0n)
  const fingerprint = (words[state - 1] ?? 0n) >> 16n
  let moves = 0
  const moveIn = (): void => {
    moves++
    Atomics.store(words, state, (1n << 63n) | (fingerprint << 14n) | BigInt(moves & 0x3fff))
  }
  moveIn()
  const { load } = Atomics
  t.mock.method(Atomics, 'wait', () => {
    moveIn()
    return 'timed-out'
  })
  t.mock.method(Atomics, 'load', (array: Int32Array, index: number) => {
    if (array instanceof Int32Array) moveIn()
    return load(array, index)
  })
  return () => moves
}

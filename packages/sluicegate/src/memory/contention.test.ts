import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type TestContext, test } from 'node:test'
import { CREW_ALGORITHMS, everyNth, policyOf } from 'sluicegate-testkit'
import { attachLimiter, type ChannelMessages, createLimiter, type Limiter, manualClock, type Policy, StoreError } from '../index.js'
import { TABLE_OFFSET } from './core-memory.js'
import type { AllOfHandle } from './memory-all-of.js'
import type { MemoryHandle } from './memory-limiter.js'

const HOUR_MS = 3_600_000

for (const [i, { name, cost, specOf, keyOf }] of CREW_ALGORITHMS.entries()) {
  const policy = policyOf(specOf(10, HOUR_MS), { name: 'contended' })
  const isAllOf = policy.algorithm === 'all-of'
  const [key, other] = [keyOf('k'), keyOf('other')]

  everyNth(i, 2)(
    `${name}: a call that other threads keep from its key is given up with CONTENTION after a bounded number of attempts`,
    (t) => {
      const limiter = limiterWith(policy)
      const moves = keepMovingIn(t, limiter, () => limiter.take(key, cost))
      const events: ChannelMessages['sluicegate:contention'][] = []
      const hear = (event: unknown): void => void events.push(event as ChannelMessages['sluicegate:contention'])
      subscribe('sluicegate:contention', hear)
      assert.throws(
        () => limiter.take(key, cost),
        (error) => error instanceof StoreError && error.code === 'CONTENTION',
      )
      unsubscribe('sluicegate:contention', hear)
      // Of several policies the one that could not be decided tells it.
      assert.deepEqual(events, [{ policy: isAllOf ? firstOf(policy).name : 'contended', key: 'k' }])
      assert.equal(limiter.stats().contentions, 1)
      assert.ok(moves() > 20 && moves() < 10_000, `${moves()} moves`)
    },
  )

  everyNth(i + 1, 2)(`${name}: after a call that was given up the next one decides, and other keys never noticed`, (t) => {
    const limiter = limiterWith(policy)
    keepMovingIn(t, limiter, () => limiter.take(key, cost))
    for (let i = 0; i < 3; i++) limiter.take(other, cost)
    assert.throws(() => limiter.take(key, cost), { code: 'CONTENTION' })
    t.mock.restoreAll()
    assert.equal(limiter.take(key, cost).allowed, true)
    assert.equal(limiter.peek(other).remaining, 7 * cost)
  })

  test(`${name}: a call that another thread gets ahead of charges once, apart from the other`, (t) => {
    const limiter = limiterWith(policy)
    limiter.take(key, cost)
    const rival = attachLimiter(limiter.handle())
    // An end that finds the policy changed makes a policy object, and freezing one is the moment to step in.
    const { freeze } = Object
    let interruptions = 0
    rival.update(policyOf(specOf(10, HOUR_MS), { name: 'changed' }))
    t.mock.method(Object, 'freeze', <T>(value: T): Readonly<T> => {
      if (interruptions++ === 0) rival.take(key, cost)
      return freeze(value)
    })
    assert.equal(limiter.take(key, cost).remaining, 7 * cost)
    t.mock.restoreAll()
    assert.ok(interruptions > 0)
  })
}

function limiterWith(policy: Policy): Limiter {
  return createLimiter(policy, { clock: manualClock(1_789_000_000_000), maxKeys: 8 })
}

function firstOf({ policies = [] }: Policy): Policy {
  return policies[0] as Policy
}

/**
 * Makes it look as if thread after thread claimed the place of the key that `moveItIn` moves in, the first of all, and none ever
 * finished: its mark stands again whenever the caller pauses (see `words.ts` for its form). Answers how often.
 */
function keepMovingIn(t: TestContext, limiter: Limiter, moveItIn: () => unknown): () => number {
  const handle = limiter.handle() as MemoryHandle | AllOfHandle
  const { memory, section } = 'parts' in handle ? (handle.parts[0] as MemoryHandle) : handle
  moveItIn()
  const words = new BigUint64Array(memory.buffer, section)
  // Its identity is the first word in use of the table, its state the next one.
  const identity = words.findIndex((word, i) => i * 8 >= TABLE_OFFSET && word !== 0n)
  const state = identity + 1
  const fingerprint = (words[identity] ?? 0n) >> 16n
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

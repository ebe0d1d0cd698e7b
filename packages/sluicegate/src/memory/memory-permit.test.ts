import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { allOf, attachLimiter, concurrency, createLimiter, type Limiter, manualClock, type Permit, tokenBucket } from '../index.js'

const START_MS = 1_789_000_000_000
const ONE = concurrency({ limit: 1, ttl: '30s' })

test('a heartbeat that comes too late for one of several policies gives the others back', () => {
  const clock = manualClock(START_MS)
  const short = concurrency({ limit: 1, ttl: '1s', name: 'short' })
  const long = concurrency({ limit: 1, ttl: '1h', name: 'long' })
  for (const policy of [allOf([short, long]), allOf([long, short])]) {
    const limiter = createLimiter(policy, { clock, maxKeys: 10 })
    const permit = limiter.take('k')
    clock.advance(2000)
    assert.deepEqual([permit.heartbeat(), permit.release(), permit.heartbeat()], [false, false, false])
    assert.equal(limiter.take('k').allowed, true)
  }
})

test('every denial of a limiter with permits is a permit that holds nothing, whatever it is for', async () => {
  const clock = manualClock(START_MS)
  for (const policy of [ONE, allOf([ONE, tokenBucket({ limit: 10, window: '1s' })])]) {
    const limiter: Limiter<Permit> = createLimiter(policy, { clock, maxKeys: 10, maxWaiting: 2 })
    const denied: unknown[] = []
    const held = limiter.take('k')
    denied.push(limiter.take('k', 2), limiter.take('k'))
    const first = limiter.wait('k')
    const second = limiter.wait('k', { maxWait: 100 })
    denied.push(limiter.take('k'), limiter.key('k').take())
    denied.push(await limiter.wait('k'), await limiter.wait('k', { maxWait: 0 }), await limiter.wait('k', { cost: 2 }))
    clock.advance(100)
    denied.push(await second)
    held.release()
    const given = await first
    assert.equal(given.release(), true)
    for (const permit of denied as Permit[]) {
      assert.deepEqual([permit.allowed, permit.release(), permit.heartbeat()], [false, false, false])
      permit[Symbol.dispose]()
    }
    assert.equal(limiter.peek('k').remaining, 1)
  }
})

test('a subscriber that takes when it hears of an eviction leaves the permit of that call as it was', () => {
  const clock = manualClock(START_MS)
  const three = concurrency({ limit: 3, ttl: '30s' })
  for (const policy of [three, allOf([three, tokenBucket({ limit: 1000, window: '1h' })])]) {
    const limiter: Limiter<Permit> = createLimiter(policy, { clock, maxKeys: 1 })
    // It owes more than any other, so that it is not forgotten itself.
    limiter.take('heard', 2)
    let evictions = 0
    let isNested = false
    const take = (): void => {
      evictions++
      if (isNested) return
      isNested = true
      assert.equal(limiter.take('heard').release(), true)
      isNested = false
    }
    subscribe('sluicegate:eviction', take)
    try {
      for (let i = 0; i < 40; i++) {
        const before = evictions
        const permit = limiter.take(`key ${i}`)
        const evicted = evictions > before
        assert.equal(permit.release(), true, `key ${i}, ${evicted ? 'evicted' : ''}`)
        limiter.take(`key ${i}`)
        const reservation = limiter.reserve(`reserved ${i}`, 2)
        const left = reservation.cancel()
        assert.equal(left.parts?.[0]?.remaining ?? left.remaining, 3)
        limiter.take(`reserved ${i}`)
      }
    } finally {
      unsubscribe('sluicegate:eviction', take)
    }
    assert.ok(evictions > 20)
  }
})

test('what ends after its limiter was closed is no fault', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(ONE, { clock, maxKeys: 10 })
  const elsewhere = attachLimiter(limiter.handle())
  const permit = limiter.take('k')
  {
    using inner = limiter.take('other')
    limiter.close()
    assert.equal(inner.heartbeat(), false)
  }
  assert.deepEqual([permit.heartbeat(), permit.release()], [false, false])
  assert.equal(elsewhere.peek('k').remaining, 0)
  clock.advance(30_000)
  assert.equal(elsewhere.peek('k').remaining, 1)
})

test('a permit shows what its holder may do, and nothing else', () => {
  const permit = createLimiter(ONE, { maxKeys: 10 }).take('k')
  const shown = Object.getOwnPropertyNames(Object.getPrototypeOf(permit))
  assert.deepEqual(shown.sort(), ['constructor', 'heartbeat', 'release'])
  assert.deepEqual(Object.getOwnPropertyNames(permit.constructor).sort(), ['length', 'name', 'prototype'])
})

test('a reservation does not overtake waits for a permit', async () => {
  const limiter = createLimiter(concurrency({ limit: 2, ttl: '30s' }), { clock: manualClock(START_MS), maxKeys: 10 })
  const held = limiter.take('k')
  const waiting = limiter.wait('k', { cost: 2 })
  const reservation = limiter.reserve('k', 1)
  const { allowed, waitMs, decision } = reservation
  assert.deepEqual([allowed, waitMs, decision.allowed], [false, 1, false])
  reservation.settle(1)
  reservation.cancel()
  assert.equal(limiter.peek('k').remaining, 1)
  held.release()
  await nextTurn()
  assert.equal((await waiting).release(), true)
})

test('a permit that ends before 1970, or right then, is renewed and given back like any other', () => {
  for (const startMs of [-60_000, -30_001, -30_000, -29_999]) {
    const clock = manualClock(startMs)
    const limiter = createLimiter(concurrency({ limit: 1, ttl: '30s' }), { clock })
    const permit = limiter.take('k')
    assert.deepEqual([permit.heartbeat(), permit.release(), permit.release()], [true, true, false], `${startMs}`)
    limiter.reserve('k', 1).cancel()
    assert.equal(limiter.peek('k').remaining, 1)
    assert.equal(limiter.stats().contentions, 0)
  }
})

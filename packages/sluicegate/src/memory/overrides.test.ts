import assert from 'node:assert/strict'
import { test } from 'node:test'
import { overrideSuite } from 'sluicegate-testkit/suites/override-suite.js'
import { createLimiter, fixedWindow, manualClock, restoreLimiter, tokenBucket } from '../index.js'

overrideSuite({
  name: 'memory',
  isLeased: false,
  make: (policy, options = {}) => {
    const clock = manualClock(1_789_000_000_000)
    const one = createLimiter(policy, { clock, overrides: true, ...options })
    return { one, other: one, clock }
  },
})

const OWN = fixedWindow({ limit: 3, window: '365d', name: 'own' })

function numbered(limit: number) {
  return tokenBucket({ limit, window: '1s' })
}

test('at most 10,000 keys have an override, and a thousand different policies', () => {
  const { overrides } = createLimiter(OWN, { overrides: true })
  for (let i = 1; i <= 1000; i++) overrides.set(`key ${i}`, numbered(i))
  assert.throws(() => overrides.set('one more', numbered(1001)), { code: 'OPTION_INVALID', option: 'overrides' })
  // In the place of one that no other key has.
  overrides.set('key 7', numbered(1001))
  for (let i = 1001; i <= 10_000; i++) overrides.set(`key ${i}`, numbered(1))
  assert.throws(() => overrides.set('one more', numbered(1)), { code: 'OPTION_INVALID', option: 'overrides' })
  overrides.set('key 9', numbered(1))
  assert.equal(overrides.list().size, 10_000)
})

test('policies that no key has any more leave room for others, however many come', () => {
  const limiter = createLimiter(OWN, { overrides: true, maxKeys: 1 })
  for (let i = 1; i <= 1100; i++) {
    limiter.overrides.set('acme', numbered(i))
    assert.equal(limiter.take('acme').limit, i)
  }
  assert.ok(limiter.stats().keys <= 1001)
})

test('overrides are of one thread: a handle cannot carry them', () => {
  assert.throws(() => createLimiter(OWN, { overrides: true }).handle(), { code: 'OPTION_INVALID', option: 'overrides' })
})

test('a restored limiter gets its overrides again', () => {
  const before = createLimiter(OWN, { overrides: true, maxKeys: 100 })
  before.overrides.set('acme', numbered(5))
  before.take('acme')
  before.take('else', 2)
  const limiter = restoreLimiter(before.snapshot(), { overrides: true })
  assert.deepEqual([limiter.take('else').remaining, limiter.take('acme').policy], [0, 'own'])
  limiter.overrides.set('acme', numbered(5))
  assert.equal(limiter.take('acme').limit, 5)
})

test('what keys have spent under their overrides is in a snapshot, also one of a restored limiter', () => {
  const clock = manualClock(1_789_000_000_000)
  const options = { clock, overrides: true, policyFor: (key: string) => (key === 'pro' ? numbered(7) : undefined) } as const
  const before = createLimiter(OWN, { ...options, maxKeys: 100 })
  before.overrides.set('acme', numbered(5))
  before.overrides.set('gone', numbered(6))
  for (let i = 0; i < 5; i++) for (const key of ['acme', 'gone', 'pro']) before.take(key)
  before.overrides.delete('gone')
  const once = restoreLimiter(before.snapshot(), options)
  once.overrides.set('acme', numbered(5))
  assert.equal(once.peek('acme').remaining, 0)
  const twice = restoreLimiter(once.snapshot(), options)
  twice.overrides.set('acme', numbered(5))
  twice.overrides.set('gone', numbered(6))
  assert.deepEqual([twice.peek('acme').remaining, twice.peek('gone').remaining, twice.peek('pro').remaining], [0, 1, 2])
  assert.equal('overrides' in restoreLimiter(before.snapshot(), { clock, policyFor: options.policyFor }), false)
})

test('without the option there are no overrides', () => {
  assert.equal('overrides' in createLimiter(OWN), false)
  assert.throws(() => createLimiter(OWN, { overrides: { maxAge: 10 } as never }), { code: 'OPTION_INVALID', option: 'overrides' })
})

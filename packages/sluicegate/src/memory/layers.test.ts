import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { banSuite } from 'sluicegate-testkit/suites/ban-suite.js'
import { layerSuite } from 'sluicegate-testkit/suites/layer-suite.js'
import { listAndShadowSuite } from 'sluicegate-testkit/suites/list-and-shadow-suite.js'
import { overrideSuite } from 'sluicegate-testkit/suites/override-suite.js'
import { createLimiter, makeLimiter } from '../create-limiter.js'
import { attachLimiter, fixedWindow, manualClock, restoreLimiter, tokenBucket } from '../index.js'

for (const suite of [layerSuite, listAndShadowSuite]) suite({ name: 'memory', carries: true, make: createLimiter })

const ONE = fixedWindow({ limit: 1, window: '365d', name: 'one' })

banSuite({
  name: 'memory',
  make: (policy, banAfter, more = {}) => {
    const clock = manualClock(1_789_000_000_000)
    const one = createLimiter(policy, { clock, banAfter, ...more })
    return { one, other: one, clock }
  },
})

test('the answers of a banned key are exact to the millisecond', () => {
  const clock = manualClock(1_789_000_000_000)
  const limiter = createLimiter(fixedWindow({ limit: 1, window: '1s' }), { clock, banAfter: { denials: 2, within: '1m', for: '15m' } })
  limiter.take('k')
  limiter.take('k')
  assert.equal(limiter.take('k').retryAfterMs, 900_000)
  clock.advance(899_999)
  assert.deepEqual([limiter.take('k').allowed, limiter.take('k').retryAfterMs], [false, 1])
  clock.advance(1)
  assert.equal(limiter.take('k').allowed, true)
})

test('the channel tells of bans', () => {
  const heard: unknown[] = []
  const listen = (event: unknown): void => void heard.push(event)
  subscribe('sluicegate:ban', listen)
  const limiter = createLimiter(ONE, { banAfter: { denials: 1, within: '1m', for: '15m' } })
  for (let i = 0; i < 5; i++) limiter.take('k')
  unsubscribe('sluicegate:ban', listen)
  assert.deepEqual(heard, [{ policy: 'one', key: 'k', forMs: 900_000, bans: 1 }])
})

test('a ban holds in all threads; who is given the option counts by itself', () => {
  const banAfter = { denials: 1, within: '1m', for: '800d' } as const
  assert.throws(() => createLimiter(ONE, { banAfter }), { code: 'DURATION_INVALID' })
  const limiter = createLimiter(fixedWindow({ limit: 1, window: '1d' }), { banAfter: { ...banAfter, for: '366d' } })
  const attached = attachLimiter(structuredClone(limiter.handle()))
  attached.take('k')
  assert.ok(attached.take('k').retryAfterMs <= 86_400_000)
  limiter.take('k')
  assert.ok(attached.take('k').retryAfterMs > 86_400_000)
})

test('keys by the hundred thousand that are denied take no more memory, and one that goes on is banned among them', () => {
  const clock = manualClock(1_789_000_000_000)
  let bans = 0
  const limiter = createLimiter(fixedWindow({ limit: 1, window: '365d' }), {
    clock,
    maxKeys: 300_000,
    banAfter: { denials: 5, within: '1m', for: '15m', onBan: () => bans++ },
  })
  for (let i = 0; i < 100_000; i++) {
    limiter.take(`key ${i}`)
    limiter.take(`key ${i}`)
    if (i % 1000 < 6) limiter.take('abuser')
  }
  assert.equal(bans, 1)
  assert.ok(limiter.take('abuser').retryAfterMs >= 900_000)
})

test('an attached limiter counts bans by the clock of its handle', () => {
  const clock = manualClock(1_760_000_000_000)
  using limiter = createLimiter(fixedWindow({ limit: 1, window: '1s' }), { clock })
  const bans: number[] = []
  const banAfter = { denials: 1, within: '1m', for: '1m', onBan: ({ forMs }: { forMs: number }) => bans.push(forMs) } as const
  using attached = attachLimiter(limiter.handle(), { banAfter })
  for (let i = 0; i < 2; i++) {
    attached.take('k')
    attached.take('k')
    clock.advance(60_000)
  }
  assert.deepEqual(bans, [60_000, 60_000])
})

test('a key that finds no room in a full table is denied, not answered with an error, and no ban is reported', () => {
  const clock = manualClock(1_789_000_000_000)
  let bans = 0
  const banAfter = { denials: 3, within: '1m', for: '15m', onBan: () => bans++ } as const
  const limiter = makeLimiter(fixedWindow({ limit: 1, window: 'day' }), { clock, maxKeys: 100, banAfter }, { newcomers: false })
  for (let i = 0; i < 500; i++) limiter.take(`key ${i}`)
  const { refusals } = limiter.stats()
  for (let i = 0; i < 10; i++) assert.equal(limiter.take('new').allowed, false)
  assert.deepEqual([limiter.stats().refusals >= refusals + 10, bans], [true, 0])
  clock.advance(86_400_000)
  limiter.take('new')
  for (let i = 0; i < 3; i++) limiter.take('new')
  assert.equal(bans, 1)
})

test('after a step back of the clock as many denials ban a key as before it, also one that is new', () => {
  const clock = manualClock(Date.parse('2026-05-01T12:00:00Z'))
  const bans: number[] = []
  const banAfter = { denials: 10, within: '1m', for: '15m', onBan: ({ forMs }: { forMs: number }) => bans.push(forMs) } as const
  const limiter = createLimiter(fixedWindow({ limit: 1, window: 'day' }), { clock, banAfter })
  for (const key of ['known', 'known', ...Array.from({ length: 60_000 }, (_, i) => `key ${i >> 1}`)]) limiter.take(key)
  clock.set(clock.nowMs() - 3_600_000)
  limiter.take('new')
  for (let i = 0; i < 8; i++) for (const key of ['known', 'new']) limiter.take(key)
  assert.deepEqual(bans, [])
  for (let i = 0; i < 2; i++) for (const key of ['known', 'new']) limiter.take(key)
  assert.deepEqual(bans, [900_000, 900_000])
})

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

import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { banSuite } from 'sluicegate-testkit/suites/ban-suite.js'
import { makeLimiter } from '../create-limiter.js'
import { attachLimiter, createLimiter, fixedWindow, manualClock } from '../index.js'

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

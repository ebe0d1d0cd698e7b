import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyNth, shortOrLong } from 'sluicegate-testkit'
import { createLimiter, makeLimiter } from '../create-limiter.js'
import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import type { Limiter, LimiterOptions } from '../limiter.js'
import { manualClock } from '../time/clock.js'

// Keys that have spent what they may have until a long window ends: they may not be forgotten, and they must not shut out those who come new.

const MORNING_MS = Date.UTC(2026, 8, 10, 8)
const HOUR_MS = 3_600_000
const LIMIT = 3
const NEW_CLIENTS = 1000
const FLOOD = shortOrLong(90_000, 400_000)

const three = { limit: LIMIT, window: '1d' } as const
const POLICIES: readonly Policy[] = [
  fixedWindow(three),
  fixedWindow({ limit: LIMIT, window: 'day', timeZone: 'Europe/Berlin' }),
  slidingWindow(three),
  slidingLog(three),
  tokenBucket(three),
  gcra({ ...three, burst: LIMIT }),
]

function limiterOf(policy: Policy, options: LimiterOptions = {}): { limiter: Limiter; clock: ReturnType<typeof manualClock> } {
  const clock = manualClock(MORNING_MS)
  return { clock, limiter: createLimiter(policy, { clock, ...options }) }
}

/** Keys that each spend all they may. */
function spend(limiter: Limiter, keys: number, name = 'spent'): void {
  for (let i = 0; i < keys; i++) for (let take = 0; take < LIMIT; take++) limiter.take(`${name} ${i}`)
}

/** New clients of which the first request passes. */
function welcomed(limiter: Limiter, clients: number, name = 'client'): number {
  let passed = 0
  for (let i = 0; i < clients; i++) if (limiter.take(`${name} ${i}`).allowed) passed++
  return passed
}

for (const [i, policy] of POLICIES.entries()) {
  const { name, calendar } = policy
  everyNth(i, 3)(
    `I7 ${name} ${calendar?.unit ?? ''}: 156,000 keys that have spent their day shut out no new client, and stay denied`,
    () => {
      const { limiter } = limiterOf(policy)
      const { memoryBytes } = limiter.stats()
      spend(limiter, 156_000)
      assert.equal(welcomed(limiter, NEW_CLIENTS), NEW_CLIENTS)
      for (let i = 0; i < 156_000; i += 500) assert.equal(limiter.take(`spent ${i}`).allowed, false)
      const { keys, evictions, refusals, memoryBytes: after } = limiter.stats()
      assert.deepEqual([keys, evictions, refusals], [157_000, 0, 0])
      assert.ok(after > memoryBytes && after < 8 * memoryBytes, `${after} bytes`)
    },
  )
}

test('435,000 requests of 156,000 keys in turn leave 1,000 new clients their first request, and each the rest of its day', () => {
  const { limiter } = limiterOf(fixedWindow(three))
  for (let i = 0; i < 435_000; i++) limiter.take(`address ${i % 156_000}`)
  assert.equal(welcomed(limiter, NEW_CLIENTS), NEW_CLIENTS)
  assert.equal(welcomed(limiter, NEW_CLIENTS), NEW_CLIENTS)
  assert.equal(welcomed(limiter, NEW_CLIENTS), NEW_CLIENTS)
  assert.equal(welcomed(limiter, NEW_CLIENTS), 0)
})

test(`I6, I7: ${FLOOD} keys of which none may be forgotten end at the bound; who was denied stays so, and some new clients pass`, () => {
  const clock = manualClock(MORNING_MS)
  const limiter = makeLimiter(fixedWindow({ limit: 1, window: '1d' }), { clock, maxKeys: 2_000 }, { growTo: 32_000 })
  limiter.take('abuser')
  limiter.block('blocked', '1d')
  let full = 0
  let passed = 0
  for (let i = 0; i < FLOOD; i++) {
    if (limiter.take(`key ${i}`).allowed) passed++
    if (i === 60_000) full = limiter.stats().memoryBytes
    if (i % 1_000 === 0) assert.deepEqual([limiter.take('abuser').allowed, limiter.take('blocked').allowed], [false, false])
  }
  const { memoryBytes, keys, refusals, overflows, evictions } = limiter.stats()
  assert.equal(memoryBytes, full)
  assert.ok(keys >= 32_000 && keys < 48_000, `${keys} keys`)
  // 1 % of what 32,000 keys may have a day.
  assert.deepEqual([overflows, evictions], [320, 0])
  assert.equal(passed + refusals, FLOOD)
  clock.advance(HOUR_MS)
  const later = welcomed(limiter, NEW_CLIENTS)
  assert.ok(later >= 5 && later <= Math.ceil(320 / 24), `${later} of a thousand an hour later`)
})

test('I1: a new key without room gets no more than its policy, however often it asks, while others still pass', () => {
  const guessers = Array.from({ length: 20 }, (_, i) => `guesser ${i}`)
  for (const policy of POLICIES) {
    const clock = manualClock(MORNING_MS)
    const options = { clock, maxKeys: 2000, onFull: 'deny' } as const
    const limiter = makeLimiter(policy, options, { newcomers: { limit: 10_000, windowMs: 24 * HOUR_MS } })
    for (let i = 0; limiter.stats().refusals + limiter.stats().overflows < 20; i++) spend(limiter, 1, `spent ${i}`)
    const passed = guessers.map(() => 0)
    // Before anything flows back to those that are tracked.
    for (let minute = 0; minute < 7 * 60; minute += 5) {
      for (const [i, guesser] of guessers.entries()) if (limiter.take(guesser).allowed) passed[i] = (passed[i] ?? 0) + 1
      clock.advance(5 * 60_000)
    }
    assert.ok(Math.max(...passed) <= LIMIT, `${policy.name}: ${passed}`)
    assert.ok(passed.filter((count) => count > 0).length >= 10, `${policy.name}: ${passed}`)
    limiter.close()
  }
})

test('when the window of the spent keys has ended, new keys have room and are tracked again', () => {
  const { limiter, clock } = limiterOf(fixedWindow(three), { maxKeys: 100 })
  spend(limiter, 300)
  assert.ok(limiter.stats().refusals > 0)
  clock.set(Date.UTC(2026, 8, 11))
  const before = limiter.stats()
  assert.equal(welcomed(limiter, 100), 100)
  const { refusals, overflows } = limiter.stats()
  assert.deepEqual([refusals, overflows], [before.refusals, before.overflows])
})

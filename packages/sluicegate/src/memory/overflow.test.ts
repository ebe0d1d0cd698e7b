import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { makeLimiter } from '../create-limiter.js'
import {
  allOf,
  createLimiter,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  manualClock,
  type Policy,
  restoreLimiter,
  tokenBucket,
} from '../index.js'

// New keys for which there is no room, because every key near them is being denied.

const START_MS = Date.UTC(2026, 8, 10, 8)
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const ten = fixedWindow({ limit: 10, window: '1d' })

type Budget = { readonly limit: number; readonly windowMs: number } | false | undefined

/** A limiter whose table is full of keys that are being denied. */
function full(
  policy: Policy,
  newcomers: Budget,
  options: LimiterOptions = {},
): { limiter: Limiter; clock: ReturnType<typeof manualClock> } {
  const clock = manualClock(START_MS)
  const limiter = makeLimiter(policy, { clock, maxKeys: 1, ...options }, { newcomers })
  // Few enough that a budget is not touched: the last one still finds room.
  for (let i = 0; i < ENTRIES; i++) assert.equal(limiter.take(`spent ${i}`, 10).allowed, true)
  return { limiter, clock }
}

/** Of a table for one key. */
const ENTRIES = 12

test('new keys without room share a budget: so much passes in a window, all of them together, and it flows back over the window', () => {
  const { limiter, clock } = full(ten, { limit: 24, windowMs: DAY_MS })
  const passes = (name: string, keys: number): number => {
    let passed = 0
    for (let i = 0; i < keys; i++) if (limiter.take(`${name} ${i}`).allowed) passed++
    return passed
  }
  // A table for one key has one counter, so that they have half of a limit of ten at once.
  assert.equal(passes('first', 100), 5)
  const { overflows, refusals, keys } = limiter.stats()
  assert.deepEqual([overflows, refusals, keys], [5, 95, ENTRIES])
  clock.advance(DAY_MS / 6)
  assert.equal(passes('second', 100), 1)
})

test('what passes says that nothing is promised, what is denied when it would pass; then it does', () => {
  const { limiter, clock } = full(ten, { limit: 2, windowMs: HOUR_MS })
  const first = limiter.take('new')
  assert.deepEqual([first.allowed, first.remaining, first.retryAfterMs, first.limit, first.source], [true, 0, 0, 10, 'memory'])
  assert.ok(first.resetAfterMs > 0)
  assert.equal(limiter.take('new').allowed, true)
  const denied = limiter.take('new')
  assert.deepEqual([denied.allowed, denied.retryAfterMs], [false, 1_800_000])
  clock.advance(denied.retryAfterMs - 1)
  assert.equal(limiter.take('new').allowed, false)
  clock.advance(1)
  assert.equal(limiter.take('new').allowed, true)
})

test('I4: a denied newcomer costs nothing', () => {
  const { limiter, clock } = full(ten, { limit: 2, windowMs: HOUR_MS })
  for (let i = 0; i < 1000; i++) limiter.take('new')
  clock.advance(3_600_000)
  assert.equal(limiter.take('new', 2).allowed, true)
  assert.equal(limiter.take('new', 11).retryAfterMs, Number.POSITIVE_INFINITY)
})

test('without a budget every newcomer without room is denied, with onFull deny by default', () => {
  for (const { limiter } of [full(ten, false), full(ten, undefined, { onFull: 'deny' })]) {
    for (let i = 0; i < 50; i++) assert.equal(limiter.take(`new ${i}`).allowed, false)
    assert.deepEqual([limiter.stats().overflows, limiter.stats().refusals], [0, 50])
  }
})

test('with onFull deny a budget may be given', () => {
  const { limiter } = full(ten, { limit: 3, windowMs: HOUR_MS }, { onFull: 'deny' })
  assert.deepEqual(
    Array.from({ length: 5 }, (_, i) => limiter.take(`new ${i}`).allowed),
    [true, true, true, false, false],
  )
})

test('the default is a hundredth of what the keys may have', () => {
  for (const limit of [1, 2, 7]) {
    const clock = manualClock(START_MS)
    const limiter = createLimiter(fixedWindow({ limit, window: '1d' }), { clock, maxKeys: 1000 })
    for (let i = 0; i < 10_000; i++) limiter.take(`key ${i}`, limit)
    for (let i = 0; i < 10_000; i++) limiter.take(`new ${i}`)
    assert.equal(limiter.stats().overflows, 10 * limit)
  }
})

test('a reservation or a wait of a newcomer passes as a take does, and giving it back gives nothing', async () => {
  const { limiter } = full(ten, { limit: 4, windowMs: HOUR_MS })
  const reservation = limiter.reserve('new', 1)
  assert.deepEqual([reservation.allowed, reservation.waitMs], [true, 0])
  reservation.cancel()
  assert.equal((await limiter.wait('new')).allowed, true)
  assert.equal(limiter.stats().overflows, 2)
  assert.equal(limiter.take('new', 3).allowed, false)
  assert.equal(limiter.take('new', 2).allowed, true)
})

test('a blocked key is denied, and what cannot be noted is an error, as ever', () => {
  const { limiter } = full(ten, { limit: 4, windowMs: HOUR_MS })
  assert.throws(() => limiter.block('new', '1h'), { code: 'TABLE_FULL' })
  assert.throws(() => limiter.penalize('new', 1), { code: 'TABLE_FULL' })
  limiter.block('spent 0', 0)
  assert.equal(limiter.take('spent 0').allowed, false)
})

test('of several policies together a newcomer passes where both let it, and is counted once it has', () => {
  const clock = manualClock(START_MS)
  const policy = allOf([ten, fixedWindow({ limit: ENTRIES * 10 + 3, window: '1d' })])
  const limiter = makeLimiter(policy, { clock, maxKeys: 1 }, { newcomers: { limit: 3, windowMs: HOUR_MS } })
  for (let i = 0; i < ENTRIES; i++) assert.equal(limiter.take([`spent ${i}`, 'tenant'], 10).allowed, true)
  const pass = (): boolean => limiter.take(['new', 'tenant']).allowed
  assert.deepEqual([pass(), pass(), pass(), pass()], [true, true, true, false])
  assert.equal(limiter.stats().overflows, 3)
  assert.equal(limiter.peek(['new', 'tenant']).parts?.[1]?.remaining, 0)
  clock.advance(1_800_000)
  // The other part denies: nothing passed, and nothing is counted.
  assert.deepEqual([pass(), limiter.stats().overflows], [false, 3])
})

test('who listens hears of each newcomer without room, and may ask the limiter meanwhile', () => {
  const { limiter } = full(ten, { limit: 1, windowMs: HOUR_MS })
  const heard: unknown[] = []
  const listen = (event: unknown): void => {
    heard.push(event)
    limiter.peek('another')
  }
  subscribe('sluicegate:table-full', listen)
  limiter.take('first')
  limiter.take('second')
  unsubscribe('sluicegate:table-full', listen)
  const { name } = ten
  assert.deepEqual(heard, [
    { policy: name, key: 'first', allowed: true },
    { policy: name, key: 'second', allowed: false },
  ])
})

test('a snapshot keeps what newcomers have spent, and with what the limiter was made', () => {
  const { limiter, clock } = full(ten, { limit: 2, windowMs: HOUR_MS })
  assert.equal(limiter.take('new').allowed, true)
  const restored = restoreLimiter(limiter.snapshot(), { clock })
  assert.deepEqual([restored.take('new').allowed, restored.take('new').allowed], [true, false])
  assert.equal(restored.stats().overflows, 2)
  const denied = full(ten, false)
  const other = fixedWindow({ limit: 10, window: '1h' })
  const again = restoreLimiter(denied.limiter.snapshot(), {
    clock: denied.clock,
    policyFor: (key) => (key.startsWith('x') ? other : undefined),
  })
  for (let i = 0; i < ENTRIES; i++) again.take(`x ${i}`, 10)
  assert.equal(again.take('x new').allowed, false)
})

test('a clock that steps back gives newcomers nothing, and holds them no longer than the step', () => {
  const { limiter, clock } = full(tokenBucket({ limit: 10, window: '1d' }), { limit: 2, windowMs: HOUR_MS })
  for (let i = 0; i < 2; i++) limiter.take('new')
  clock.advance(-7_200_000)
  const { allowed, retryAfterMs } = limiter.take('new')
  assert.deepEqual([allowed, retryAfterMs], [false, 7_200_000 + 1_800_000])
})

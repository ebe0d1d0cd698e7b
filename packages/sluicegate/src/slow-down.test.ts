import assert from 'node:assert/strict'
import { test } from 'node:test'
import { promisedLimiter } from 'sluicegate-testkit/adapters/harness.js'
import { turns } from 'sluicegate-testkit/turns.js'
import { concurrency, createLimiter, fixedWindow, manualClock, slowDown } from './index.js'

const FIVE = fixedWindow({ limit: 5, window: '365d', name: 'five' })
function slowed(most = 10) {
  const clock = manualClock(1_789_000_000_000)
  const limiter = createLimiter(FIVE, { clock })
  const options = { after: 2, delay: (over: number) => over * 10, maxDelayed: most }
  return { clock, limiter, takes: slowDown(limiter, options, { clock }) }
}

test('takes above `after` resolve later the more is in use, and a denial at once', async () => {
  const { clock, takes } = slowed()
  const seen: string[] = []
  for (let i = 1; i <= 6; i++) void takes.take('k').then(({ allowed }) => seen.push(`${i} ${allowed}`))
  await turns()
  assert.deepEqual(seen, ['1 true', '2 true', '6 false'])
  for (const [i, after] of [
    [3, 10],
    [4, 20],
    [5, 30],
  ] as const) {
    clock.set(1_789_000_000_000 + after - 1)
    await turns()
    assert.equal(seen.includes(`${i} true`), false)
    clock.advance(1)
    await turns()
    assert.equal(seen.includes(`${i} true`), true)
  }
})

test('an abort rejects with its reason and gives back what was taken, as a permit too', async () => {
  const { clock, limiter, takes } = slowed(1)
  await takes.take('k', { cost: 2 })
  const stop = new AbortController()
  const reason = new Error('no longer wanted')
  const delayed = takes.take('k', { cost: 2, signal: stop.signal })
  await turns()
  assert.equal(limiter.peek('k').remaining, 1)
  stop.abort(reason)
  await assert.rejects(delayed, reason)
  assert.equal(limiter.peek('k').remaining, 3)
  await assert.rejects(takes.take('k', { signal: stop.signal }), reason)
  const slots = createLimiter(concurrency({ limit: 2, ttl: '1h' }), { clock })
  const places = slowDown(slots, { after: 0, delay: 10 }, { clock })
  const again = new AbortController()
  const place = places.take('k', { signal: again.signal })
  await turns()
  again.abort(reason)
  await assert.rejects(place, reason)
  assert.equal(slots.peek('k').remaining, 2)
})

test('a signal that is used for long is listened to only while something is delayed', async () => {
  const { clock, takes } = slowed()
  const { signal } = new AbortController()
  let listeners = 0
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++
    add(...args)
  }
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--
    remove(...args)
  }
  const all = Array.from({ length: 5 }, () => takes.take('k', { signal }))
  await turns()
  assert.ok(listeners >= 1)
  clock.advance(100)
  await Promise.all(all)
  assert.equal(listeners, 0)
})

test('where as many are delayed as may be, one more is denied and costs nothing', async () => {
  const { clock, limiter, takes } = slowed(1)
  await takes.take('k', { cost: 2 })
  const delayed = takes.take('k')
  await turns()
  const { allowed, retryAfterMs } = await takes.take('k')
  assert.deepEqual([allowed, retryAfterMs, limiter.peek('k').remaining], [false, 20, 2])
  clock.advance(10)
  assert.equal((await delayed).allowed, true)
})

test('limiters that answer later are delayed alike, and misuse is refused', async () => {
  const limiter = promisedLimiter(createLimiter(FIVE))
  assert.equal((await slowDown(limiter, { after: 0, delay: 1 }).take('k')).allowed, true)
  assert.throws(() => slowDown(undefined as never, { after: 0, delay: 1 }), { code: 'OPTION_INVALID', option: 'limiter' })
  assert.throws(() => slowDown(limiter, { after: 0 } as never), { code: 'DURATION_INVALID', option: 'slowDown.delay' })
  await assert.rejects(slowDown(limiter, { after: 0, delay: 1 }).take('k', { cost: 0 }), { code: 'COST_INVALID' })
  const fails = slowDown(createLimiter(FIVE), {
    after: 0,
    delay: () => {
      throw new Error('no')
    },
  })
  await assert.rejects(fails.take('k'), /no/)
})

test('a permit lasts through a delay that is longer than its time, and from then on as long as ever', async () => {
  const clock = manualClock(1_789_000_000_000)
  const limiter = createLimiter(concurrency({ limit: 2, ttl: '10s' }), { clock })
  const takes = slowDown(limiter, { after: 0, delay: 25_000 }, { clock })
  const first = takes.take('k')
  await turns()
  for (let i = 0; i < 5; i++) {
    assert.equal(limiter.peek('k').remaining, 1)
    clock.advance(5_000)
  }
  const permit = await first
  clock.advance(9_999)
  assert.deepEqual([permit.allowed, limiter.peek('k').remaining], [true, 1])
  assert.equal(permit.release(), true)
})

test('an abort after the limiter was closed rejects with its reason as well', async () => {
  const { limiter, takes } = slowed()
  await takes.take('k', { cost: 2 })
  const stop = new AbortController()
  const delayed = takes.take('k', { signal: stop.signal })
  await turns()
  limiter.close()
  const reason = new Error('no longer wanted')
  stop.abort(reason)
  await assert.rejects(delayed, reason)
})

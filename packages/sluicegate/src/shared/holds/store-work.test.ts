import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turns, turnsUntil } from 'sluicegate-testkit/turns.js'
import { createLimiter } from '../../create-limiter.js'
import { allOf } from '../../policy/all-of.js'
import { fixedWindow, tokenBucket } from '../../policy/single-policy.js'
import { type CasStore, casStore } from '../../store/index.js'
import { memoryStore } from '../../store-testing/index.js'
import { manualClock } from '../../time/clock.js'

for (const [policy, forOneMs, forAllMs] of [
  // Until the piece has given up.
  [fixedWindow({ limit: 100, window: '1h', name: 'hour' }), 10_000, 3_600_000],
  // Until there is room for both.
  [allOf([tokenBucket({ limit: 100, window: '100s', name: 'bucket' }), fixedWindow({ limit: 1_000, window: '1h' })]), 6_000, 99_000],
] as const) {
  test(`${policy.name}: what comes behind a piece that waits says when that has passed or given up, and is impossible only by itself`, async (t) => {
    const clock = manualClock(1_789_002_000_000)
    const limiter = createLimiter(policy, {
      store: casStore(memoryStore({ clock })),
      clock,
      mode: 'exact',
      outage: 'closed',
      timeout: 60_000,
    })
    t.after(() => limiter.close())
    const work = await limiter.open('ada', { expect: 1, over: 'wait', ttl: '10s' })
    await limiter.take('ada', 99)
    const waiting = Promise.resolve(work.add(6))
    await turnsUntil(async () => (await limiter.peek('ada')).remaining === 1)
    await turns(5)
    const behind = async (expect: number) => (await limiter.open('ada', { expect })).retryAfterMs
    const expected = [forOneMs, forAllMs, Number.POSITIVE_INFINITY]
    assert.deepEqual([await behind(1), await behind(100), await behind(101)], expected)
    const costs = [1, 100, 101]
    assert.deepEqual(await Promise.all(costs.map(async (cost) => (await limiter.take('ada', cost)).retryAfterMs)), expected, 'takes')
    const reserved = costs.map(async (cost) => (await limiter.reserve('ada', cost)).decision.retryAfterMs)
    assert.deepEqual(await Promise.all(reserved), expected, 'reservations')
    await work.close()
    assert.equal(await waiting, false)
  })
}

test('a take behind more waiters than ever pass at once says when they will have passed', async (t) => {
  const clock = manualClock(1_789_002_000_000)
  const policy = allOf([tokenBucket({ limit: 10, window: '10s', name: 'bucket' }), fixedWindow({ limit: 1_000, window: '1h' })])
  const limiter = createLimiter(policy, { store: casStore(memoryStore({ clock })), clock, mode: 'exact', timeout: 60_000 })
  await limiter.take('ada', 10)
  const waits = [1, 2, 3].map(() => limiter.wait('ada', { cost: 8 }))
  await turns(30)
  assert.equal((await limiter.take('ada')).retryAfterMs, 25_000)
  t.after(() => Promise.allSettled(waits))
  limiter.close()
})

test('a piece that is spent while a report is under way is of the grant that comes, also where the one before has ended by then', async (t) => {
  const clock = manualClock(1_789_002_000_000)
  const own = memoryStore({ clock })
  let answering: Promise<unknown> = Promise.resolve()
  const store: CasStore = {
    name: 'late',
    read: (key) => own.read(key),
    swap: async (swap) => {
      const outcome = await own.swap(swap)
      await answering
      return outcome
    },
  }
  const policy = fixedWindow({ limit: 100, window: '1h', name: 'hour' })
  const limiter = createLimiter(policy, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeout: 60_000 })
  t.after(() => limiter.close())
  const work = await limiter.open('ada', { expect: 10, ttl: '1s' })
  assert.equal(await work.add(1), true)
  let answer: () => void = () => undefined
  answering = new Promise<void>((resolve) => {
    answer = resolve
  })
  clock.advance(990)
  assert.deepEqual([work.add(1), work.add(1)], [true, true], 'the first has the grant renewed')
  await turns(5)
  clock.advance(520)
  const third = work.add(1)
  answer()
  assert.equal(await third, true)
  assert.deepEqual([work.used, work.held], [4, 6])
})

test('beyond its hold work has what it spends in a second granted, and others find the rest', async (t) => {
  const clock = manualClock(1_789_002_000_000)
  const policy = fixedWindow({ limit: 1_000, window: '1h' })
  const limiter = createLimiter(policy, { store: casStore(memoryStore({ clock })), clock, mode: 'exact', outage: 'closed' })
  t.after(() => limiter.close())
  const work = await limiter.open('ada', { expect: 10 })
  for (let most = 0; work.used < 400; most = Math.max(most, work.held)) {
    assert.equal(await work.add(1), true)
    assert.ok(most <= 51, `${most} are held`)
    clock.advance(20)
    await turns(2)
  }
})

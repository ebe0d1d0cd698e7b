import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { allOf, createLimiter, fixedWindow, gcra, manualClock, tokenBucket } from '../index.js'
import { casStore } from '../store/index.js'
import { memoryStore } from '../store-testing/index.js'
import { SpaceSaving } from './hot-keys.js'

const DAY = 86_400_000
const perDay = (name: string, limit = 2) => tokenBucket({ name, limit, window: DAY })

test('each take, wait and reservation of a limiter in memory is counted once, by what became of it', async () => {
  const limiter = createLimiter(perDay('day'), { clock: manualClock() })
  limiter.take('a')
  limiter.key('a').take()
  limiter.take('a')
  limiter.take('a', 3)
  await limiter.wait('b')
  await limiter.wait('b', { cost: 2, maxWait: 0 })
  limiter.reserve('b', 1)
  limiter.reserve('b', 2, { maxWait: 0 })
  limiter.peek('a')
  assert.deepEqual(limiter.stats().decisions, { day: { allowed: 4, denied: 3, impossible: 1, outage: 0 } })
})

test('decisions are counted by policy: those of tiers apart, those of allOf by its name', () => {
  const clock = manualClock()
  const tiers = createLimiter(perDay('free', 1), { clock, policyFor: (key) => (key === 'paying' ? perDay('paid', 9) : undefined) })
  for (const key of ['paying', 'paying', 'other', 'other']) tiers.take(key)
  assert.deepEqual(tiers.stats().decisions, {
    free: { allowed: 1, denied: 1, impossible: 0, outage: 0 },
    paid: { allowed: 2, denied: 0, impossible: 0, outage: 0 },
  })
  const both = createLimiter(allOf([perDay('a', 1), fixedWindow({ name: 'b', limit: 5, window: 'day' })], { name: 'both' }), { clock })
  for (let i = 0; i < 3; i++) both.take('k')
  assert.deepEqual(both.stats().decisions, { both: { allowed: 1, denied: 2, impossible: 0, outage: 0 } })
})

test('over a store what is decided without it is counted as an outage, whatever the answer', async () => {
  const store = memoryStore()
  let isOut = false
  const limiter = createLimiter(perDay('day'), {
    store: casStore({
      name: 'may be out',
      read: (key) => (isOut ? Promise.reject(new Error('out')) : store.read(key)),
      swap: (swap) => (isOut ? Promise.reject(new Error('out')) : store.swap(swap)),
    }),
    mode: 'exact',
    outage: 'closed',
  })
  for (let i = 0; i < 3; i++) await limiter.take('k')
  await limiter.take('k', 3)
  isOut = true
  await limiter.take('other')
  assert.deepEqual(limiter.stats().decisions, { day: { allowed: 2, denied: 1, impossible: 1, outage: 1 } })
  await limiter.close()
})

test('fewer keys than counters are counted exactly', () => {
  const hot = new SpaceSaving(3)
  for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) hot.add(key)
  assert.deepEqual(hot.top(2), [
    { key: 'a', count: 3, overcount: 0 },
    { key: 'b', count: 2, overcount: 0 },
  ])
})

test('a true count lies between count - overcount and count, and every key above total / size is listed', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = new Random(seed)
    const size = random.integer(1, 40)
    const hot = new SpaceSaving(size)
    const truth = new Map<string, number>()
    const total = random.integer(1, 5000)
    for (let i = 0; i < total; i++) {
      const key = `key ${random.magnitude(1, 500)}`
      hot.add(key)
      truth.set(key, (truth.get(key) ?? 0) + 1)
    }
    const top = hot.top(size)
    assert.ok(top.length <= size)
    for (const { key, count, overcount } of top) {
      const exact = truth.get(key) ?? 0
      assert.ok(count - overcount <= exact && exact <= count, `seed ${seed}, ${key}: ${exact} not in ${count - overcount}..${count}`)
    }
    const listed = new Set(top.map(({ key }) => key))
    for (const [key, count] of truth) if (count > total / size) assert.ok(listed.has(key), `seed ${seed}, ${key}: ${count} of ${total}`)
    const counts = top.map(({ count }) => count)
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => b - a),
    )
  }
})

test('memory is fixed, and names of object properties are keys like any other', () => {
  const hot = new SpaceSaving(5)
  for (let i = 0; i < 10_000; i++) hot.add(i % 2 === 0 ? '__proto__' : `key ${i}`)
  assert.equal(hot.top(100).length, 5)
  assert.equal(hot.top(1)[0]?.key, '__proto__')
})

test('a subscriber who asks about another key does not change whose answer the caller gets', () => {
  const limiter = createLimiter(gcra({ limit: 10, window: '1s' }), { clock: manualClock(), maxKeys: 1 })
  for (let i = 0; i < 12; i++) limiter.take(`key ${i}`)
  let seen = 0
  const listen = (): void => {
    if (seen++ === 0) limiter.take('another')
  }
  subscribe('sluicegate:eviction', listen)
  const answer = limiter.penalize('abuser', 60)
  unsubscribe('sluicegate:eviction', listen)
  assert.ok(seen > 0)
  assert.equal(answer.resetAfterMs, 6000)
  assert.deepEqual(answer, limiter.peek('abuser'))
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, createLimiter, fixedWindow, manualClock, tokenBucket } from '../index.js'
import { casStore } from '../store/index.js'
import { memoryStore } from '../store-testing/index.js'

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

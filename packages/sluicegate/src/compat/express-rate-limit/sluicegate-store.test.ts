import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { attachLimiter, concurrency, createLimiter, fixedWindow, type Limiter, manualClock, type Policy, tokenBucket } from '../../index.js'
import { type HitCount, WindowEnd } from './hit-counts.js'
import { SluicegateStore, type SluicegateStoreOptions, type StoreSettings } from './sluicegate-store.js'

const MINUTE = 60_000
const clock = manualClock(10 * MINUTE)

/** A store that express-rate-limit has initialised. */
function ready(options: SluicegateStoreOptions, settings: Partial<StoreSettings> = {}): SluicegateStore {
  const store = new SluicegateStore(options)
  store.init({ windowMs: MINUTE, limit: 5, ...settings })
  return store
}

const here = (policy: Policy): Limiter => createLimiter(policy, { clock })

const inMs = ({ resetTime }: HitCount): number => (resetTime as Date).getTime() - Date.now()

const hitsOf = async (store: SluicegateStore, key: string): Promise<number> => (await store.increment(key)).totalHits

/** Consecutive hits. */
async function hit(store: SluicegateStore, key: string, times: number): Promise<number[]> {
  const hits = []
  for (let i = 0; i < times; i++) hits.push(await hitsOf(store, key))
  return hits
}

test('a store that counts counts everything, also above the limit, and begins anew with the window', async () => {
  const store = ready({ create: here })
  assert.deepEqual(await hit(store, 'ada', 7), [1, 2, 3, 4, 5, 6, 7])
  assert.equal(await hitsOf(store, 'bob'), 1)
  clock.advance(MINUTE - 1)
  assert.equal(await hitsOf(store, 'ada'), 8)
  clock.advance(1)
  assert.equal(await hitsOf(store, 'ada'), 1)
})

test('the reset is the end of the window', async () => {
  const store = ready({ create: here })
  clock.set(20 * MINUTE + 15_000)
  const inWindow = inMs((await store.increment('ada')) as HitCount)
  assert.ok(inWindow > 44_000 && inWindow <= 45_000, `${inWindow} ms`)
})

test('a returned hit is not counted, and no more are returned than were counted', async () => {
  const store = ready({ create: here }, { skipFailedRequests: true })
  await hit(store, 'eve', 3)
  await store.decrement('eve')
  assert.equal(await hitsOf(store, 'eve'), 3)
  for (let i = 0; i < 9; i++) await store.decrement('eve')
  assert.equal(await hitsOf(store, 'eve'), 1)
})

test('a key can be read without a hit, and begin anew', async () => {
  const store = ready({ create: here })
  assert.equal(await store.get('fay'), undefined)
  await hit(store, 'fay', 6)
  assert.equal((await store.get('fay'))?.totalHits, 6)
  await store.resetKey('fay')
  assert.equal(await store.get('fay'), undefined)
  assert.equal(await hitsOf(store, 'fay'), 1)
})

test('all keys can be reset where the limiter has no other user', async () => {
  const store = ready({})
  await hit(store, 'ada', 2)
  await store.resetAll()
  assert.equal(await store.get('ada'), undefined)
  assert.equal(await hitsOf(store, 'ada'), 1)
  assert.equal(store.localKeys, true)
  await assert.rejects(ready({ create: here }).resetAll(), { code: 'OPTION_INVALID' })
})

test('a key that was blocked by hand is above any limit', async () => {
  let limiter: Limiter | undefined
  const create = (policy: Policy): Limiter => {
    limiter = here(policy)
    return limiter
  }
  const store = ready({ create })
  limiter?.block('rl:mallory', '5s')
  assert.equal(await hitsOf(store, 'mallory'), Number.MAX_SAFE_INTEGER)
  assert.equal((await store.get('mallory'))?.totalHits, Number.MAX_SAFE_INTEGER)
})

test('a limiter that decides: what it lets pass is within the limit, what it denies is above, and a denial costs nothing', async () => {
  const limiter = here(tokenBucket({ limit: 60, window: '1m', burst: 3 }))
  const store = ready({ limiter }, { limit: 3 })
  assert.deepEqual(await hit(store, 'ada', 5), [1, 2, 3, 4, 4])
  const denied = (await store.increment('ada')) as HitCount
  assert.ok(inMs(denied) > 900 && inMs(denied) <= 1_000, 'the reset of a denial is when the same would pass, not when all is back')
  clock.advance(1_000)
  assert.deepEqual(await hit(store, 'ada', 2), [3, 4])
  assert.equal((await store.get('ada'))?.totalHits, 4)
  assert.equal(limiter.peek('ada').remaining, 0)
  clock.advance(60_000)
  assert.equal(await store.get('ada'), undefined)
})

test('what such a limiter denies is denied whatever the limit of a request', async () => {
  const limiter = here(fixedWindow({ limit: 2, window: '1m' }))
  const store = ready({ limiter }, { limit: () => 1_000 })
  assert.deepEqual(await hit(store, 'ada', 3), [1, 2, Number.MAX_SAFE_INTEGER])
})

test('of a policy that changes while it runs what passes is within the limit, and what is denied above', async () => {
  const limiter = here(fixedWindow({ limit: 5, window: '1m' }))
  const store = ready({ limiter })
  limiter.update(fixedWindow({ limit: 2, window: '1m' }))
  const hits = await hit(store, 'ada', 3)
  assert.deepEqual(hits, [1, 2, 6])
  limiter.update(fixedWindow({ limit: 9, window: '1m' }))
  assert.deepEqual(await hit(store, 'bob', 10), [1, 2, 3, 4, 5, 5, 5, 5, 5, 6])
})

test('a key that may more than others is within the limit while the limiter lets it pass', async () => {
  const large = fixedWindow({ limit: 8, window: '1m' })
  const policyFor = (key: string): Policy | undefined => (key === 'vip' ? large : undefined)
  const limiter = createLimiter(fixedWindow({ limit: 5, window: '1m' }), { clock, policyFor })
  const fixed = ready({ limiter })
  assert.deepEqual(await hit(fixed, 'vip', 9), [1, 2, 3, 4, 5, 5, 5, 5, 6])
  assert.deepEqual(await hit(fixed, 'ada', 6), [1, 2, 3, 4, 5, 6])
  clock.advance(MINUTE)
  const byRequest = ready({ limiter }, { limit: () => 8 })
  assert.deepEqual(await hit(byRequest, 'vip', 9), [1, 2, 3, 4, 5, 6, 7, 8, Number.MAX_SAFE_INTEGER])
})

test('keys with a policy of their own, listed keys and shadows obey the limiter', async () => {
  const small = fixedWindow({ limit: 1, window: '1m' })
  const own = { policyFor: (key: string) => (key === 'small' ? small : undefined), allow: ['vip'], deny: ['mallory'] }
  const limiter = createLimiter(fixedWindow({ limit: 5, window: '1m' }), { clock, ...own })
  const store = ready({ limiter }, { limit: (): number => 5 })
  const beyond = Number.MAX_SAFE_INTEGER
  assert.deepEqual(await hit(store, 'small', 2), [1, beyond])
  assert.deepEqual(await hit(store, 'vip', 9), Array(9).fill(1))
  assert.deepEqual(await store.increment('mallory'), { totalHits: beyond, resetTime: undefined })
  const shadow = ready({ limiter: createLimiter(small, { clock, shadow: true }) }, { limit: 1 })
  assert.deepEqual(await hit(shadow, 'ada', 3), [1, 1, 1])
})

test('what was not decided on the key is an error and no denial', async () => {
  const decision = { allowed: false, limit: 5, remaining: 0, retryAfterMs: 100, resetAfterMs: 100, policy: 'a', source: 'outage' } as const
  const policy = fixedWindow({ limit: 5, window: '1m' })
  const answer = async (): Promise<typeof decision> => decision
  const limiter = { policy, take: answer, peek: answer, refund: answer, penalize: answer, block: answer, reset: answer, close: () => {} }
  const decides = ready({ limiter })
  await assert.rejects(async () => decides.increment('ada'), { name: 'StoreError', code: 'OUTAGE' })
  const counts = ready({ create: (asked) => ({ ...limiter, policy: asked }) })
  await assert.rejects(async () => counts.increment('ada'), { name: 'StoreError', code: 'OUTAGE' })
  await assert.rejects(async () => counts.get('ada'), { name: 'StoreError', code: 'OUTAGE' })
})

test('keys are local where one store alone counts in the memory of this process', () => {
  assert.equal(new SluicegateStore().localKeys, true)
  assert.equal(ready({ create: here }).localKeys, true)
  const limiter = here(fixedWindow({ limit: 5, window: '1m', name: 'api' }))
  const first = ready({ limiter, prefix: 'a:' })
  assert.deepEqual([first.localKeys, first.prefix], [true, 'a:'])
  const second = ready({ limiter, prefix: 'a:' })
  assert.deepEqual([first.localKeys, second.localKeys], [false, false])
  assert.deepEqual([first.prefix, second.prefix], ['api:a:', 'api:a:'])
})

test('two stores of one memory are not alone, even through attached limiters', () => {
  let made: Limiter | undefined
  const create = (policy: Policy): Limiter => {
    made ??= here(policy)
    return attachLimiter(made.handle())
  }
  const first = ready({ create })
  assert.equal(first.localKeys, true)
  const second = ready({ create })
  assert.deepEqual([first.localKeys, second.localKeys], [false, false])
  assert.deepEqual([first.prefix, second.prefix], Array(2).fill('express-rate-limit-1m:rl:'))
  const [one, other] = [ready({ limiter: tiered() }, { limit: 5 }), ready({ limiter: tiered() }, { limit: 5 })]
  assert.deepEqual([one.localKeys, other.localKeys], [true, true])
})

/** One that has no handle. */
const tiered = (): Limiter => createLimiter(fixedWindow({ limit: 5, window: '1m' }), { clock, policyFor: () => undefined })

test('shutdown closes what the store made, and not what it was given', () => {
  const limiter = here(fixedWindow({ limit: 5, window: '1m' }))
  ready({ limiter }).shutdown()
  assert.equal(limiter.take('ada').allowed, true)
  const store = ready({})
  store.shutdown()
  assert.throws(() => store.increment('ada'), { name: 'StoreError', code: 'CLOSED' })
})

test('misuse throws when the store is made', () => {
  const limiter = here(fixedWindow({ limit: 5, window: '1m' }))
  const permits = createLimiter(concurrency({ limit: 2, ttl: '1s' }))
  assert.throws(() => new SluicegateStore({ prefx: '' } as never), { code: 'OPTION_UNKNOWN', option: 'prefx' })
  assert.throws(() => new SluicegateStore({ prefix: 1 as never }), { option: 'prefix' })
  assert.throws(() => new SluicegateStore({ limiter: {} as never }), { option: 'limiter' })
  assert.throws(() => new SluicegateStore({ limiter, create: here }), { option: 'create' })
  assert.throws(() => new SluicegateStore({ limiter: permits }), { option: 'limiter' })
})

test('unsupported options throw at once, and each request fails with the same error', () => {
  const limiter = here(fixedWindow({ limit: 5, window: '1m' }))
  const cases: readonly [SluicegateStoreOptions, Partial<StoreSettings>, string][] = [
    [{}, { windowMs: 0.5 }, 'windowMs'],
    [{}, { windowMs: 400 * 86_400_000 }, 'windowMs'],
    [{ limiter }, { limit: 6 }, 'limit'],
    [{ limiter }, { limit: Number.POSITIVE_INFINITY }, 'limit'],
    [{ limiter }, { skipFailedRequests: true }, 'skipFailedRequests'],
    [{ limiter }, { skipSuccessfulRequests: true }, 'skipSuccessfulRequests'],
    [{ create: () => limiter }, {}, 'create'],
    [{ create: (async () => limiter) as never }, {}, 'create'],
    [{ create: 7 as never }, {}, 'create'],
  ]
  for (const [options, settings, option] of cases) {
    const store = new SluicegateStore(options)
    assert.throws(() => store.init({ windowMs: MINUTE, limit: 5, ...settings }), { name: 'PolicyError', option })
    assert.throws(() => store.increment('ada'), { name: 'PolicyError', option })
  }
})

test('a store is for one middleware, and not before that is made', () => {
  assert.throws(() => new SluicegateStore().increment('ada'), { option: 'store' })
  const store = ready({})
  assert.throws(() => store.init({ windowMs: MINUTE, limit: 5 }), { option: 'store' })
  assert.throws(() => store.increment('ada'), { option: 'store' })
})

test('the end of a window is one Date for all callers, never before the window ends', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const end = new WindowEnd()
  const first = end.after(60_000)
  assert.equal(first.getTime(), 1_060_000)
  t.mock.timers.tick(500)
  assert.equal(end.after(59_500), first)
  assert.equal(end.after(59_499), first, 'a millisecond later than it is')
  assert.equal(end.after(59_501).getTime(), 1_060_001)
  assert.equal(end.after(59_498).getTime(), 1_059_998)
  t.mock.timers.tick(59_500)
  assert.equal(end.after(60_000).getTime(), 1_120_000)
})

test('a Date that a caller changed is not returned again', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const end = new WindowEnd()
  end.after(60_000).setTime(0)
  assert.equal(end.after(60_000).getTime(), 1_060_000)
  end.after(60_000).setTime(Number.NaN)
  assert.equal(end.after(60_000).getTime(), 1_060_000)
})

describe('store keys', () => {
  const clock = manualClock(600_000)
  const here = (policy: Policy): Limiter => createLimiter(policy, { clock })

  /** A store that express-rate-limit has initialised. */
  function ready(options: SluicegateStoreOptions): SluicegateStore {
    const store = new SluicegateStore(options)
    store.init({ windowMs: 60_000, limit: 5 })
    return store
  }

  const hitsOf = async (store: SluicegateStore, key: string): Promise<number> => (await store.increment(key)).totalHits

  test('any key that express-rate-limit may have is counted: empty, long, none at all', async () => {
    const store = ready({ create: here })
    for (const key of ['', 'x'.repeat(5_000), undefined as never, 7 as never]) assert.equal(await hitsOf(store, key), 1)
    assert.equal(await hitsOf(store, `${'x'.repeat(5_000)}y`), 1)
    assert.equal(await hitsOf(store, 'x'.repeat(5_000)), 2)
    const limiter = here(fixedWindow({ limit: 5, window: '1m' }))
    for (const key of ['', '\0', 'ada', undefined as never]) assert.equal(await hitsOf(ready({ limiter }), key), 1)
  })

  test('what is no text is refused as a key, which all such requests would share', () => {
    for (const store of [ready({}), ready({ create: here })]) {
      for (const key of [{ id: 1 }, ['ada'], () => 'ada', Symbol('ada')]) {
        assert.throws(() => store.increment(key as never), { code: 'KEY_INVALID', option: 'key' })
      }
    }
  })

  test('in a memory of its own no two keys are one, whatever they begin with', async () => {
    const store = ready({})
    for (const key of ['', '\0', '\0\0', '\0a', 'a', 'rl:', 'rl:a', 'x'.repeat(2_000)]) assert.equal(await hitsOf(store, key), 1)
    assert.equal(await hitsOf(store, ''), 2)
    assert.equal(await hitsOf(store, undefined as never), 1)
    assert.equal(await hitsOf(store, 7 as never), 1)
  })
})

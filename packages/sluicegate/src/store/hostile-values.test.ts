import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from '../create-limiter.js'
import { crc32 } from '../memory/snapshot/snapshot.js'
import { allOf } from '../policy/all-of.js'
import type { Policy } from '../policy/policy.js'
import { concurrency, fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from '../policy/single-policy.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { manualClock } from '../time/clock.js'
import { casStore } from './cas.js'
import type { CasStore } from './cas-store.js'

const START_MS = 1_700_000_000_000
const bucket = tokenBucket({ limit: 10, window: '1m', name: 'api' })

function bench(policy: Policy = bucket, change: (store: ReturnType<typeof memoryStore>) => CasStore = (store) => store) {
  const clock = manualClock(START_MS)
  const store = memoryStore({ clock })
  const limiterOf = (of: Policy = policy) => createLimiter(of, { store: casStore(change(store)), clock, mode: 'exact', outage: 'closed' })
  return { clock, store, limiterOf }
}

async function overwrite(store: ReturnType<typeof memoryStore>, key: string, change: (value: Uint8Array) => Uint8Array): Promise<void> {
  const { value, version } = await store.read(key)
  await store.swap({ key, version, value: change(value as Uint8Array), ttlMs: 1e9 })
}

const KEY = 'sluicegate:token-bucket:api:a'

test('a damaged or newer value is an outage of its key, never a fresh budget, until reset', async () => {
  const { store, limiterOf } = bench()
  const writer = limiterOf()
  await writer.take('a', 10)
  const { value } = await store.read(KEY)
  const good = value as Uint8Array
  const withSum = (bytes: Uint8Array): Uint8Array => {
    new DataView(bytes.buffer).setUint32(bytes.length - 4, crc32(bytes.subarray(0, bytes.length - 4)), true)
    return bytes
  }
  const others = [
    new Uint8Array(0),
    new TextEncoder().encode('not a value of a limiter'),
    good.subarray(0, good.length - 1),
    withSum(good.map((byte, i) => (i === 0 ? byte + 1 : byte))),
    // Of the first form, which had the words of the core.
    withSum(good.map((byte, i) => (i === 0 ? 1 : byte))),
    // A checksum tells damage, not its author: the numbers have to fit, too.
    ...Array.from({ length: good.length - 5 }, (_, at) => withSum(good.map((byte, i) => (i === at + 1 ? byte ^ 0x55 : byte)))),
    ...Array.from({ length: good.length }, (_, at) => good.map((byte, i) => (i === at ? byte ^ 1 : byte))),
  ]
  for (const [i, other] of others.entries()) {
    await overwrite(store, KEY, () => other)
    const reader = limiterOf()
    const { allowed, source } = await reader.take('a', 1)
    // With a checksum of its own it may be a state: of words that a limiter could have left, nothing says that they are wrong.
    if (i < 5 || i >= 5 + good.length - 5) assert.deepEqual({ allowed, source }, { allowed: false, source: 'outage' }, `value ${i}`)
    assert.equal((await reader.take('b', 1)).source, 'store', 'the circuit stays closed')
    reader.close()
  }
  const { remaining } = await writer.reset('a')
  assert.equal(remaining, 10)
  assert.equal((await writer.take('a', 10)).allowed, true)
  writer.close()
})

test('an update keeps what is spent, in whatever order processes learn of it', async () => {
  const pairs: readonly (readonly [Policy, Policy, number])[] = [
    [bucket, tokenBucket({ limit: 20, window: '1m', name: 'api' }), 14],
    [gcra({ limit: 10, window: '1m', name: 'api' }), gcra({ limit: 7, window: '1m', name: 'api' }), 1],
    [fixedWindow({ limit: 10, window: '30d', name: 'api' }), fixedWindow({ limit: 20, window: '30d', name: 'api' }), 14],
    [slidingWindow({ limit: 10, window: '1h', name: 'api' }), slidingWindow({ limit: 200_000, window: '1h', name: 'api' }), 199_994],
    [slidingLog({ limit: 10, window: '1h', name: 'api' }), slidingLog({ limit: 30, window: '1h', name: 'api' }), 24],
    [concurrency({ limit: 10, ttl: '1h', name: 'api' }), concurrency({ limit: 30, ttl: '1h', name: 'api' }), 24],
  ]
  for (const [before, after, left] of pairs) {
    const { limiterOf } = bench()
    const [old, next] = [limiterOf(before), limiterOf(after)]
    assert.equal((await old.take('a', 6)).allowed, true)
    assert.equal((await next.peek('a')).remaining, left, before.algorithm)
    for (let i = 0; i < 20; i++) {
      await next.take('b', 1)
      await old.take('b', 1)
      await old.take('c', 1)
      await next.take('c', 1)
    }
    assert.equal((await old.take('b', 10)).allowed, false, before.algorithm)
    old.close()
    next.close()
  }
})

test('a swap that is made in a later window than it was decided for is decided again', async () => {
  const policy = fixedWindow({ limit: 10, window: '1s', name: 'api' })
  let delay: (() => Promise<void>) | undefined
  const { clock, limiterOf, store } = bench(policy, (memory) => ({
    name: 'slow',
    read: (key) => memory.read(key),
    swap: async (swap) => {
      await delay?.()
      return memory.swap(swap)
    },
  }))
  const [slow, quick] = [limiterOf(), limiterOf()]
  await slow.take('a', 1)
  clock.set(START_MS + 990)
  delay = async () => {
    delay = undefined
    // The window ends while the swap is on its way.
    clock.set(START_MS + 1005)
  }
  const late = slow.take('a', 8)
  assert.equal((await late).allowed, true)
  // It counts in the window in which it was made, and not twice.
  assert.equal((await quick.peek('a')).remaining, 2)
  assert.equal((await quick.take('a', 3)).allowed, false)
  assert.ok((await store.read('sluicegate:fixed-window:api:a')).value !== undefined)
  slow.close()
  quick.close()
})

test('calls given up before they were sent are not made', async () => {
  let release: () => void = () => undefined
  let calls = 0
  const { clock, limiterOf } = bench(bucket, (memory) => ({
    name: 'stuck',
    read: async (key) => {
      calls++
      if (calls === 1) await new Promise<void>((resolve) => (release = resolve))
      return memory.read(key)
    },
    swap: (swap) => memory.swap(swap),
  }))
  const limiter = limiterOf()
  const first = limiter.take('a', 1)
  await new Promise(setImmediate)
  const second = limiter.take('a', 5)
  // Both time out; the second was never sent.
  for (let i = 0; i < 5; i++) {
    clock.advance(30)
    for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate)
  }
  assert.equal((await first).source, 'outage')
  assert.equal((await second).source, 'outage')
  release()
  for (let turn = 0; turn < 6; turn++) await new Promise(setImmediate)
  const judge = limiterOf()
  assert.equal((await judge.peek('a')).remaining, 10)
  limiter.close()
  judge.close()
})

test('a store that never answers holds no call for longer than its timeout', async () => {
  const never = new Promise<never>(() => undefined)
  const { clock, limiterOf } = bench(bucket, () => ({ name: 'silent', read: () => never, swap: () => never }))
  const limiter = limiterOf()
  const takes = Array.from({ length: 50 }, () => limiter.take('a'))
  for (let i = 0; i < 20; i++) {
    clock.advance(30)
    for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate)
  }
  for (const take of takes) assert.equal((await take).source, 'outage')
  limiter.close()
})

test('allOf that cannot be charged together is refused, unless it is leased', async () => {
  const clock = manualClock(START_MS)
  const memory = memoryStore({ clock })
  const store: CasStore = { name: 'plain', read: (key) => memory.read(key), swap: (swap) => memory.swap(swap) }
  const parts = [tokenBucket({ limit: 1000, window: '1s', name: 'user' }), tokenBucket({ limit: 5000, window: '1s', name: 'all' })]
  const policy = allOf(parts, { name: 'both' })
  assert.throws(() => createLimiter(policy, { store: casStore(store), clock, mode: 'exact' }), { code: 'CROSS_SLOT', option: 'store' })
  const leased = createLimiter(policy, { store: casStore(store), clock, outage: 'closed' })
  assert.equal((await leased.take(['u', 't'])).allowed, true)
  leased.close()
  const slow = allOf([fixedWindow({ limit: 2, window: '1m', name: 'few' }), parts[1] as Policy], { name: 'slow' })
  assert.throws(() => createLimiter(slow, { store: casStore(store), clock }), { code: 'CROSS_SLOT' })
})

test('reservations come back as far as is safe, also after others have taken', async () => {
  const policy = tokenBucket({ limit: 10, window: '1s', name: 'api' })
  for (const penalty of [0, 1, 2]) {
    const { clock, limiterOf } = bench(policy)
    const [one, other] = [limiterOf(), limiterOf()]
    const twin = createLimiter(policy, { clock })
    const [ours, theirs] = [await one.reserve('a', 8), twin.reserve('a', 8)]
    if (penalty > 0) assert.equal((await other.penalize('a', penalty)).remaining, twin.penalize('a', penalty).remaining)
    assert.equal((await ours.settle(4)).remaining, theirs.settle(4).remaining)
    const [later, twinLater] = [await one.reserve('a', 8), twin.reserve('a', 8)]
    assert.equal(later.waitMs, twinLater.waitMs)
    clock.advance(100)
    await later.cancel()
    twinLater.cancel()
    assert.equal((await other.peek('a')).remaining, twin.peek('a').remaining)
    one.close()
    other.close()
  }
})

test('what is no store is refused with what a store is', () => {
  for (const store of [undefined, {}, { name: 'x', read: () => undefined }, 'redis://']) {
    assert.throws(() => createLimiter(bucket, { store: casStore(store as never) }), { code: 'OPTION_INVALID', option: 'store' })
  }
})

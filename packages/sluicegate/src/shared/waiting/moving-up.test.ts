import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { feltChanges, feltGifts } from 'sluicegate-testkit/suites/layer-suite.js'
import { createLimiter } from '../../create-limiter.js'
import { concurrency, fixedWindow, gcra, manualClock, type Policy, slidingLog, slidingWindow, tokenBucket } from '../../index.js'
import { casStore } from '../../store/cas.js'
import { memoryStore } from '../../store-testing/memory-store.js'
import type { SharedLimiter } from '../shared-limiter.js'

const POLICY = tokenBucket({ limit: 10, window: '1s', name: 'up' })

function fixture() {
  const clock = manualClock(1_760_000_000_000)
  const store = memoryStore({ clock })
  const make = () => createLimiter(POLICY, { store: casStore(store), clock, mode: 'exact' })
  const limiter = make()
  const passed: string[] = []
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 12; i++) await new Promise(setImmediate)
  }
  const advanceTo = async (ms: number): Promise<void> => {
    while (clock.nowMs() < 1_760_000_000_000 + ms) {
      clock.advance(10)
      await settle()
    }
  }
  const wait = async (name: string, cost: number, signal?: AbortSignal, from = limiter): Promise<void> => {
    from.wait('k', { cost, ...(signal && { signal }) }).then(
      () => passed.push(`${name} at ${clock.nowMs() - 1_760_000_000_000}`),
      () => passed.push(`${name} gave up`),
    )
    await settle()
  }
  return { clock, limiter, make, passed, settle, advanceTo, wait }
}

test('waits behind one that gives up move up, whatever they cost, and keep their order', async () => {
  const { limiter, passed, advanceTo, wait } = fixture()
  await limiter.take('k', 10)
  const first = new AbortController()
  await wait('a', 8, first.signal)
  await wait('b', 1)
  await wait('c', 2)
  await advanceTo(30)
  first.abort()
  await advanceTo(500)
  assert.deepEqual(passed, ['a gave up', 'b at 100', 'c at 300'])
  limiter.close()
})

test('waits that came in an outage are answered in their order when the store is back', async () => {
  const clock = manualClock(1_760_000_000_000)
  const store = memoryStore({ clock })
  let isOut = false
  const failing = new Proxy(store, {
    get: (target, name) => {
      const value = target[name as keyof typeof target] as unknown
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => (isOut ? Promise.reject(new Error('out')) : Reflect.apply(value, target, args))
    },
  })
  const limiter = createLimiter(POLICY, { store: casStore(failing), clock, mode: 'exact', share: 0.001 })
  await limiter.take('k', 10)
  isOut = true
  // The share is spent, and comes back later than they wait.
  for (let i = 0; i < 5; i++) await limiter.take('k')
  const passed: string[] = []
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  }
  for (const name of ['a', 'b', 'c']) {
    void limiter.wait('k', { maxWait: '30s' }).then(({ source }) => passed.push(`${name} ${source}`))
    // The pauses of those that came before have grown.
    for (let i = 0; i < 70; i++) {
      clock.advance(20)
      await settle()
    }
  }
  isOut = false
  for (let i = 0; i < 500 && passed.length < 3; i++) {
    clock.advance(20)
    await settle()
  }
  assert.deepEqual(passed, ['a store', 'b store', 'c store'])
  limiter.close()
})

test('a wait that ends while it asks a store that is out leaves the looking to the next', async () => {
  const clock = manualClock(1_760_000_000_000)
  const store = memoryStore({ clock })
  let isOut = false
  let calls = 0
  const failing = new Proxy(store, {
    get: (target, name) => {
      const value = target[name as keyof typeof target] as unknown
      if (typeof value !== 'function') return value
      return async (...args: unknown[]) => {
        if (!isOut) return Reflect.apply(value, target, args)
        calls++
        for (let i = 0; i < 3; i++) await new Promise(setImmediate)
        throw new Error('out')
      }
    },
  })
  const limiter = createLimiter(POLICY, { store: casStore(failing), clock, mode: 'exact', share: 0.001 })
  await limiter.take('k', 10)
  isOut = true
  for (let i = 0; i < 5; i++) await limiter.take('k')
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  }
  const first = new AbortController()
  const gaveUp = assert.rejects(limiter.wait('k', { signal: first.signal }))
  await settle()
  let passed = ''
  void limiter.wait('k').then(({ source }) => {
    passed = source
  })
  await settle()
  for (const before = calls; calls === before; ) {
    clock.advance(20)
    for (let i = 0; i < 2; i++) await new Promise(setImmediate)
  }
  first.abort()
  await gaveUp
  isOut = false
  for (let i = 0; i < 500 && passed === ''; i++) {
    clock.advance(20)
    await settle()
  }
  assert.equal(passed, 'store')
  limiter.close()
})

for (const change of ['one gives up', 'a refund'] as const) {
  test(`waits between which another process waits are charged once, and go no later, after ${change}`, async () => {
    const { limiter, make, passed, advanceTo, wait } = fixture()
    const other = make()
    await limiter.take('k', 10)
    const first = new AbortController()
    await wait('a', 2, first.signal)
    await wait('b', 3)
    await wait('other', 4, undefined, other)
    await wait('c', 1)
    await advanceTo(30)
    if (change === 'a refund') await limiter.refund('k', 1)
    else first.abort()
    await advanceTo(1000)
    const one = change === 'a refund' ? 'a at 200' : 'a gave up'
    assert.deepEqual(passed, [one, 'b at 500', 'other at 900', 'c at 1000'])
    limiter.close()
    other.close()
  })
}

test('waits keep their times where another process waits behind them', async () => {
  const { limiter, make, passed, advanceTo, wait } = fixture()
  const other = make()
  await limiter.take('k', 10)
  const first = new AbortController()
  await wait('a', 2, first.signal)
  await wait('b', 1)
  await wait('other', 1, undefined, other)
  await advanceTo(30)
  first.abort()
  await advanceTo(500)
  assert.deepEqual(passed, ['a gave up', 'b at 300', 'other at 400'])
  limiter.close()
  other.close()
})

test('a job behind one that is aborted starts as if that had never come', async () => {
  const { clock, limiter, passed, settle, advanceTo } = fixture()
  await limiter.take('k', 10)
  const first = new AbortController()
  void limiter.run('k', () => 'never', { cost: 8, signal: first.signal }).catch(() => undefined)
  await settle()
  void limiter.run('k', () => passed.push(`ran at ${clock.nowMs() - 1_760_000_000_000}`))
  await advanceTo(30)
  first.abort()
  await advanceTo(300)
  assert.deepEqual(passed, ['ran at 100'])
  limiter.close()
})

test('a refund by another process is felt within about a second, by as much as came back', async () => {
  const clock = manualClock(1_760_000_000_000)
  const store = casStore(memoryStore({ clock }))
  const slow = tokenBucket({ limit: 10, window: '20s', name: 'slow' })
  for (let tokens = 0; tokens <= 5; tokens++) {
    const [key, fromMs] = [`k${tokens}`, clock.nowMs()]
    const [limiter, other] = [createLimiter(slow, { store, clock, mode: 'exact' }), createLimiter(slow, { store, clock, mode: 'exact' })]
    await other.take(key, 5)
    let passedMs = Number.NaN
    void limiter.wait(key, { cost: 8, maxWait: 10_000 }).then(({ allowed }) => (passedMs = allowed ? clock.nowMs() - fromMs : -1))
    await turns(12)
    if (tokens > 0) await other.refund(key, tokens)
    while (Number.isNaN(passedMs)) {
      clock.advance(100)
      await turns(12)
    }
    const dueMs = Math.max(6_000 - 2_000 * tokens, tokens > 0 ? 1_100 : 0)
    assert.ok(passedMs >= 6_000 - 2_000 * tokens && passedMs <= dueMs, `${passedMs} after a refund of ${tokens}`)
    limiter.close()
    other.close()
  }
})

test('who comes after a refund by another process tells those who have booked before of it, and is charged once', async () => {
  const { limiter, make, passed, advanceTo, wait } = fixture()
  const other = make()
  await limiter.take('k', 10)
  await wait('a', 6)
  await wait('b', 3)
  await other.refund('k', 4)
  await wait('c', 2)
  await wait('other', 1, undefined, other)
  await advanceTo(1000)
  assert.deepEqual(passed, ['a at 200', 'b at 500', 'c at 700', 'other at 800'])
  limiter.close()
  other.close()
})

test('waits pass at once after a refund, a reset and a new policy', async () => {
  for (const change of ['refund', 'reset', 'update'] as const) {
    const { limiter, passed, settle, advanceTo, wait } = fixture()
    await limiter.take('k', 10)
    await wait('a', 8)
    await advanceTo(10)
    if (change === 'refund') await limiter.refund('k', 8)
    else if (change === 'reset') await limiter.reset('k')
    else limiter.update(tokenBucket({ limit: 100, window: '1s', name: 'up' }))
    await settle()
    await settle()
    assert.deepEqual(passed, ['a at 10'], change)
    limiter.close()
  }
})

describe('felt changes', () => {
  // What makes room is felt at once by those who have booked ahead already: in memory and over a store, under each algorithm.

  const START_MS = 1_760_000_000_300
  const policyOf = (algorithm: string, limit: number): Policy => {
    const options = { limit, window: '1s', name: 'p' } as const
    const makers = { 'token-bucket': tokenBucket, 'fixed-window': fixedWindow, 'sliding-window': slidingWindow, 'sliding-log': slidingLog }
    return algorithm === 'gcra' ? gcra({ ...options, burst: limit }) : makers[algorithm as keyof typeof makers](options)
  }
  const ALGORITHMS = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log'] as const

  function fixture(policy: Policy, where: string) {
    const clock = manualClock(START_MS)
    const limiter =
      where === 'memory'
        ? createLimiter(policy, { clock })
        : createLimiter(policy, { store: casStore(memoryStore({ clock })), clock, mode: 'exact' })
    const settle = async (): Promise<void> => {
      for (let i = 0; i < 20; i++) await new Promise(setImmediate)
    }
    return { clock, limiter, settle }
  }

  for (const where of ['memory', 'store']) {
    feltChanges(where, (policy) => {
      const { limiter, settle } = fixture(policy, where)
      return { limiter, settle, stop: () => limiter.close() }
    })
  }

  for (const algorithm of ['token-bucket', 'gcra', 'fixed-window']) {
    test(`${algorithm} over a store: an update reaches ninety who have booked, and none of them is charged twice`, async () => {
      const { limiter, settle } = fixture(policyOf(algorithm, 100), 'store')
      await limiter.take('k', 100)
      let passed = 0
      for (let i = 0; i < 90; i++) {
        limiter.wait('k').then(
          ({ allowed }) => (passed += allowed ? 1 : 0),
          () => undefined,
        )
      }
      await settle()
      assert.equal(passed, 0)
      limiter.update(policyOf(algorithm, 300))
      for (let i = 0; i < 20; i++) await settle()
      assert.equal(passed, 90)
      assert.equal((await limiter.peek('k')).remaining, 110)
      limiter.close()
    })
  }

  const SEEDS = shortOrLong(8, 30)

  /** Arrivals, aborts, refunds, resets and updates: all end, none twice, and in no window does more pass than its limits and gifts. */
  async function live(algorithm: string, seed: number): Promise<void> {
    const random = new Random(seed)
    const { clock, limiter, settle } = fixture(policyOf(algorithm, 10), 'store')
    let limit = 10
    let most = 10
    let gifts = 0
    let asked = 0
    let ended = 0
    let spent = 0
    const aborts: AbortController[] = []
    for (let step = 0; step < 40; step++) {
      const what = random.integer(0, 9)
      if (what < 5) {
        const controller = new AbortController()
        const cost = random.integer(1, 6)
        aborts.push(controller)
        asked++
        limiter
          .wait('k', { cost, signal: controller.signal })
          .then(
            ({ allowed }) => {
              if (allowed) spent += cost
            },
            () => undefined,
          )
          .finally(() => ended++)
      } else if (what === 5) aborts[random.integer(0, aborts.length)]?.abort()
      else if (what === 6) {
        gifts += 3
        await limiter.refund('k', 3)
      } else if (what === 7) {
        gifts += most
        await limiter.reset('k')
      } else if (what === 8) {
        limit = random.integer(6, 30)
        gifts += most
        most = Math.max(most, limit)
        limiter.update(policyOf(algorithm, limit))
      } else clock.advance(random.integer(1, 400))
      await settle()
    }
    for (let ms = 0; ended < asked && ms < 60_000; ms += 100) {
      clock.advance(100)
      await settle()
    }
    assert.equal(ended, asked, `seed ${seed}: ${asked - ended} of ${asked} hang`)
    const windows = Math.ceil((clock.nowMs() - START_MS) / 1000) + 1
    assert.ok(spent <= windows * most + gifts, `seed ${seed}: ${spent} passed`)
    clock.advance(60_000)
    assert.equal((await limiter.peek('k')).remaining, limit, `seed ${seed}: something is left charged`)
    limiter.close()
  }

  for (const algorithm of ALGORITHMS) {
    test(`${algorithm} over a store: in ${SEEDS} lives of waits and changes none hangs, passes twice or is lost`, async () => {
      for (let seed = 1; seed <= SEEDS; seed++) await live(algorithm, seed)
    })
  }
})

describe('felt gifts of another process', () => {
  const clock = manualClock(1_760_000_000_300)
  const store = memoryStore({ clock })
  const make = (policy: Policy) => createLimiter(policy, { store: casStore(store), clock, mode: 'exact' })
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  }
  feltGifts(
    'a store',
    (policy) => ({ limiter: make(policy), other: make(policy) }),
    async () => {
      for (let i = 0; i < 11; i++) {
        clock.advance(100)
        await settle()
      }
    },
  )

  const LIVES = shortOrLong(6, 30)

  /** What two processes do to one key: no wait that would pass stays for longer than about a second, and nothing passes beyond the policy and its gifts. */
  async function live(policy: Policy, seed: number): Promise<void> {
    const random = new Random(seed)
    const key = `k${seed}`
    const limiters = [make(policy), make(policy)]
    const witness = make(policy)
    const waits: { cost: number; from: number; passesMs: number }[][] = [[], []]
    const aborts: AbortController[] = []
    let gifts = 0
    let spent = 0
    let longest = 0
    for (let step = 0; step < 400; step++) {
      const process = random.integer(0, 1)
      const limiter = limiters[process] as SharedLimiter
      const own = waits[process] as (typeof waits)[number]
      const what = random.integer(0, 60)
      if (what < 12) {
        const cost = random.integer(1, 5)
        const one = { cost, from: clock.nowMs(), passesMs: 0 }
        const controller = new AbortController()
        aborts.push(controller)
        own.push(one)
        limiter
          .wait(key, { cost, signal: controller.signal })
          .then(() => (spent += cost))
          .catch(() => undefined)
          .finally(() => own.splice(own.indexOf(one), 1))
      } else if (what < 15) aborts[random.integer(0, Math.max(0, aborts.length - 1))]?.abort()
      else if (what < 18) {
        const tokens = random.integer(1, 10)
        gifts += tokens
        void limiter.refund(key, tokens)
      } else if (what === 18) {
        gifts += 2 * policy.limit
        void limiter.reset(key)
      }
      clock.advance(100)
      await settle()
      for (const all of waits) {
        const [first] = all
        if (first === undefined) continue
        first.passesMs = (await witness.peek(key, first.cost)).allowed ? first.passesMs + 100 : 0
        longest = Math.max(longest, first.passesMs)
      }
    }
    assert.ok(longest <= 1_500, `seed ${seed}: one that would pass waited for ${longest} ms`)
    const windows = Math.ceil(40_000 / policy.windowMs) + 1
    assert.ok(spent <= windows * policy.limit + gifts, `seed ${seed}: ${spent} passed`)
    for (const limiter of [...limiters, witness]) limiter.close()
    await settle()
  }

  for (const make of [tokenBucket, fixedWindow, slidingWindow, slidingLog]) {
    test(`${make.name}: in ${LIVES} lives of two processes no wait that would pass stays for longer than about a second`, async () => {
      for (let seed = 1; seed <= LIVES; seed++) await live(make({ limit: 10, window: '20s', name: 'lives' }), seed)
    })
  }
})

const ONE = concurrency({ limit: 1, ttl: '1h' })

test('a wait that times out does not end the queue for the waits before it', async () => {
  const { clock, limiter } = fleet(ONE)
  const held = await limiter.take('a')
  const first = limiter.wait('a')
  await turns()
  const hasty = limiter.wait('a', { maxWait: 10 })
  await turns()
  clock.advance(10)
  await turns(12)
  assert.equal((await hasty).allowed, false)
  await held.release()
  assert.equal((await limiter.take('a')).allowed, false, 'no take overtakes the queue')
  clock.advance(2000)
  await turns(12)
  assert.equal((await first).allowed, true)
})

test('the waits behind it still wait for the first', async () => {
  const { clock, limiter } = fleet(ONE)
  const held = await limiter.take('a')
  const order: string[] = []
  const wait = async (name: string, maxWaitMs: number): Promise<void> => {
    const { allowed } = await limiter.wait('a', { maxWait: maxWaitMs })
    order.push(`${name} ${allowed}`)
  }
  const waits: Promise<void>[] = []
  for (const [name, maxWaitMs] of [
    ['first', 60_000],
    ['hasty', 5000],
    ['last', 60_000],
  ] as const) {
    waits.push(wait(name, maxWaitMs))
    await turns()
  }
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 10) {
      clock.advance(10)
      await turns(4)
    }
  }
  await pass(5000)
  assert.deepEqual(order, ['hasty false'])
  await held.release()
  await pass(1010)
  assert.deepEqual(order, ['hasty false', 'first true'])
  limiter.close()
  await assert.rejects(Promise.all(waits), { code: 'CLOSED' })
})

test('a process that stood still for longer than a lease when its time came books anew, as what it had is void', async () => {
  const { clock, limiter } = fleet(tokenBucket({ limit: 100, window: '1s', burst: 50 }))
  await turns()
  await limiter.penalize('a', 60)
  for (const [lateMs, charged] of [
    [90, 1],
    [110, 3],
  ] as const) {
    await limiter.penalize('a', 40)
    const waiting = limiter.wait('a')
    await turns()
    const { retryAfterMs } = await limiter.peek('a')
    clock.advance(retryAfterMs - 10 + lateMs)
    await turns(12)
    assert.equal((await waiting).allowed, true)
    assert.equal(limiter.stats().chargedTokens, charged)
  }
})

test('who gets his place lets the next one ask at once', async () => {
  const { limiter } = fleet(concurrency({ limit: 3, ttl: '1h' }))
  const held = await limiter.take('a', 3)
  const waits = [1, 2, 3].map(() => limiter.wait('a'))
  await turns(12)
  await held.release()
  // The clock stands still.
  for (const waiting of waits) assert.equal((await waiting).allowed, true)
})

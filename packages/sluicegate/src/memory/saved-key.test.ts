import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  manualClock,
  type Permit,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../index.js'
import { high, low } from './fingerprint.js'
import type { MemoryLimiter } from './memory-limiter.js'

const MIDNIGHT = Date.UTC(2026, 5, 1)

interface Kind {
  readonly name: string
  /** The same with other numbers. */
  readonly policies: readonly Policy[]
}

const KINDS: readonly Kind[] = [
  { name: 'a bucket', policies: [tokenBucket({ limit: 7, window: '9s' }), tokenBucket({ limit: 3, window: '1s', burst: 5 })] },
  { name: 'a wide bucket', policies: [tokenBucket({ limit: 70_000, window: '30d' }), tokenBucket({ limit: 900, window: '1d' })] },
  { name: 'a bucket of two encodings', policies: [tokenBucket({ limit: 20, window: '20s' }), tokenBucket({ limit: 90, window: '7d' })] },
  { name: 'GCRA', policies: [gcra({ limit: 10, window: '7s', burst: 4 }), gcra({ limit: 5, window: '11s', burst: 9 })] },
  { name: 'a fixed window', policies: [fixedWindow({ limit: 20, window: '10s' }), fixedWindow({ limit: 8, window: '7s' })] },
  { name: 'a calendar window', policies: [fixedWindow({ limit: 20, window: 'day' }), fixedWindow({ limit: 9, window: 'month' })] },
  { name: 'a sliding window', policies: [slidingWindow({ limit: 20, window: '10s' }), slidingWindow({ limit: 8, window: '7s' })] },
  { name: 'a wide window', policies: [slidingWindow({ limit: 20, window: '100ms' }), slidingWindow({ limit: 9, window: '90ms' })] },
  { name: 'a log', policies: [slidingLog({ limit: 12, window: '10s' }), slidingLog({ limit: 5, window: '13s' })] },
]

/** Deterministic numbers below `n`. */
function dice(seed: number): (n: number) => number {
  let state = seed >>> 0
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * n)
  }
}

const inMemory = (limiter: Limiter): MemoryLimiter => limiter as unknown as MemoryLimiter

/** One random step, the same on each limiter. */
function step(
  roll: (n: number) => number,
  clock: ReturnType<typeof manualClock>,
  policy: Policy,
  limiters: readonly Limiter[],
  canDebt: boolean,
): unknown[] {
  clock.advance(roll(3) === 0 ? roll(policy.windowMs / 2) + roll(1000) / 1000 : roll(40))
  const verb = roll(canDebt ? 10 : 7)
  const cost = 1 + roll(3)
  const blockMs = roll(2)
  return limiters.map((limiter) => {
    if (verb < 7) return limiter.take('k', cost)
    if (verb === 7) return limiter.penalize('k', cost)
    if (verb === 8) return limiter.refund('k', cost)
    return limiter.block('k', blockMs)
  })
}

for (const { name, policies } of KINDS) {
  const [policy, other] = policies as [Policy, Policy]
  test(`a key that moves from table to table decides as one that stays: ${name}`, () => {
    for (let seed = 1; seed <= 20; seed++) {
      const roll = dice(seed)
      const clock = manualClock(MIDNIGHT + roll(86_400_000))
      const stays = createLimiter(policy, { clock, maxKeys: 8 })
      let moves = createLimiter(policy, { clock, maxKeys: 3 })
      for (let i = 0; i < 60; i++) {
        const [one, same] = step(roll, clock, policy, [stays, moves], true)
        assert.deepEqual(same, one, `seed ${seed}, step ${i}`)
        if (roll(4) !== 0) continue
        const bytes = inMemory(moves).saveKey('k', true)
        assert.equal(inMemory(moves).peek('k').remaining, policy.burst, 'it has left')
        moves = createLimiter(policy, { clock, maxKeys: 1 + roll(50) })
        if (bytes !== undefined) assert.equal(inMemory(moves).loadKey('k', bytes), true)
      }
    }
  })

  test(`a key that moves to other numbers decides as after an update: ${name}`, () => {
    for (let seed = 1; seed <= 20; seed++) {
      const roll = dice(seed)
      const clock = manualClock(MIDNIGHT + roll(86_400_000))
      const updated = createLimiter(policy, { clock, maxKeys: 8 })
      for (let i = 0; i < 25; i++) step(roll, clock, policy, [updated], false)
      const next = roll(2) === 0 ? other : policy
      const moved = createLimiter(next, { clock, maxKeys: 8 })
      const bytes = inMemory(updated).saveKey('k') as Uint8Array
      updated.update(next)
      inMemory(moved).loadKey('k', bytes)
      for (let i = 0; i < 25; i++) {
        const [one, same] = step(roll, clock, next, [updated, moved], false)
        // A smaller table of a log has no slots for requests that no longer decide anything.
        assert.deepEqual({ ...Object(same), spent: 0 }, { ...Object(one), spent: 0 }, `seed ${seed}, step ${i}, ${next.name}`)
      }
    }
  })
}

const DAY_MS = 86_400_000
const YEAR_MS = 365.25 * DAY_MS

const WIDER: readonly Kind[] = [
  { name: 'a fixed window of large counts', policies: [fixedWindow({ limit: 1_000_000_000, window: '100ms' })] },
  { name: 'a sliding window of large counts', policies: [slidingWindow({ limit: 100_000, window: '1s' })] },
  { name: 'a long log', policies: [slidingLog({ limit: 9, window: '365d' })] },
]

/** A limiter whose time base is that of now: its first call sets it. */
function opened(policy: Policy, clock: ReturnType<typeof manualClock>): Limiter {
  const limiter = createLimiter(policy, { clock, maxKeys: 50 })
  limiter.take('another')
  return limiter
}

for (const { name, policies } of [...KINDS, ...WIDER]) {
  test(`a key that moves while the clock is set back, also to before the time base, decides as one that stays: ${name}`, () => {
    for (const policy of policies) {
      for (const stepMs of [1, DAY_MS, 20 * DAY_MS, 40 * DAY_MS, 90 * DAY_MS, 10 * YEAR_MS]) {
        const clock = manualClock(MIDNIGHT)
        const stays = opened(policy, clock)
        const tables = Array.from({ length: 5 }, () => opened(policy, clock))
        let moves = tables[0] as Limiter
        const both = (what: string, ask: (limiter: Limiter) => unknown): void =>
          assert.deepEqual(ask(moves), ask(stays), `${policy.name}, back by ${stepMs} ms: ${what}`)
        const moved = (i: number): void => {
          const bytes = inMemory(moves).saveKey('k', true) as Uint8Array
          moves = tables[i] as Limiter
          assert.equal(inMemory(moves).loadKey('k', bytes), true)
        }
        both('a take of all', (limiter) => limiter.take('k', policy.burst))
        clock.advance(-stepMs)
        moved(1)
        both('a take', (limiter) => limiter.take('k'))
        assert.equal(stepMs > 1 && moves.take('k').allowed, false)
        both('a penalty', (limiter) => limiter.penalize('k', 2))
        moved(2)
        both('a take after the penalty', (limiter) => limiter.take('k'))
        clock.set(MIDNIGHT)
        moved(3)
        both('a take when the clock is right again', (limiter) => limiter.take('k'))
        clock.advance(policy.windowMs)
        moved(4)
        both('a take a window later', (limiter) => limiter.take('k'))
      }
    }
  })
}

for (const [policy, other] of [
  [slidingWindow({ limit: 20, window: '10s' }), slidingWindow({ limit: 8, window: '7s' })],
  [slidingWindow({ limit: 20, window: '1s' }), slidingWindow({ limit: 100_000, window: '1s' })],
  [fixedWindow({ limit: 1_000_000_000, window: '100ms' }), fixedWindow({ limit: 500_000_000, window: '90ms' })],
  [slidingLog({ limit: 12, window: '10s' }), slidingLog({ limit: 5, window: '13s' })],
  [tokenBucket({ limit: 7, window: '9s' }), tokenBucket({ limit: 3, window: '1s', burst: 5 })],
] as const) {
  test(`a key that moves to other numbers before their time base has spent what it had: ${policy.name} to ${other.name}`, () => {
    const clock = manualClock(MIDNIGHT)
    const [from, to] = [opened(policy, clock), opened(other, clock)]
    from.take('k', policy.burst)
    clock.advance(-100 * YEAR_MS)
    assert.equal(inMemory(to).loadKey('k', inMemory(from).saveKey('k') as Uint8Array), true)
    assert.equal(to.take('k', other.burst).allowed, false)
    assert.ok(to.peek('k').remaining <= Math.max(0, other.burst - policy.burst))
  })
}

test('permits move with their handles, and with none of another table', () => {
  const clock = manualClock(MIDNIGHT)
  const policy = concurrency({ limit: 30, ttl: '30s' })
  const first = createLimiter(policy, { clock })
  for (let i = 0; i < 5; i++) {
    first.take('k')
    clock.advance(1_000)
  }
  const second = createLimiter(policy, { clock })
  const { core } = inMemory(first as unknown as Limiter)
  const [given, untilUs] = [core.givenPermit(), core.givenUntilUs()]
  assert.equal(
    inMemory(second as unknown as Limiter).loadKey('k', inMemory(first as unknown as Limiter).saveKey('k', true) as Uint8Array),
    true,
  )
  assert.deepEqual([first.peek('k').remaining, second.peek('k').remaining], [30, 25])
  clock.advance(25_000)
  assert.deepEqual([second.peek('k').remaining, second.peek('k').resetAfterMs], [26, 4_000])
  const renewed = (limiter: MemoryLimiter): number => {
    limiter.hash('k')
    return limiter.core.changePermit(low, high, limiter.decisions.nowUs(), false, given, untilUs, 1)
  }
  assert.deepEqual(
    [first, second].map((limiter) => renewed(inMemory(limiter as unknown as Limiter))),
    [0, 1],
  )
  assert.deepEqual([second.peek('k').remaining, second.peek('k').resetAfterMs], [27, 3_000])
  const permit: Permit = second.take('k', 27)
  assert.deepEqual([permit.allowed, second.take('k').allowed, permit.release()], [true, false, true])
})

test('a block goes along, and ends in the old table', () => {
  const clock = manualClock(MIDNIGHT)
  const policy = tokenBucket({ limit: 7, window: '9s' })
  const [from, to] = [createLimiter(policy, { clock }), createLimiter(policy, { clock })].map(inMemory) as [MemoryLimiter, MemoryLimiter]
  from.block('k', '1d')
  assert.equal(to.loadKey('k', from.saveKey('k', true) as Uint8Array), true)
  assert.deepEqual([from.take('k').allowed, to.take('k').retryAfterMs], [true, 86_400_000])
})

test('bytes that no limiter wrote are refused, and change nothing', () => {
  const clock = manualClock(MIDNIGHT)
  for (const { policies } of [...KINDS, { policies: [concurrency({ limit: 9, ttl: '10s' })] }]) {
    const [policy] = policies as [Policy]
    const from = inMemory(createLimiter(policy, { clock }))
    for (let i = 0; i < 4; i++) from.take('k')
    // What is held stands behind the numbers.
    if (policy.algorithm !== 'concurrency') for (const ttl of ['1s', '10s', '1d'] as const) from.open('k', { expect: 1, ttl })
    const bytes = from.saveKey('k') as Uint8Array
    for (const cut of [0, 1, bytes.length - 1]) {
      const to = inMemory(createLimiter(policy, { clock }))
      assert.equal(to.loadKey('k', bytes.slice(0, cut)), false, `${policy.name}, ${cut} bytes`)
      assert.equal(to.stats().keys, 0)
    }
    assert.equal(inMemory(createLimiter(policy, { clock })).loadKey('k', Uint8Array.of(...bytes, 0)), false, 'too long')
    const roll = dice(7)
    for (let i = 0; i < 100; i++) {
      const to = inMemory(createLimiter(policy, { clock, maxKeys: 2 }))
      const hostile = bytes.slice()
      for (let j = roll(4); j >= 0; j--) hostile[roll(hostile.length)] = roll(256)
      if (!to.loadKey('k', hostile)) assert.equal(to.stats().keys, 0)
      const { retryAfterMs, remaining } = to.take('k')
      assert.ok(retryAfterMs >= 0 && remaining >= 0 && remaining <= policy.burst, `${policy.name}: ${[...hostile]}`)
      if (policy.algorithm !== 'concurrency') {
        const work = to.open('k', { expect: 1, over: 'finish' })
        work.add(2)
        assert.ok(work.used + work.held <= 2 && to.peek('k').remaining >= 0, `${policy.name}: ${[...hostile]}`)
        work.close()
        // Whatever was said to be held ends by itself, at the latest after two days.
        clock.advance(2 * 86_400_000)
        to.reset('k')
        assert.equal(to.peek('k').remaining, policy.burst, `${policy.name}: ${[...hostile]}`)
        clock.advance(-2 * 86_400_000)
      }
      to.take('other')
      to.penalize('k', 3)
      to.reset('k')
      assert.equal(to.take('k').allowed, true)
    }
  }
})

test('a key whose words are those of a time base long ago moves as any other', () => {
  const clock = manualClock(MIDNIGHT)
  for (const policy of [fixedWindow({ limit: 1_000_000, window: '30d' }), slidingLog({ limit: 9, window: '365d' })]) {
    const from = inMemory(createLimiter(policy, { clock }))
    from.take('k', 3)
    from.reset('k')
    const to = inMemory(createLimiter(policy, { clock }))
    assert.equal(to.loadKey('k', from.saveKey('k', true) as Uint8Array), true)
    assert.equal(to.take('k', 2).remaining, policy.limit - 2)
  }
})

test('a key of another algorithm is refused', () => {
  const from = inMemory(createLimiter(fixedWindow({ limit: 5, window: '1m' })))
  from.take('k')
  assert.equal(inMemory(createLimiter(tokenBucket({ limit: 5, window: '1m' }))).loadKey('k', from.saveKey('k') as Uint8Array), false)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { attachLimiter, createLimiter } from '../create-limiter.js'
import {
  allOf,
  carryKey,
  concurrency,
  fixedWindow,
  gcra,
  type Limiter,
  levels,
  manualClock,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../index.js'
import type { MemoryLimiter } from './memory-limiter.js'

const START_MS = 1_789_000_020_000
const HUNDRED = { limit: 100, window: '1m' } as const
const POLICIES = [tokenBucket(HUNDRED), gcra({ ...HUNDRED, burst: 100 }), fixedWindow(HUNDRED), slidingWindow(HUNDRED), slidingLog(HUNDRED)]

for (const policy of POLICIES) {
  test(`${policy.algorithm}: what is held is spent by nobody else, and nothing is charged until it is added`, () => {
    const limiter = createLimiter(policy, { clock: manualClock(START_MS) })
    const work = limiter.open('ada', { expect: 60 })
    assert.deepEqual([work.allowed, work.remaining, work.held, work.used], [true, 40, 60, 0])
    assert.equal(work.resetAfterMs, limiter.peek('ada').resetAfterMs)
    assert.equal(limiter.open('ada', { expect: 41 }).allowed, false)
    assert.equal(limiter.take('ada', 41).allowed, false)
    assert.equal(limiter.take('ada', 40).remaining, 0)
    assert.equal(limiter.take('ada').allowed, false)
    // Work within its hold is never cut.
    for (let i = 0; i < 60; i++) assert.equal(work.add(1), true)
    assert.equal(work.add(1), false)
    assert.deepEqual([work.held, work.used, work.over], [0, 60, 0])
    assert.equal(work.close().remaining, 0)
  })

  test(`${policy.algorithm}: closing frees what is left, and spends what is missing as debt`, () => {
    const limiter = createLimiter(policy, { clock: manualClock(START_MS) })
    const short = limiter.open('ada', { expect: 60 })
    short.add(10)
    assert.equal(short.close(20).remaining, 80)
    assert.equal(short.close(90).remaining, 80)
    assert.equal(short.add(1), false)
    const long = limiter.open('ada', { expect: 60 })
    assert.equal(long.close(95).remaining, 0)
    assert.deepEqual([long.used, long.over], [95, 15])
    assert.equal(limiter.open('ada', { expect: 1 }).allowed, false)
  })

  test(`${policy.algorithm}: retryAfterMs is exact when holds end by themselves`, () => {
    const clock = manualClock(START_MS)
    const limiter = createLimiter(policy, { clock })
    limiter.take('ada', 20)
    limiter.open('ada', { expect: 50, ttl: '2s' })
    limiter.open('ada', { expect: 20, ttl: '4s' })
    for (const cost of [15, 75]) {
      const { allowed, retryAfterMs } = limiter.peek('ada', cost)
      assert.equal(allowed, false)
      clock.advance(retryAfterMs - 1)
      assert.equal(limiter.peek('ada', cost).allowed, false, `${cost} a millisecond early`)
      clock.advance(1)
      assert.equal(limiter.peek('ada', cost).allowed, true, `${cost}`)
      assert.equal(limiter.take('ada', cost).allowed, true)
      limiter.refund('ada', cost)
    }
  })
}

test('a hold ends its ttl after the last add, and costs what was added; then it spends what is free', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(fixedWindow({ limit: 100, window: '1h' }), { clock })
  const work = limiter.open('ada', { expect: 100, ttl: '8s' })
  for (let i = 0; i < 10; i++) {
    clock.advance(7_999)
    assert.equal(work.add(1), true)
  }
  assert.equal(limiter.take('ada').allowed, false)
  clock.advance(9_000)
  assert.equal(work.held, 0)
  assert.equal(limiter.take('ada', 85).allowed, true)
  assert.equal(work.add(6), false)
  assert.equal(work.add(5), true)
  assert.equal(work.close().remaining, 0)
})

test('a hold goes on in the next window, and spends there', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(fixedWindow({ limit: 100, window: '1m' }), { clock })
  const work = limiter.open('ada', { expect: 60, ttl: '2m' })
  work.add(10)
  clock.advance(60_000)
  assert.equal(limiter.peek('ada').remaining, 50)
  work.add(50)
  assert.equal(limiter.peek('ada').remaining, 50)
})

test('what neither hold nor room covers is finished as debt, or waits', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(tokenBucket({ limit: 60, window: '1m' }), { clock })
  const finishing = limiter.open('ada', { expect: 50, over: 'finish' })
  assert.equal(finishing.add(70), true)
  assert.deepEqual([finishing.used, finishing.over], [70, 10])
  assert.equal(limiter.peek('ada').retryAfterMs, 11_000)
  finishing.close()

  const others = limiter.open('bob', { expect: 60, ttl: '10s', over: 'wait' })
  const waiting = limiter.open('eve', { expect: 50, over: 'wait' })
  assert.equal(waiting.add(60), true)
  const later = waiting.add(5)
  assert.ok(later instanceof Promise)
  assert.equal(limiter.open('eve', { expect: 1 }).allowed, false)
  clock.advance(5_000)
  assert.equal(await later, true)
  assert.equal(waiting.used, 65)
  // Longer than the ttl: refused at once. One that is closed meanwhile: false.
  assert.equal(await waiting.add(30), false)
  const cut = waiting.add(5)
  waiting.close()
  assert.equal(await cut, false)
  assert.equal(limiter.peek('eve').remaining, 0)
  others.close()
})

test('a wait for room goes on when work closes', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(fixedWindow({ limit: 100, window: '1h' }), { clock })
  const first = limiter.open('ada', { expect: 60 })
  const second = limiter.open('ada', { expect: 40, over: 'wait' })
  const added = second.add(50)
  const taken = limiter.wait('ada', { cost: 5, maxWait: 10_000 })
  first.add(20)
  first.close()
  assert.equal(await added, true)
  assert.equal((await taken).allowed, true)
  assert.equal(limiter.peek('ada').remaining, 25)
})

test('the most bounds the work, whatever is free, and says what is affordable', () => {
  const limiter = createLimiter(tokenBucket({ limit: 1000, window: '1m' }), { clock: manualClock(START_MS) })
  const work = limiter.open('ada', { expect: 50, most: 100 })
  assert.equal(work.affordable(1), 100)
  assert.equal(work.affordable(0.3), 333)
  assert.equal(work.add(101), false)
  assert.equal(work.add(100), true)
  assert.equal(work.add(1), false)
  assert.deepEqual([work.affordable(1), work.add(0)], [0, true])
  limiter.open('ada', { expect: 300 })
  assert.equal(limiter.open('ada', { expect: 100 }).affordable(1), 600)
  assert.equal(limiter.open('bob', { expect: 500, most: 20 }).held, 20)
})

test('what is learned is what nearly all cost that closed of late, of the key where it is busy, whatever is said in most', () => {
  const limiter = createLimiter(tokenBucket({ limit: 1_000_000, window: '1s' }), { clock: manualClock(START_MS) })
  const held = (key: string, most?: number): number => {
    const work = limiter.open(key, most === undefined ? {} : { most })
    const { held: expected } = work
    work.close(0)
    return expected
  }
  assert.equal(held('new', 1_000_000), 10_000, 'a bound as large as all there is leaves room for others')
  assert.deepEqual([held('new', 4_096), held('new')], [4_096, 10_000])
  for (let i = 0; i < 300; i++) limiter.open('ada', { expect: 1 }).close(200 + (i % 100))
  for (let i = 0; i < 300; i++) limiter.open(`other ${i}`, { expect: 1 }).close(20)
  assert.ok(Math.abs(held('ada') - 298) < 12, `${held('ada')}`)
  for (let i = 0; i < 4_000; i++) limiter.open('busy', { expect: 1 }).close(20)
  assert.ok(held('new', 1_000_000) < 250)
  assert.equal(held('ada', 5), 5)
})

test('work that was cut counts as what it would have cost with the piece that was refused', () => {
  const limiter = createLimiter(tokenBucket(HUNDRED), { clock: manualClock(START_MS) })
  for (let i = 0; i < 40; i++) {
    const work = limiter.open('ada', { expect: 1, most: 10 })
    assert.deepEqual([work.add(10), work.add(50)], [true, false])
    work.close()
    limiter.reset('ada')
  }
  const { held } = limiter.open('ada', { expect: 'learned' })
  assert.ok(Math.abs(held - 60) <= 2, `${held}`)
})

test('an open goes past nobody who waits', async () => {
  const clock = manualClock(START_MS)
  // Of several policies nothing is booked ahead.
  const limiter = createLimiter(allOf([tokenBucket({ limit: 10, window: '1s' }), tokenBucket(HUNDRED)]), { clock })
  limiter.take('ada', 10)
  const waiting = limiter.wait('ada', { cost: 5 })
  clock.advance(300)
  const early = limiter.open('ada', { expect: 1 })
  assert.deepEqual([early.allowed, early.retryAfterMs > 0], [false, true])
  clock.advance(300)
  assert.equal((await waiting).allowed, true)
  assert.equal(limiter.open('ada', { expect: 1 }).allowed, true)
})

test('levels hold on all or none, by name, and say which binds', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(
    levels({
      org: fixedWindow({ limit: 1_000, window: 'day' }),
      team: slidingWindow({ limit: 300, window: '1h' }),
      user: tokenBucket({ limit: 100, window: '1m' }),
    }),
    { clock },
  )
  const ada = { user: 'ada', org: 'acme', team: 'x' }
  const work = limiter.open(ada, { expect: 100 })
  assert.deepEqual([work.allowed, work.policy], [true, 'user'])
  assert.equal(limiter.open(ada, { expect: 1 }).policy, 'user')
  const users = ['bob', 'eve'].map((user) => limiter.open({ ...ada, user }, { expect: 100 }))
  const fourth = limiter.open({ ...ada, user: 'mia' }, { expect: 1 })
  assert.deepEqual([fourth.allowed, fourth.policy], [false, 'team'])
  // Nothing is held of those that had room.
  assert.equal(limiter.open({ org: 'acme', team: 'y', user: 'mia' }, { expect: 100 }).allowed, true)
  assert.equal(work.add(70), true)
  assert.equal(work.add(31), false)
  for (const open of users) open.close()
  work.close(80)
  const parts = limiter.take(ada, 1).parts ?? []
  assert.deepEqual(
    parts.map(({ policy, remaining }) => [policy, remaining]),
    [
      ['org', 819],
      ['team', 219],
      ['user', 19],
    ],
  )
  assert.equal(limiter.take(['acme', 'x', 'ada']).remaining, 18)
  for (const key of [
    { org: 'a', team: 'b' },
    { ...ada, more: 'x' },
    { ...ada, user: '' },
  ]) {
    assert.throws(() => limiter.take(key), { code: 'KEY_INVALID' })
  }
})

test('a level that an operator has blocked stops the work, and is charged for none of the others', () => {
  const limiter = createLimiter(allOf([tokenBucket(HUNDRED), fixedWindow(HUNDRED)]), { clock: manualClock(START_MS) })
  const work = limiter.open('ada', { expect: 50 })
  work.add(10)
  limiter.block('ada', '1m')
  assert.equal(work.add(10), false)
  limiter.block('ada', 0)
  assert.deepEqual(
    limiter.peek('ada').parts?.map(({ remaining }) => remaining),
    [50, 50],
  )
  limiter.penalize('ada', 60)
  // What is held is not cut by a debt that came later.
  assert.equal(work.add(40), true)
})

for (const policy of POLICIES) {
  test(`${policy.algorithm}: what one thread holds no other takes, reserves, waits for or opens`, async () => {
    const clock = manualClock(START_MS)
    const limiter = createLimiter(policy, { clock })
    const other = attachLimiter(limiter.handle())
    const work = limiter.open('ada', { expect: 60 })
    assert.deepEqual([other.peek('ada').remaining, other.take('ada', 41).allowed], [40, false])
    assert.equal(other.open('ada', { expect: 41 }).allowed, false)
    assert.equal(other.reserve('ada', 41, { maxWait: 1_000 }).allowed, false)
    assert.equal((await other.wait('ada', { cost: 41, maxWait: 0 })).allowed, false)
    assert.equal(other.take('ada', 40).remaining, 0)
    for (let i = 0; i < 60; i++) assert.equal(work.add(1), true)
    assert.equal(work.add(1), false)
  })
}

test('misuse throws and spends nothing', () => {
  const limiter = createLimiter(tokenBucket(HUNDRED), { clock: manualClock(START_MS) })
  const work = limiter.open('ada', { expect: 60 })
  for (const cost of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1', undefined, null]) {
    assert.throws(() => work.add(cost as number), { code: 'COST_INVALID' })
    if (cost !== undefined) assert.throws(() => work.close(cost as number), { code: 'COST_INVALID' })
    assert.throws(() => limiter.open('ada', { expect: cost === undefined ? 0 : (cost as number) }), { code: 'COST_INVALID' })
  }
  assert.equal(work.add(2 ** 53 - 1), false)
  for (const options of [{ ttl: 1 }, { ttl: '2d' }] as const) {
    assert.throws(() => limiter.open('ada', options), { code: 'DURATION_INVALID' })
  }
  assert.throws(() => limiter.open('ada', { over: 'bill' as 'cut' }), { code: 'OPTION_INVALID' })
  assert.throws(() => limiter.open('ada', { expected: 1 } as object), { code: 'OPTION_UNKNOWN' })
  assert.throws(() => limiter.open(''), { code: 'KEY_INVALID' })
  assert.throws(() => createLimiter(concurrency({ limit: 5 })).open('ada'), { code: 'POLICY_INVALID' })
  assert.equal(limiter.open('ada', { expect: 101 }).retryAfterMs, Number.POSITIVE_INFINITY)
  assert.equal(limiter.peek('ada').remaining, 40)
  assert.equal(JSON.stringify(work).includes('ada'), false)
})

test('what a piece that waits frees goes to those who wait already, and a closed limiter ends no block', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(fixedWindow({ limit: 100, window: '1h' }), { clock })
  const other = limiter.open('ada', { expect: 50 })
  const work = limiter.open('ada', { expect: 50, over: 'wait' })
  const first = limiter.wait('ada', { cost: 40, maxWait: '10s' })
  const added = work.add(60)
  assert.equal((await first).allowed, true)
  other.close()
  assert.equal(await added, true)
  {
    using last = limiter.open('bob', { expect: 1 })
    assert.equal(last.allowed, true)
    limiter.close()
  }
  assert.throws(() => work.add(1), { code: 'CLOSED' })
})

test('a thousand that open at once are as many as there is room for', () => {
  const limiter = createLimiter(fixedWindow({ limit: 500, window: 'day' }), { clock: manualClock(START_MS) })
  const works = Array.from({ length: 1_000 }, () => limiter.open('ada', { expect: 10 }))
  assert.equal(works.filter(({ allowed }) => allowed).length, 50)
})

test('holds that are never closed take bounded memory, and leave the room of others alone', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(tokenBucket({ limit: 1_000, window: '1s' }), { clock, maxKeys: 1_000 })
  const before = limiter.stats().memoryBytes
  let allowed = 0
  for (let i = 0; i < 20_000; i++) if (limiter.open(`key ${i}`, { expect: 1 }).allowed) allowed++
  // Half of the places of the table.
  assert.ok(allowed >= 720 && allowed <= 760, `${allowed}`)
  assert.ok(limiter.stats().memoryBytes - before < 1_000_000)
  // The other half is for honest keys.
  for (let i = 0; i < 500; i++) assert.equal(limiter.take(`honest ${i}`).allowed, true, `${i}`)
  for (let i = 0; i < 1_000_000; i++) limiter.open(`key ${i % 400}`, { expect: 1 })
  clock.advance(17_000)
  for (let i = 0; i < 700; i++) assert.equal(limiter.open(`late ${i}`, { expect: 1 }).allowed, true, `${i}`)
})

test('lists, bans, plans and shadow mode hold as they take', () => {
  const clock = manualClock(START_MS)
  const policy = tokenBucket({ limit: 10, window: '1m' })
  const more = tokenBucket({ limit: 1_000, window: '1m' })
  const listed = createLimiter(policy, { clock, allow: ['free'], deny: ['gone'] })
  assert.equal(listed.open('gone').allowed, false)
  const free = listed.open('free', { expect: 100 })
  assert.deepEqual([free.allowed, free.add(1_000), free.used], [true, true, 1_000])
  const plans = createLimiter(policy, { clock, policyFor: (key) => (key === 'pro' ? more : undefined) })
  assert.deepEqual([plans.open('pro', { expect: 100 }).allowed, plans.open('ada', { expect: 11 }).allowed], [true, false])
  const shadow = createLimiter(policy, { clock, shadow: true })
  const denied = shadow.open('ada', { expect: 11 })
  assert.deepEqual([denied.allowed, denied.wouldDeny, denied.add(50)], [true, true, true])
  const passed = shadow.open('ada', { expect: 5 })
  assert.deepEqual([passed.add(50), passed.add(1)], [true, true])
  const banning = createLimiter(policy, { clock, banAfter: { denials: 2, within: '1m', for: '1h' } })
  banning.take('ada', 5)
  for (let i = 0; i < 3; i++) banning.open('ada', { expect: 10 })
  assert.ok(banning.take('ada').retryAfterMs > 3_000_000)
})

test('a key that goes to a plan of another algorithm takes along what is held, which is not spent there', () => {
  for (const plan of [fixedWindow({ limit: 50, window: '1h' }), slidingLog({ limit: 50, window: '1h' })]) {
    const clock = manualClock(START_MS)
    let isOther = false
    const limiter = createLimiter(tokenBucket({ limit: 100, window: '30d' }), { clock, policyFor: () => (isOther ? plan : undefined) })
    const work = limiter.open('ada', { expect: 60, ttl: '1m' })
    work.add(20)
    isOther = true
    // 20 are spent, 40 held, and so none is left; what was granted is spent all the same.
    assert.deepEqual([limiter.peek('ada').remaining, work.held, work.add(35), work.held], [0, 40, true, 5])
    assert.deepEqual([work.add(6), work.add(5), work.over, limiter.peek('ada').spent], [false, true, 0, 60])
    const next = limiter.open('eve', { expect: 30 })
    isOther = false
    assert.deepEqual([next.held, limiter.peek('eve').remaining], [30, 70])
    isOther = true
    // Nobody closes it, and it ends by itself.
    assert.equal(limiter.peek('eve').remaining, 20)
    clock.advance(18_000)
    assert.deepEqual([limiter.peek('eve').remaining, next.held], [50, 0])
  }
})

test('what another thread opens in the instant in which a key goes to a plan of another algorithm goes along', () => {
  const clock = manualClock(START_MS)
  for (const policy of POLICIES) {
    const before = createLimiter(policy, { clock }) as unknown as MemoryLimiter
    const after = createLimiter(policy === POLICIES[0] ? fixedWindow(HUNDRED) : tokenBucket(HUNDRED), { clock })
    before.take('ada', 10)
    const { saveKey } = before
    before.saveKey = (key, takesOut) => {
      attachLimiter(before.handle(), { clock }).open('ada', { expect: 20 })
      before.take('ada', 5)
      return saveKey.call(before, key, takesOut)
    }
    assert.equal(carryKey([before as unknown as Limiter], after, 'ada'), true)
    assert.equal(after.peek('ada').remaining, 65, policy.algorithm)
    clock.advance(18_000)
    assert.ok(after.peek('ada').remaining >= 85, policy.algorithm)
    clock.advance(3_600_000)
  }
})

test('a clock that steps back ends no hold earlier and none later than by its step, and gives nothing twice', () => {
  for (const policy of POLICIES) {
    const clock = manualClock(START_MS)
    const limiter = createLimiter(policy, { clock })
    const work = limiter.open('ada', { expect: 60, ttl: '4s' })
    clock.advance(-3_000)
    assert.deepEqual([work.held, work.add(10), limiter.peek('ada').remaining], [60, true, 40])
    clock.advance(3_000)
    assert.equal(work.held, 50)
    clock.advance(5_000)
    // It has ended: that is so for good.
    const { remaining } = limiter.peek('ada')
    limiter.take('ada', 1)
    clock.advance(-5_000)
    assert.ok(limiter.peek('ada').remaining <= remaining, policy.algorithm)
    assert.equal(work.add(remaining + 1), false)
    clock.advance(60_000 * 3)
    assert.equal(limiter.peek('ada').remaining, 100, policy.algorithm)
  }
})

test('work goes on beyond the end of a month where its time zone ends it, an hour of summer time included', () => {
  const policy = fixedWindow({ limit: 100, window: 'month', timeZone: 'Europe/Rome' })
  for (const endMs of [Date.UTC(2026, 9, 31, 23), Date.UTC(2026, 2, 31, 22), Date.UTC(2028, 1, 29, 23)]) {
    const clock = manualClock(endMs - 1_000)
    const limiter = createLimiter(policy, { clock })
    assert.equal(limiter.take('ada', 30).resetAfterMs, 1_000)
    const work = limiter.open('ada', { expect: 60 })
    assert.equal(work.add(20), true)
    clock.advance(999)
    assert.deepEqual([limiter.peek('ada').remaining, work.add(20)], [10, true])
    clock.advance(1)
    // What was spent is of the old month; what is held is held in the new one, and spent there.
    assert.deepEqual([work.held, limiter.peek('ada').remaining], [20, 80])
    assert.deepEqual([work.add(20), work.add(80), work.add(1)], [true, true, false])
    assert.deepEqual([work.used, work.over, limiter.peek('ada').remaining], [140, 0, 0])
  }
})

for (const policy of POLICIES) {
  test(`${policy.algorithm}: a piece that is spent as debt takes all of the hold along`, () => {
    const limiter = createLimiter(policy, { clock: manualClock(START_MS) })
    const work = limiter.open('ada', { expect: 10, over: 'finish' })
    limiter.take('ada', 90)
    assert.equal(work.add(15), true)
    assert.deepEqual([work.held, work.used, work.over, work.affordable(1)], [0, 15, 5, 0])
    work.add(5)
    assert.deepEqual([work.held, work.used, work.over], [0, 20, 10])
    limiter.reset('ada')
    assert.equal(limiter.take('ada', 100).allowed, true, 'nothing is held any more')
  })
}

for (const [name, policy] of [
  ['a window', fixedWindow({ limit: 10, window: '1h' })],
  ['levels', levels({ org: fixedWindow({ limit: 100, window: '1h' }), user: fixedWindow({ limit: 10, window: '1h' }) })],
] as const) {
  test(`${name}: who waits goes on when a hold closes, also one that its key has taken to another plan`, async () => {
    const clock = manualClock(START_MS)
    let plan = fixedWindow({ limit: 10, window: '1h', name: 'user' })
    const limiter = createLimiter(policy, {
      clock,
      ...(name === 'levels' ? { policyFor: { user: () => plan } } : { policyFor: () => plan }),
    })
    const key = name === 'levels' ? ['acme', 'ada'] : 'ada'
    for (const limit of [10, 8]) {
      const work = limiter.open(key, { expect: 4, ttl: '1m' })
      plan = fixedWindow({ limit, window: '1h', name: 'user' })
      assert.equal(limiter.take(key, limit - 4).allowed, true, `${limit}`)
      const waiting = limiter.wait(key, { cost: 4, maxWait: '2m' })
      const piece = limiter.open(key, { expect: 1 })
      assert.equal(piece.allowed, false)
      work.close()
      // The clock stands still.
      assert.equal((await waiting).allowed, true, `${limit}`)
      limiter.reset(key)
    }
    limiter.close()
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  allOf,
  attachLimiter,
  carryKey,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  type LimiterOptions,
  manualClock,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../index.js'
import { tieredInMemory } from './limiter-layers.js'

const FREE = tokenBucket({ limit: 10, window: '1s', name: 'free' })
const PRO = tokenBucket({ limit: 100, window: '1s', name: 'pro' })
const HUGE = gcra({ limit: 5000, window: '1s', name: 'huge' })
const BY_FIRST: Readonly<Record<string, Policy>> = { p: PRO, h: HUGE, f: FREE }

function policyFor(key: string): Policy | undefined {
  return BY_FIRST[key[0] as string]
}

function tiered(options: LimiterOptions = {}): Limiter {
  return createLimiter(FREE, { clock: manualClock(1_789_000_000_000), policyFor, ...options })
}

for (const policies of [undefined, [PRO, HUGE, FREE, PRO]]) {
  const how = policies === undefined ? 'made as they come' : 'named beforehand'
  const options = policies === undefined ? {} : { policies }

  test(`each key is limited by its own policy, ${how}`, () => {
    const limiter = tiered(options)
    for (const [key, { name, limit }] of [
      ['p', PRO],
      ['h', HUGE],
      ['f', FREE],
      ['other', FREE],
    ] as const) {
      assert.equal(limiter.peek(key, limit + 1).retryAfterMs, Number.POSITIVE_INFINITY)
      const { policy, remaining } = limiter.take(key, limit)
      assert.deepEqual([policy, remaining, limiter.take(key).allowed, limiter.policy], [name, 0, false, FREE])
    }
    assert.equal(limiter.stats().keys, 4)
  })

  test(`every verb goes to the policy of its key, ${how}`, () => {
    const limiter = tiered(options)
    assert.equal(limiter.penalize('p', 60).remaining, 40)
    assert.equal(limiter.refund('p', 20).remaining, 60)
    assert.equal(limiter.block('p', '1s').retryAfterMs, 1000)
    assert.equal(limiter.reset('p').remaining, 100)
    assert.deepEqual([limiter.key('p').take(30).remaining, limiter.key('p').peek().remaining], [70, 70])
    assert.equal(limiter.peek('f').remaining, 10)
  })

  test(`the limiter's own policy may be named too, and update changes it alone, ${how}`, () => {
    const limiter = tiered(options)
    limiter.take('f', 4)
    limiter.take('p', 4)
    limiter.update(tokenBucket({ limit: 8, window: '1s', name: 'freer' }))
    for (const key of ['f', 'other']) assert.deepEqual([limiter.take(key).policy, limiter.take(key).limit], ['freer', 8])
    assert.equal(limiter.peek('f').remaining, 2)
    assert.deepEqual([limiter.peek('p').policy, limiter.peek('p').remaining], ['pro', 96])
  })
}

test('a policy made anew for each call finds what counts for its equal', () => {
  const limiter = tiered({ policyFor: () => tokenBucket({ limit: 100, window: '1s', name: 'pro' }) })
  for (let i = 0; i < 100; i++) assert.equal(limiter.take('k').allowed, true)
  assert.equal(limiter.take('k').allowed, false)
  const clone = tiered({ policyFor: () => JSON.parse(JSON.stringify(PRO)) as Policy, policies: [PRO] })
  assert.deepEqual([clone.take('k', 60).remaining, clone.take('k', 30).remaining], [40, 10])
})

test('what a key has spent is spent under its next policy, whatever the names of the two', () => {
  const named = (name: string): Policy => tokenBucket({ limit: 10, window: '1s', name })
  let name = 'a'
  const limiter = tiered({ policyFor: () => named(name) })
  limiter.take('k', 10)
  name = 'b'
  assert.deepEqual([limiter.take('k').allowed, limiter.take('k').policy], [false, 'b'])
})

test('a policy that is changed in place is another one', () => {
  const loose = { ...PRO, limit: 20, burst: 20 }
  const limiter = tiered({ policyFor: () => loose as Policy })
  assert.equal(limiter.take('k').remaining, 19)
  loose.limit = loose.burst = 30
  assert.equal(limiter.take('k').remaining, 28)
})

test('a key that was hashed once follows its policy', () => {
  const pros = new Set<string>()
  const limiter = tiered({ policyFor: (key) => (pros.has(key) ? PRO : undefined) })
  const bound = limiter.key('k')
  assert.equal(bound.take().remaining, 9)
  pros.add('k')
  assert.deepEqual([bound.take().remaining, bound.peek().remaining], [98, 98])
  pros.clear()
  assert.equal(bound.take().remaining, 7)
})

test('the own policy of now leads to the own account, whatever it was updated from', () => {
  const plan = (limit: number): Policy => tokenBucket({ limit, window: '10s', burst: 10, name: 'free' })
  for (const policies of [undefined, [PRO]]) {
    let now = plan(10)
    const limiter = createLimiter(plan(10), { clock: manualClock(1_789_000_000_000), policyFor: () => now, ...(policies && { policies }) })
    limiter.take('k', 10)
    for (const limit of [20, 30, 20]) {
      now = plan(limit)
      limiter.update(plan(limit))
      const { allowed, limit: reported } = limiter.take('k')
      assert.deepEqual([allowed, reported], [false, limit])
    }
    assert.equal(limiter.stats().keys, 1)
  }
})

test('stats are those of all policies together', () => {
  const limiter = tiered({ maxKeys: 100 })
  const alone = limiter.stats().memoryBytes
  for (const key of ['p1', 'p2', 'h1', 'x']) limiter.take(key)
  assert.deepEqual([limiter.stats().keys, limiter.stats().memoryBytes], [4, 3 * alone])
})

test('hot keys are those of all policies together, highest first, a key that changed its policy once', () => {
  let isPro = true
  const limiter = tiered({ hotKeys: 10, policyFor: (key) => (key === 'k' && isPro ? PRO : policyFor(key)) })
  for (let i = 0; i < 12; i++) limiter.take('x')
  for (let i = 0; i < 9; i++) limiter.take('k')
  for (let i = 0; i < 11; i++) limiter.take('p')
  isPro = false
  for (let i = 0; i < 5; i++) limiter.take('k')
  const counts = (keys: readonly { key: string; count: number }[]) => keys.map(({ key, count }) => [key, count])
  assert.deepEqual(counts(limiter.hotKeys().demand), [
    ['k', 14],
    ['x', 12],
    ['p', 11],
  ])
  assert.deepEqual(counts(limiter.hotKeys(1).demand), [['k', 14]])
  assert.deepEqual(counts(limiter.hotKeys().denials), [
    ['k', 4],
    ['x', 2],
  ])
})

test('what is not known of a hot key adds up too', () => {
  let isPro = false
  const limiter = tiered({ hotKeys: 1, policyFor: () => (isPro ? PRO : undefined) })
  for (isPro of [false, true]) for (const key of ['x', 'k']) limiter.take(key)
  assert.deepEqual(limiter.hotKeys().demand, [{ key: 'k', count: 4, overcount: 2 }])
})

test('close closes all policies, those never asked for included', () => {
  const limiter = tiered()
  limiter.take('p')
  limiter.close()
  for (const key of ['p', 'h', 'x']) assert.throws(() => limiter.take(key), { code: 'CLOSED' })
  for (const call of [() => limiter.stats(), () => limiter.handle(), () => limiter.policy]) assert.throws(call, { code: 'CLOSED' })
})

test('threads share the budgets of all policies that were named beforehand', () => {
  const limiter = tiered({ policies: [PRO, HUGE] })
  const attached = attachLimiter(structuredClone(limiter.handle()), { policyFor })
  for (const [key, limit] of [
    ['p', 100],
    ['h', 5000],
    ['f', 10],
    ['x', 10],
  ] as const) {
    assert.equal(attached.take(key, limit - 1).allowed, true)
    assert.deepEqual([limiter.take(key).remaining, attached.take(key).allowed], [0, false])
  }
  assert.equal(attachLimiter(structuredClone(attached.handle()), { policyFor }).take('p').allowed, false)
})

test('after an update the own policy is still known by its first name, in other threads too', () => {
  const limiter = tiered({ policies: [PRO, HUGE] })
  limiter.update(tokenBucket({ limit: 8, window: '1s' }))
  const attached = attachLimiter(structuredClone(limiter.handle()), { policyFor })
  attached.take('f', 8)
  assert.equal(limiter.take('f').allowed, false)
})

test('a limiter whose policies were not named beforehand does not leave its thread', () => {
  const limiter = tiered()
  limiter.take('p')
  assert.throws(() => limiter.handle(), { name: 'PolicyError', code: 'OPTION_INVALID', option: 'policies' })
})

test('policyFor does not travel, and comes only to a limiter that has it', () => {
  const handle = tiered({ policies: [PRO] }).handle()
  assert.throws(() => attachLimiter(handle), { code: 'OPTION_INVALID', option: 'policyFor' })
  assert.throws(() => attachLimiter(createLimiter(FREE).handle(), { policyFor }), { code: 'OPTION_INVALID', option: 'policyFor' })
})

test('policyFor returns nothing that was not named, where names were given', () => {
  const limiter = tiered({ policies: [PRO] })
  assert.equal(limiter.take('p').policy, 'pro')
  assert.throws(() => limiter.take('h'), { name: 'PolicyError', code: 'POLICY_INVALID', option: 'policyFor' })
})

test('what policyFor returns is a policy or undefined', () => {
  for (const wrong of [null, 'pro', {}, 5, Promise.resolve(PRO)]) {
    const limiter = tiered({ policyFor: () => wrong as never })
    assert.throws(() => limiter.take('k'), { name: 'PolicyError', code: 'POLICY_INVALID', option: 'policyFor' })
  }
})

test('a thousand policies are the most that policyFor may return', () => {
  const own = createLimiter(FREE, { maxKeys: 1 })
  let made = 0
  const limiter = tieredInMemory({
    own,
    ownAs: [FREE],
    tiers: [],
    clock: manualClock(),
    policyFor: (key) => tokenBucket({ limit: Number(key), window: '1s' }),
    make: () => {
      made++
      return own
    },
  })
  for (let i = 1; i <= 1000; i++) limiter.take(String(i))
  assert.throws(() => limiter.take('1001'), { name: 'PolicyError', code: 'POLICY_INVALID', option: 'policyFor' })
  assert.deepEqual([limiter.take('7').policy, made], ['free', 1000])
})

test('permits come from all policies or from none', () => {
  const slots = concurrency({ limit: 2 })
  assert.throws(() => tiered({ policies: [PRO, slots] }), { code: 'POLICY_INVALID', option: 'policies[1]' })
  const limiter = tiered({ policyFor: () => slots })
  assert.throws(() => limiter.take('k'), { code: 'POLICY_INVALID', option: 'policyFor' })
})

test('several keys in one call are refused: policies of their own would share no budget', async () => {
  const limiter = tiered()
  assert.throws(() => limiter.take(['p', 'f']), { code: 'KEY_INVALID', option: 'key' })
  await assert.rejects(limiter.wait(['p', 'f']), { code: 'KEY_INVALID', option: 'key' })
  for (const key of ['', 5, null, undefined]) assert.throws(() => limiter.take(key as string), { code: 'KEY_INVALID', option: 'key' })
})

test('bad options are refused before anything is made', () => {
  const cases: readonly (readonly [object, string, string])[] = [
    [{ policyFor: PRO }, 'OPTION_INVALID', 'policyFor'],
    [{ policyFor: null }, 'OPTION_INVALID', 'policyFor'],
    [{ policyFor: undefined, policies: [PRO] }, 'OPTION_INVALID', 'policies'],
    [{ policies: PRO }, 'OPTION_INVALID', 'policies'],
    [{ policies: Array.from({ length: 1001 }, () => PRO) }, 'OPTION_INVALID', 'policies'],
    [{ policies: [PRO, 'pro'] }, 'POLICY_INVALID', 'policies[1]'],
  ]
  for (const [options, code, option] of cases) assert.throws(() => tiered(options), { name: 'PolicyError', code, option })
})

test('lists and shadow come first: a tier hears of no listed key, and its denials pass', () => {
  const limiter = tiered({ policies: [PRO, HUGE], allow: ['p friend'], deny: ['foe'], shadow: true })
  assert.deepEqual([limiter.take('p friend', 500).remaining, limiter.take('p friend').policy], [100, 'pro'])
  assert.deepEqual([limiter.take('foe').allowed, limiter.take('foe').wouldDeny, limiter.stats().keys], [true, true, 0])
  limiter.take('p', 100)
  assert.equal(limiter.take('p').wouldDeny, true)
  const attached = attachLimiter(structuredClone(limiter.handle()), { policyFor })
  assert.deepEqual([attached.take('p').wouldDeny, attached.take('foe').wouldDeny, attached.take('p friend').remaining], [true, true, 100])
})

for (const make of [tokenBucket, gcra, fixedWindow, slidingWindow, slidingLog]) {
  test(`a key whose policy changes takes along what it has spent: ${make.name}`, () => {
    const clock = manualClock(1_789_000_000_000)
    const [large, small] = [make({ limit: 1_000, window: '1h' }), make({ limit: 5, window: '1h' })]
    const tiers = new Map<string, Policy>([['k', large]])
    const limiter = createLimiter(small, { clock, policyFor: (key) => tiers.get(key) })
    assert.equal(limiter.take('k', 300).allowed, true)
    tiers.delete('k')
    const denied = limiter.take('k')
    assert.equal(denied.allowed, false)
    assert.ok(denied.retryAfterMs <= 3_600_000, `closed for ${denied.retryAfterMs} ms`)
    assert.deepEqual(limiter.block('k', '3h').retryAfterMs, 3 * 3_600_000)
    tiers.set('k', large)
    assert.equal(limiter.take('k').allowed, false, 'the block goes along')
    assert.equal(limiter.reset('k').remaining, 1_000)
    limiter.take('k', 2)
    tiers.delete('k')
    assert.equal(limiter.peek('k').remaining, 3)
  })
}

for (const make of [tokenBucket, gcra, fixedWindow, slidingWindow, slidingLog]) {
  const [free, pro] = [make({ limit: 10, window: '1h' }), make({ limit: 1_000, window: '1h' })]
  function moving() {
    const clock = manualClock(1_789_000_000_000)
    let policy = free
    const limiter = createLimiter(free, { clock, policyFor: () => policy })
    const move = (to: Policy): number => {
      policy = to
      return limiter.peek('k').remaining
    }
    return { clock, limiter, move }
  }

  test(`a charge follows its key to another policy, and back comes what it still owes there: ${make.name}`, () => {
    const { limiter, move } = moving()
    const [called, cheap, dear] = [limiter.reserve('k', 4), limiter.reserve('k', 3), limiter.reserve('k', 2)]
    assert.equal(move(pro), 991)
    // Of a log the newest comes back.
    assert.equal(dear.settle(5).remaining, 988)
    if (make === slidingLog) return
    assert.equal(cheap.settle(1).remaining, 990)
    assert.equal(called.cancel().remaining, 994)
    assert.equal(called.cancel().remaining, 994)
    const there = limiter.reserve('k', 20)
    assert.equal(move(pro), 974)
    assert.equal(there.cancel().remaining, 994)
  })

  test(`the newest charge follows its key twice, and none that it had before it came back: ${make.name}`, () => {
    const { clock, limiter, move } = moving()
    const first = limiter.reserve('k', 2)
    clock.advance(1)
    move(pro)
    clock.advance(1)
    move(free)
    clock.advance(1)
    assert.equal(limiter.reserve('k', 3).cancel().remaining, 8)
    assert.equal(first.cancel().remaining, 8)
    const second = limiter.reserve('k', 3)
    clock.advance(1)
    move(pro)
    assert.equal(second.cancel().remaining, 998)
  })

  // A log keeps its requests, and forgives nothing.
  if (make === slidingLog) continue

  test(`of a charge whose key was forgiven something on its way nothing comes back: ${make.name}`, () => {
    const { limiter, move } = moving()
    move(pro)
    const reserved = limiter.reserve('k', 50)
    assert.equal(move(free), 0)
    assert.equal(reserved.cancel().remaining, 0)
    assert.equal(move(pro), 990)
    assert.equal(limiter.stats().keys, 1)
  })
}

test('of a bucket that refills in two tiers what has refilled in either of them does not come back', () => {
  const clock = manualClock(1_789_000_000_000)
  let policy = tokenBucket({ limit: 60, window: '1m' })
  const limiter = createLimiter(policy, { clock, policyFor: () => policy })
  const reserved = limiter.reserve('k', 50)
  clock.advance(10_000)
  policy = tokenBucket({ limit: 120, window: '1m' })
  assert.equal(limiter.peek('k').remaining, 80)
  clock.advance(5_000)
  limiter.take('k', 10)
  assert.equal(limiter.peek('k').remaining, 80)
  // 50 - 10 - 10 = 30 are still owed for it.
  assert.equal(reserved.cancel().remaining, 110)
})

for (const make of [tokenBucket, fixedWindow]) {
  test(`of a key that comes from two limiters, and has spent more than there is room for, nothing comes back: ${make.name}`, () => {
    const clock = manualClock(1_789_000_000_000)
    const [one, other, to] = [10, 10, 12].map((limit) => createLimiter(make({ limit, window: '1h' }), { clock })) as [
      Limiter,
      Limiter,
      Limiter,
    ]
    const reserved = one.reserve('k', 8)
    other.take('k', 8)
    assert.equal(carryKey([one, other], to, 'k'), true)
    assert.equal(to.peek('k').remaining, 0)
    assert.equal(reserved.cancel().remaining, 0)
  })
}

test('work keeps its hold when its key goes to another policy, and comes back before its next piece', () => {
  let policy: Policy | undefined
  const limiter = createLimiter(tokenBucket({ limit: 100, window: '1d' }), { clock: manualClock(0), policyFor: () => policy })
  const work = limiter.open('k', { expect: 60 })
  policy = tokenBucket({ limit: 200, window: '1d' })
  assert.equal(limiter.peek('k').remaining, 140)
  policy = undefined
  assert.equal(limiter.take('k', 40).allowed, true)
  assert.deepEqual([work.add(50), work.held], [true, 10])
  work.close()
  assert.equal(limiter.peek('k').remaining, 10)
})

test('a charge under several policies follows by each of them', () => {
  const both = (minute: number, hour: number): Policy =>
    allOf([tokenBucket({ limit: minute, window: '1m', name: 'minute' }), fixedWindow({ limit: hour, window: '1h', name: 'hour' })])
  let policy = both(10, 20)
  const limiter = createLimiter(policy, { clock: manualClock(0), policyFor: () => policy })
  const [cheap, dear] = [limiter.reserve('k', 4), limiter.reserve('k', 2)]
  policy = both(100, 200)
  const left = () => limiter.peek('k').parts?.map(({ remaining }) => remaining)
  assert.deepEqual(left(), [94, 194])
  dear.settle(3)
  assert.deepEqual(left(), [93, 193])
  cheap.cancel()
  assert.deepEqual(left(), [97, 197])
})

test('a key of several policies takes each of them along by its name, and by its place where all names are others', () => {
  const both = (minute: number, hour: number, names: readonly string[]): Policy =>
    allOf([
      tokenBucket({ limit: minute, window: '1m', ...(names[0] && { name: names[0] }) }),
      tokenBucket({ limit: hour, window: '1h', ...(names[1] && { name: names[1] }) }),
    ])
  let policy = both(50, 500, ['minute', 'hour'])
  const limiter = createLimiter(policy, { clock: manualClock(0), policyFor: () => policy })
  limiter.take('k', 40)
  const left = () => limiter.peek('k').parts?.map(({ remaining }) => remaining)
  policy = both(700, 60, ['hour', 'minute'])
  assert.deepEqual(left(), [660, 20])
  policy = allOf([tokenBucket({ limit: 60, window: '1m', name: 'minute' }), tokenBucket({ limit: 7, window: '1d', name: 'day' })])
  assert.deepEqual(left(), [20, 7])

  policy = both(50, 500, [])
  const unnamed = createLimiter(policy, { clock: manualClock(0), policyFor: () => policy })
  unnamed.take('k', 30)
  policy = both(100, 20, [])
  assert.deepEqual(
    unnamed.peek('k').parts?.map(({ remaining }) => remaining),
    [70, 0],
  )
})

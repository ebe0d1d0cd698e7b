import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, seedsFrom, shortOrLong } from 'sluicegate-testkit'
import {
  createLimiter,
  type Decision,
  fixedWindow,
  gcra,
  type Hold,
  type Limiter,
  levels,
  type ManualClock,
  manualClock,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../index.js'

const START_MS = 1_789_000_000_000
const HISTORIES = shortOrLong(60, 600)
const STEPS = 120
const LEVELS = ['org', 'team', 'user'] as const
const KEYS = [
  ['acme', 'globex'],
  ['math', 'law', 'art'],
  ['ada', 'bob'],
] as const
const MAKERS = [tokenBucket, gcra, fixedWindow, slidingWindow, slidingLog] as const

type Keys = readonly [string, string, string]

/** What levels with plans must answer: of each key of each level a limiter of its own, which is updated when the key is next asked about. */
class Reference {
  private readonly limiters = new Map<string, Limiter>()
  private readonly policyOf: (level: number, key: string) => Policy
  private readonly clock: ManualClock

  constructor(policyOf: (level: number, key: string) => Policy, clock: ManualClock) {
    this.policyOf = policyOf
    this.clock = clock
  }

  of(keys: Keys): readonly { readonly limiter: Limiter; readonly key: string }[] {
    return keys.map((key, level) => {
      const policy = this.policyOf(level, key)
      const id = `${level} ${key}`
      const limiter = this.limiters.get(id) ?? createLimiter(policy, { clock: this.clock, maxKeys: 16 })
      this.limiters.set(id, limiter)
      if (JSON.stringify(limiter.policy) !== JSON.stringify(policy)) limiter.update(policy)
      return { limiter, key }
    })
  }

  close(): void {
    for (const limiter of this.limiters.values()) limiter.close()
  }
}

interface Work {
  readonly keys: Keys
  readonly hold: Hold
  readonly parts: readonly Hold[]
}

function historyOf(seed: number): void {
  const random = new Random(seed)
  const clock = manualClock(START_MS)
  const makers = LEVELS.map(() => random.pick(MAKERS))
  const policy = (level: number): Policy =>
    (makers[level] as typeof fixedWindow)({ limit: random.integer(10, 60), window: '4s', name: LEVELS[level] as string })
  const own = [0, 1, 2].map(policy)
  const choices = [0, 1, 2].map((level) => Array.from({ length: random.integer(0, 3) }, () => policy(level)))
  const plans = new Map<string, Policy>()
  const planOf = (level: number) => (key: string) => plans.get(`${level} ${key}`)
  const limiter = createLimiter(levels({ org: own[0] as Policy, team: own[1] as Policy, user: own[2] as Policy }), {
    clock,
    maxKeys: 64,
    policyFor: { org: planOf(0), team: planOf(1), user: planOf(2) },
  })
  const reference = new Reference((level, key) => planOf(level)(key) ?? (own[level] as Policy), clock)
  let works: Work[] = []
  const seen = (decisions: readonly Decision[]): unknown =>
    decisions.map(({ allowed, limit, remaining, retryAfterMs, resetAfterMs }) => ({
      allowed,
      limit,
      remaining,
      retryAfterMs,
      resetAfterMs,
    }))
  const step = (i: number): void => {
    const keys = KEYS.map((all) => random.pick(all)) as unknown as Keys
    const cost = random.integer(1, 12)
    const what = random.fraction()
    const where = `seed ${seed}, step ${i}`
    if (what < 0.2) {
      const level = random.integer(0, 2)
      const choice = random.pick([undefined, ...(choices[level] as Policy[])])
      const id = `${level} ${random.pick(KEYS[level] as readonly string[])}`
      if (choice === undefined) plans.delete(id)
      else plans.set(id, choice)
    } else if (what < 0.35) clock.advance(random.integer(0, 900))
    else if (what < 0.4) {
      for (const { limiter: one, key } of reference.of(keys)) one.penalize(key, cost)
      limiter.penalize(keys, cost)
    } else if (what < 0.43) {
      for (const { limiter: one, key } of reference.of(keys)) one.refund(key, cost)
      limiter.refund(keys, cost)
    } else if (what < 0.45) {
      for (const { limiter: one, key } of reference.of(keys)) one.reset(key)
      limiter.reset(keys)
    } else if (what < 0.65) {
      const all = reference.of(keys)
      const foreseen = all.map(({ limiter: one, key }) => one.peek(key, cost))
      const allowed = foreseen.every((decision) => decision.allowed)
      const taken = limiter.take(keys, cost)
      assert.equal(taken.allowed, allowed, `take of ${cost}, ${where}`)
      if (allowed) for (const { limiter: one, key } of all) one.take(key, cost)
    } else if (what < 0.72) {
      const all = reference.of(keys)
      const allowed = all.every(({ limiter: one, key }) => one.peek(key, cost).allowed)
      const options = { expect: cost, ttl: random.pick(['1s', '3s'] as const) }
      const hold = limiter.open(keys, options)
      assert.equal(hold.allowed, allowed, `open of ${cost}, ${where}`)
      if (allowed) works.push({ keys, hold, parts: all.map(({ limiter: one, key }) => one.open(key, options)) })
    } else if (what < 0.85 && works.length > 0) {
      const { keys: of, hold, parts } = random.pick(works)
      reference.of(of)
      const fits = parts.every((part) => part.affordable(1) >= cost)
      assert.equal(hold.add(cost), fits, `add of ${cost}, ${where}`)
      if (fits) for (const part of parts) part.add(cost)
    } else if (works.length > 0) {
      const work = random.pick(works)
      reference.of(work.keys)
      const total = work.hold.used + cost
      for (const part of [work.hold, ...work.parts]) part.close(total)
      works = works.filter((each) => each !== work)
    }
    const looked = random.chance(0.7) ? keys : (KEYS.map((all) => all[0]) as unknown as Keys)
    const expected = reference.of(looked).map(({ limiter: one, key }) => one.peek(key, cost))
    assert.deepEqual(seen(limiter.peek(looked, cost).parts ?? []), seen(expected), `peek of ${looked}, ${where}`)
  }
  try {
    for (let i = 0; i < STEPS; i++) step(i)
  } finally {
    limiter.close()
    reference.close()
  }
}

test(`levels with plans in memory answer as one limiter for each key of each level does that is updated, in ${HISTORIES} random histories`, () => {
  for (const seed of seedsFrom(1, HISTORIES)) historyOf(seed)
})

const OWN = levels({
  org: tokenBucket({ limit: 10, window: '1m' }),
  team: fixedWindow({ limit: 4, window: '1h' }),
  user: tokenBucket({ limit: 100, window: '1m' }),
})
const PRO = fixedWindow({ limit: 8, window: '1h' })

function planned(options: object = {}) {
  const clock = manualClock(START_MS)
  const plans = new Map<string, Policy>()
  const limiter = createLimiter(OWN, { clock, maxKeys: 16, policyFor: { team: (id: string) => plans.get(id) }, ...options })
  return { clock, plans, limiter }
}

test('who waits while the plan of a key that they share changes is charged under that plan, with what others took meanwhile', async () => {
  const { clock, plans, limiter } = planned()
  limiter.take(['acme', 'law', 'eve'], 4)
  limiter.take(['acme', 'art', 'eve'], 4)
  limiter.take(['acme', 'music', 'eve'], 2)
  const waiting = limiter.wait(['acme', 'math', 'ada'], { cost: 3 })
  plans.set('math', PRO)
  assert.equal(limiter.take(['globex', 'math', 'bob'], 4).allowed, true)
  clock.advance(18_000)
  assert.equal((await waiting).allowed, true)
  assert.equal(limiter.peek(['globex', 'math', 'bob']).remaining, 1)
  plans.delete('math')
  assert.equal(limiter.take(['globex', 'math', 'bob']).allowed, false)
  limiter.close()
})

test('what is settled, and a hold, follow their keys to another plan', () => {
  const { plans, limiter } = planned()
  const key = ['acme', 'math', 'ada']
  const reservation = limiter.reserve(key, 3)
  const work = limiter.open(key, { expect: 1 })
  assert.deepEqual([reservation.allowed, work.allowed], [true, true])
  plans.set('math', PRO)
  assert.deepEqual([work.add(1), work.held], [true, 0])
  assert.equal(limiter.peek(key).remaining, 4)
  reservation.settle(1)
  const [org, team] = limiter.peek(key).parts ?? []
  assert.deepEqual([org?.remaining, team?.remaining], [8, 6])
  work.close()
  limiter.close()
})

test('a plan that is another one at each question gives no key a second budget', () => {
  const [one, other] = (['1h', '2h'] as const).map((window) => tokenBucket({ limit: 10, window })) as [Policy, Policy]
  let asked = 0
  const plan = (): Policy => (asked++ % 2 === 0 ? one : other)
  const limiter = createLimiter(OWN, { clock: manualClock(START_MS), policyFor: { user: plan } })
  const work = Array.from({ length: 3 }, (_, i) => limiter.open([`org ${i}`, `team ${i}`, 'ada'], { expect: 1 }))
  for (const hold of work) hold.add(1)
  let granted = work.reduce((sum, { used }) => sum + used, 0)
  for (let i = 0; i < 30; i++) if (limiter.take([`org ${i}`, `team ${i}`, 'ada']).allowed) granted++
  assert.equal(granted, 10)
  limiter.close()
})

test('jobs, bound keys and lists work beside plans', async () => {
  const { plans, limiter } = planned({ deny: ['mallory'] })
  plans.set('math', PRO)
  const key = ['acme', 'math', 'ada']
  const bound = limiter.key(key)
  assert.equal(bound.take(3).allowed, true)
  assert.equal(await limiter.run(key, () => 'done', { cost: 2 }), 'done')
  assert.deepEqual([bound.peek().remaining, bound.peek().limit], [3, 8])
  plans.delete('math')
  assert.equal(bound.take().allowed, false)
  assert.equal(limiter.take(['acme', 'math', 'mallory']).retryAfterMs, Number.POSITIVE_INFINITY)
  limiter.close()
})

test('soft limits are those of the plan of a key', () => {
  const { plans, limiter } = planned({ soft: { team: ['50%'] } })
  plans.set('math', PRO)
  assert.equal(limiter.take(['acme', 'math', 'ada'], 3).soft, undefined)
  assert.deepEqual(limiter.take(['acme', 'math', 'ada']).soft, ['team'])
  assert.deepEqual(limiter.take(['acme', 'law', 'ada'], 2).soft, ['team'])
  limiter.close()
})

test('counters are of all plans, and an update of a level is felt under it', () => {
  const { plans, limiter } = planned()
  const before = limiter.stats().memoryBytes
  plans.set('math', PRO)
  limiter.take(['acme', 'math', 'ada'], 3)
  limiter.take(['acme', 'law', 'ada'])
  const { keys, decisions, memoryBytes } = limiter.stats()
  assert.deepEqual([keys, Object.values(decisions).map(({ allowed }) => allowed)], [4, [2]])
  assert.ok(memoryBytes > before && memoryBytes < before + 500_000, `${memoryBytes} bytes after ${before}`)
  limiter.update(levels({ org: tokenBucket({ limit: 3, window: '1m' }), team: PRO, user: tokenBucket({ limit: 100, window: '1m' }) }))
  const denied = limiter.take(['acme', 'math', 'ada'])
  assert.deepEqual([denied.allowed, denied.policy], [false, 'org'])
  limiter.close()
})

test('levels in another order keep their plans', () => {
  const { plans, limiter } = planned()
  plans.set('math', PRO)
  limiter.take({ org: 'acme', team: 'math', user: 'ada' }, 6)
  const [org, team, user] = OWN.policies as [Policy, Policy, Policy]
  limiter.update(levels({ team, user, org }))
  const { parts = [] } = limiter.peek({ org: 'acme', team: 'math', user: 'ada' })
  assert.deepEqual(
    parts.map(({ policy, remaining }) => [policy, remaining]),
    [
      ['team', 2],
      ['user', 94],
      ['org', 4],
    ],
  )
  limiter.close()
})

test('worker threads and snapshots of plans are refused, with what to do', () => {
  const { limiter } = planned()
  assert.throws(() => limiter.handle(), { code: 'OPTION_INVALID', message: /policyFor: .* over a store/ })
  assert.throws(() => limiter.snapshot(), { code: 'OPTION_INVALID', message: /policyFor: .* store/ })
  limiter.close()
})

test('a thousand plans in all, with tables of their own, and not one more', () => {
  let limit = 10
  const { limiter } = planned({
    maxKeys: undefined,
    policyFor: { team: () => fixedWindow({ limit, window: '1h' }), user: () => tokenBucket({ limit, window: '1m' }) },
  })
  for (let i = 0; i < 500; i++) {
    limit++
    assert.equal(limiter.take(['acme', 'math', 'ada'], 10).allowed, i === 0)
  }
  limit++
  assert.throws(() => limiter.take(['acme', 'math', 'ada']), {
    code: 'POLICY_INVALID',
    message: /policyFor\.\w+: must return at most 1000 different policies in all/,
  })
  limiter.close()
})

test('work of a hundred plans is open at the same time: no plan takes the memory that the next one needs', () => {
  const plans = Array.from({ length: 100 }, (_, i) => fixedWindow({ limit: 1000 + i, window: '1h' }))
  const limiter = createLimiter(OWN, { clock: manualClock(START_MS), policyFor: { team: (id: string) => plans[Number(id)] } })
  const refused = plans.flatMap((_, i) => (limiter.open([`org ${i}`, String(i), `user ${i}`], { expect: 1 }).allowed ? [] : [i]))
  assert.deepEqual(refused, [])
  limiter.close()
})

/** Of a function of plans, and the same as `policyFor` of single keys. */
const FAULTY = [
  ['plans', ['acme', 'math', 'ada'], (planOf: () => Policy | undefined) => ({ policyFor: { team: planOf } })],
  ['policyFor', 'ada', (policyFor: () => Policy | undefined) => ({ policyFor })],
] as const
const BROKEN: Readonly<Record<string, () => unknown>> = {
  'that throws': () => {
    throw new Error('no such customer')
  },
  'that returns nonsense': () => ({ limit: 5 }),
  'that returns a promise': async () => PRO,
}

for (const [option, key, optionsOf] of FAULTY) {
  for (const [how, broken] of Object.entries(BROKEN)) {
    test(`${option} ${how}: take, open and wait say so, and open work goes on under the plan that its key has`, async () => {
      const clock = manualClock(START_MS)
      let planOf: () => unknown = () => PRO
      const own = option === 'plans' ? OWN : fixedWindow({ limit: 5, window: '1h' })
      const options = { clock, ...optionsOf(() => planOf() as Policy), soft: ['50%'] }
      const limiter = createLimiter(own, { ...options, soft: option === 'plans' ? { team: ['50%'] } : ['50%'] } as object)
      const work = limiter.open(key, { expect: 2 })
      const unused = limiter.open(key, { expect: 1, ttl: '5s' })
      const waits = limiter.open(key, { expect: 1, over: 'wait' })
      planOf = broken
      const clear = /no such customer|policyFor(\.team)?: /
      assert.throws(() => limiter.take(key), clear)
      assert.throws(() => limiter.open(key), clear)
      await assert.rejects(limiter.wait(key), clear)
      assert.deepEqual([work.held, work.add(1), work.held, work.affordable(1)], [2, true, 1, 5])
      assert.equal(work.add(4), true)
      assert.deepEqual([work.used, work.add(3)], [5, false])
      const waiting = waits.add(3)
      assert.equal(unused.held, 1)
      unused.close()
      assert.equal(await waiting, true)
      assert.equal(work.close(6).remaining, 0)
      planOf = () => PRO
      assert.equal(limiter.peek(key).remaining, 0)
      limiter.close()
    })
  }
}

for (const [option, optionsOf] of [
  ['plans', (planOf: (key: string) => Policy | undefined) => ({ policyFor: { user: planOf } })],
  ['policyFor', (policyFor: (key: string) => Policy | undefined) => ({ policyFor })],
] as const) {
  test(`${option}: where 10,000 later keys have moved, a key keeps what it has spent and its open work, and nothing comes back that may not be its own`, () => {
    const own = fixedWindow({ limit: 10, window: '1h', name: 'user' })
    const pro = fixedWindow({ limit: 20, window: '1h', name: 'user' })
    const movers = new Set<string>()
    const clock = manualClock(START_MS)
    const whole = option === 'plans' ? levels({ org: fixedWindow({ limit: 1_000_000, window: '1h' }), user: own }) : own
    const limiter = createLimiter(whole, { clock, maxKeys: 40_000, ...optionsOf((key) => (movers.has(key) ? pro : undefined)) })
    const keyOf = (user: string) => (option === 'plans' ? ['acme', user] : user)
    const [ada, eve] = [keyOf('ada'), keyOf('eve')]
    const [less, more, back] = [limiter.reserve(ada, 2), limiter.reserve(ada, 2), limiter.reserve(eve, 5)]
    const work = limiter.open(ada, { expect: 3, ttl: '1m' })
    movers.add('ada').add('eve')
    for (const key of [ada, eve]) limiter.peek(key)
    movers.delete('eve')
    limiter.peek(eve)
    for (let i = 0; i < 10_001; i++) limiter.take(keyOf(`user ${i}`))
    clock.advance(1)
    for (let i = 0; i < 10_001; i++) {
      movers.add(`user ${i}`)
      limiter.peek(keyOf(`user ${i}`))
    }
    less.settle(0)
    more.settle(6)
    back.settle(0)
    assert.deepEqual([work.add(3), work.held], [true, 0])
    assert.equal(limiter.peek(eve).remaining, 5)
    assert.equal(limiter.peek(ada).remaining, 20 - 7)
    movers.delete('ada')
    assert.equal(limiter.peek(ada).remaining, 10 - 7)
    work.close()
    limiter.close()
  })
}

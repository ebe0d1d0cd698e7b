import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Random, seedsFrom } from 'sluicegate-testkit'
import { microtasks } from 'sluicegate-testkit/turns.js'
import type { Decision } from '../decision/decision.js'
import type { AnyHold } from '../holds/metered.js'
import { createLimiter, credits, firstOf, fixedWindow, levels, manualClock, StoreError, tokenBucket } from '../index.js'
import { Middleware, type Pass } from '../middleware/middleware.js'
import { casStore } from '../store/index.js'
import { memoryStore } from '../store-testing/index.js'

const START_MS = 1_789_000_020_000

function made({ plan = 10, prepaid = 100 } = {}) {
  const clock = manualClock(START_MS)
  const ofPlan = createLimiter(fixedWindow({ limit: plan, window: '1m', name: 'plan' }), { clock })
  const ofCredits = createLimiter(credits({ limit: prepaid, name: 'credits' }), { clock })
  return { clock, plan: ofPlan, credits: ofCredits, limiter: firstOf([ofPlan, ofCredits]) }
}

test('credits never come back by themselves, and a top-up is a refund', async () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(credits({ limit: 100 }), { clock })
  assert.deepEqual([limiter.policy.name, limiter.take('ada', 100).resetAfterMs], ['credits-100', Number.POSITIVE_INFINITY])
  clock.advance(40 * 366 * 86_400_000)
  const denied = limiter.take('ada')
  assert.deepEqual([denied.allowed, denied.retryAfterMs, denied.remaining], [false, Number.POSITIVE_INFINITY, 0])
  assert.equal((await limiter.wait('ada')).allowed, false, 'waiting does not help')
  assert.equal(limiter.reserve('ada', 1).allowed, false, 'and nothing is booked for a day that never comes')
  assert.equal(limiter.refund('ada', 30).remaining, 30)
  assert.equal(limiter.refund('ada', 1_000).remaining, 100, 'at most the limit')
  assert.equal(limiter.penalize('bob', 100).remaining, 0, 'an account that begins with nothing')
})

test('a cost is charged to the first source that has room for it, and the decision says which', async () => {
  const { limiter, plan, credits: prepaid, clock } = made()
  const charged = async (cost: number) => {
    const { allowed, policy } = await limiter.take('ada', cost)
    return `${allowed} ${policy}`
  }
  assert.equal(await charged(8), 'true plan')
  assert.equal(await charged(3), 'true credits', 'no cost is split')
  assert.equal(await charged(2), 'true plan')
  assert.deepEqual([plan.peek('ada').remaining, prepaid.peek('ada').remaining], [0, 97])
  assert.equal(await charged(98), 'false plan', 'neither ever passes it: the first answers')
  prepaid.take('ada', 97)
  const denied = await limiter.take('ada', 5)
  assert.deepEqual([denied.allowed, denied.policy, denied.retryAfterMs > 0 && denied.retryAfterMs <= 60_000], [false, 'plan', true])
  prepaid.refund('ada', 50)
  assert.equal(await charged(5), 'true credits', 'a top-up')
  clock.advance(denied.retryAfterMs)
  assert.equal(await charged(5), 'true plan', 'the plan comes first again')
})

test('work goes on at the next source, and its true cost is spent there', async () => {
  const { limiter, plan, credits: prepaid } = made()
  const work = (await limiter.open('ada', { expect: 6, over: 'finish' })) as AnyHold
  assert.deepEqual([work.policy, work.held, work.affordable(1)], ['plan', 6, 110])
  for (let i = 0; i < 10; i++) assert.equal(await work.add(1), true)
  assert.deepEqual([plan.peek('ada').remaining, prepaid.peek('ada').remaining], [0, 100], 'never debt of the plan')
  assert.equal(await work.add(7), true)
  assert.deepEqual([work.used, work.over, plan.peek('ada').spent ?? 10], [17, 0, 10])
  await work.close(25)
  assert.deepEqual([plan.peek('ada').remaining, prepaid.peek('ada').remaining, work.used, work.held], [0, 85, 25, 0])
  assert.equal(await work.add(1), false)
  const bounded = (await limiter.open('bob', { expect: 5, most: 12 })) as AnyHold
  assert.deepEqual([await bounded.add(8), await bounded.add(4), await bounded.add(1), bounded.used], [true, true, false, 12])
  assert.equal((await limiter.open('eve', { expect: 101 })).allowed, false)
})

test('jobs, waits, reservations and requests spend of several sources', async () => {
  const { limiter, plan, credits: prepaid, clock } = made({ prepaid: 20 })
  assert.equal(await limiter.run('ada', (job) => job.settle(4).then(() => job.decision.policy), { cost: 10 }), 'plan')
  assert.deepEqual([plan.peek('ada').remaining, prepaid.peek('ada').remaining], [6, 20])
  const reserved = await limiter.reserve('ada', 12)
  assert.deepEqual([reserved.allowed, reserved.waitMs, reserved.decision.policy], [true, 0, 'credits'])
  await reserved.settle(2)
  assert.equal(prepaid.peek('ada').remaining, 18)
  limiter.take('ada', 6)
  prepaid.take('ada', 18)
  const waits = limiter.wait('ada', { cost: 2 })
  await microtasks(50)
  clock.advance(60_000)
  assert.equal((await waits).policy, 'plan')
  prepaid.refund('ada', 20)
  const middleware = new Middleware({ limiter, key: () => 'ada', cost: 9 } as never)
  const passed = (await middleware.handle({ method: 'GET', path: '/', header: () => undefined } as never, {})) as Pass
  assert.deepEqual(passed.headers[0], ['RateLimit-Policy', '"credits";q=20;w=8053063680'])
})

test('of keys by level each source takes those of its own levels', async () => {
  const clock = manualClock(START_MS)
  const plan = createLimiter(
    levels({ org: fixedWindow({ limit: 100, window: '1m' }), team: fixedWindow({ limit: 10, window: '1m' }) }, { name: 'plan' }),
    { clock },
  )
  const prepaid = createLimiter(levels({ team: credits({ limit: 50 }) }, { name: 'prepaid' }), { clock })
  const limiter = firstOf([plan, prepaid])
  const key = { org: 'acme', team: 'math' }
  await limiter.take(key, 8)
  assert.equal((await limiter.take(key, 20)).limit, 50)
  assert.deepEqual([plan.peek(key).remaining, prepaid.peek('math').remaining], [2, 30])
  const work = (await limiter.open(key, { expect: 1 })) as AnyHold
  for (let i = 0; i < 7; i++) assert.equal(await work.add(1), true)
  assert.equal(work.affordable(1), 25)
  await work.close()
  assert.deepEqual([plan.peek(key).remaining, prepaid.peek('math').remaining], [0, 25])
  await limiter.run(key, () => undefined, { cost: 5 })
  await limiter.wait(key, { cost: 5 })
  await (await limiter.reserve(key, 5)).settle(4)
  assert.equal(prepaid.peek('math').remaining, 11)
  await limiter.block(key, '1m')
  assert.equal(prepaid.peek('math').allowed, false)
  await limiter.reset(key)
  assert.equal(prepaid.peek('math').remaining, 50)
})

test('a source without levels, or with others, says what it needs of keys by level', () => {
  const plan = createLimiter(levels({ org: fixedWindow({ limit: 1, window: '1m' }), team: fixedWindow({ limit: 1, window: '1m' }) }))
  for (const policy of [credits({ limit: 5, name: 'prepaid' }), levels({ user: credits({ limit: 5 }) }, { name: 'prepaid' })]) {
    const limiter = firstOf([plan, createLimiter(policy)])
    assert.throws(
      () => limiter.take({ org: 'acme', team: 'math' }, 2),
      /^PolicyError: key: must be one string for 'prepaid', .* org, team: make it by levels/,
    )
    assert.throws(() => limiter.take({ org: 'acme' }, 2), { code: 'KEY_INVALID' })
    assert.equal((limiter.take('acme', 2) as Decision).allowed, true, 'one string is the key of all')
  }
})

test('a source that cannot be reached, and denies for that, spends no credits', async () => {
  const clock = manualClock(START_MS)
  const dead = { ...memoryStore({ clock }), read: () => Promise.reject(new Error('gone')), swap: () => Promise.reject(new Error('gone')) }
  const plan = createLimiter(fixedWindow({ limit: 10, window: '1m', name: 'plan' }), {
    store: casStore(dead as never),
    outage: 'closed',
    clock,
    mode: 'exact',
  })
  const prepaid = createLimiter(credits({ limit: 5, name: 'credits' }), { clock })
  const denied = await firstOf([plan, prepaid]).take('ada')
  assert.deepEqual([denied.allowed, denied.source, prepaid.peek('ada').remaining], [false, 'outage', 5])
})

test('what is no list of sources is refused', () => {
  const { plan } = made()
  for (const [sources, code] of [
    [[], 'OPTION_INVALID'],
    [plan, 'OPTION_INVALID'],
    [[plan, {}], 'OPTION_INVALID'],
    [[plan, plan], 'NAME_INVALID'],
  ] as const) {
    assert.throws(() => firstOf(sources as never), { name: 'PolicyError', code })
  }
  const closed = firstOf([createLimiter(credits({ limit: 1 }))])
  closed.close()
  assert.throws(
    () => closed.take('a'),
    (error) => error instanceof StoreError && error.code === 'CLOSED',
  )
})

type Fault = 'none' | 'both are charged' | 'a denied source is charged' | 'a top-up is lost'

/** Three processes spend of a plan and of credits in one store, while others top up: all that passed is what both sources have lost. */
async function mismatch(seed: number, fault: Fault): Promise<string | undefined> {
  const random = new Random(seed)
  const clock = manualClock(START_MS)
  const store = casStore(memoryStore({ clock }))
  const process = () => {
    const plan = createLimiter(tokenBucket({ limit: 20, window: '30d', name: 'plan' }), { store, clock, mode: 'exact' })
    const prepaid = createLimiter(credits({ limit: 400, name: 'credits' }), { store, clock })
    return { plan, prepaid, limiter: firstOf([plan, prepaid]) }
  }
  const processes = [process(), process(), process()]
  const [first] = processes as [ReturnType<typeof process>]
  /** Who lost a swap waits for a turn, on the clock. */
  const done = async <Value>(answer: Value | Promise<Value>): Promise<Value> => {
    let isOver = false
    const over = Promise.resolve(answer).finally(() => {
      isOver = true
    })
    while (!isOver) {
      clock.advance(1)
      await setImmediate()
    }
    return over
  }
  await done(first.prepaid.penalize('ada', 400))
  let toppedUp = 0
  const passed = { plan: 0, credits: 0 }
  const calls: Promise<unknown>[] = []
  for (let i = 0; i < 40; i++) {
    const { limiter, prepaid, plan } = random.pick(processes)
    const cost = random.integer(1, 6)
    if (random.chance(0.3)) {
      toppedUp += cost
      calls.push(fault === 'a top-up is lost' && i > 20 ? Promise.resolve() : Promise.resolve(prepaid.refund('ada', cost)))
      continue
    }
    calls.push(
      Promise.resolve(limiter.take('ada', cost)).then(async ({ allowed, policy }) => {
        if (allowed) passed[policy as 'plan' | 'credits'] += cost
        if (fault === 'both are charged' && allowed && policy === 'plan') await prepaid.take('ada', cost)
        if (fault === 'a denied source is charged' && policy === 'credits') await plan.penalize('ada', 1)
      }),
    )
    if (random.chance(0.3)) await done(calls.at(-1))
  }
  await done(Promise.all(calls))
  const left = { plan: await done(first.plan.peek('ada')), credits: await done(first.prepaid.peek('ada')) }
  for (const { limiter } of processes) limiter.close()
  const planSpent = left.plan.spent ?? 20 - left.plan.remaining
  if (planSpent !== passed.plan) return `plan ${planSpent} for ${passed.plan}`
  if (passed.plan > 20) return `plan over: ${passed.plan}`
  if (left.credits.remaining !== toppedUp - passed.credits) return `credits ${left.credits.remaining} for ${toppedUp - passed.credits}`
  return undefined
}

test('over a store, with top-ups that race, each cost is charged to one source, no source is over, and no top-up is lost', async () => {
  for (const seed of seedsFrom(1, 25)) assert.equal(await mismatch(seed, 'none'), undefined, `seed ${seed}`)
})

for (const fault of ['both are charged', 'a denied source is charged', 'a top-up is lost'] as const) {
  test(`sources of which ${fault} would be found`, async () => {
    let found = false
    for (const seed of seedsFrom(1, 10)) found ||= (await mismatch(seed, fault)) !== undefined
    assert.equal(found, true)
  })
}

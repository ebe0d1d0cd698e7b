import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { turns } from 'sluicegate-testkit/turns.js'
import type { Awaitable } from '../../awaitable.js'
import { createLimiter } from '../../create-limiter.js'
import { type Decision, fixedWindow, type Hold, levels, manualClock, type Policy, type SharedLimiter, tokenBucket } from '../../index.js'
import { casStore } from '../../store/cas.js'
import type { CasStore, CasSwap } from '../../store/cas-store.js'
import { StoreLanes } from '../../store/store-lanes.js'
import { SwapBackend } from '../../store/swap-backend.js'
import { TimedStore } from '../../store/timed-store.js'
import { memoryStore } from '../../store-testing/memory-store.js'
import type { Operation } from '../backend.js'

type Work = Hold<Awaitable<boolean>, 'later'>

const LIMIT = 100
const DAY = fixedWindow({ limit: LIMIT, window: '1d', name: 'day' })

function setUp(policy: Policy, outage: 'local' | 'open' | 'closed' = 'local', isTogether = true) {
  const clock = manualClock(1_700_006_400_000)
  const memory = memoryStore({ clock })
  let isOut = false
  let isHeldUp = false
  let failing: string | undefined
  const unlessOut = async <Answer>(key: string, call: () => Promise<Answer>): Promise<Answer> => {
    if (isOut || (failing !== undefined && key.endsWith(failing))) throw new Error('the connection broke')
    while (isHeldUp) await turns(1)
    return call()
  }
  const store: CasStore = {
    name: 'failing',
    read: (key) => unlessOut(key, () => memory.read(key)),
    readAll: (keys) => unlessOut('', () => memory.readAll(keys)),
    swap: (swap) => unlessOut(swap.key, () => memory.swap(swap)),
    ...(isTogether && { swapAll: (swaps: readonly CasSwap[]) => unlessOut('', () => memory.swapAll(swaps)) }),
  }
  const of = (share: object): SharedLimiter =>
    createLimiter(policy, { store: casStore(store), clock, mode: isTogether ? 'exact' : 'leased', outage, ...share })
  const limiter = of(outage === 'local' ? { share: 0.5 } : {})
  const breakDown = (): void => {
    isOut = true
  }
  const fail = (key: string | undefined): void => {
    failing = key
  }
  /** The value of a promise, for which time goes by where the store is asked again. */
  const passing = async <Value>(answer: Awaitable<Value>): Promise<Value> => {
    let isOver = false
    const ended = Promise.resolve(answer).finally(() => {
      isOver = true
    })
    for (await turns(4); !isOver; await turns(4)) clock.advance(1)
    return ended
  }
  /** The store answers again, which the next call after the pause of the circuit finds out. */
  const mend = async (): Promise<void> => {
    isOut = false
    clock.advance(2_100)
    await passing(limiter.peek('another key'))
    await passing(turns(40))
  }
  /** What is asked meanwhile is given up, and done afterwards. */
  const holdUp = async (ask: () => unknown): Promise<void> => {
    isHeldUp = true
    const asked = ask()
    await turns(4)
    clock.advance(150)
    await turns(4)
    isHeldUp = false
    await asked
    await turns(40)
  }
  return { clock, limiter, of, breakDown, fail, mend, passing, holdUp }
}

const allowed = (works: readonly Work[]): Work[] => works.filter((work) => work.allowed)

/** Pieces of one token, one work after the other, until none adds any more. @returns how many passed. */
async function spentBy(works: readonly Work[], most = Number.POSITIVE_INFINITY): Promise<number> {
  let spent = 0
  for (const work of works) while (spent < most && (await work.add(1))) spent++
  return spent
}

for (const [name, policy] of [
  ['a window', DAY],
  ['a bucket', tokenBucket({ limit: LIMIT, window: '1d', name: 'day' })],
] as const) {
  test(`${name}: of a thousand opens in an outage as many begin as the share has room for, and they spend no more than it`, async () => {
    const { limiter, breakDown } = setUp(policy)
    breakDown()
    const works = allowed(await Promise.all(Array.from({ length: 1_000 }, () => limiter.open('ada', { expect: 1 }))))
    assert.deepEqual([works.length, works[0]?.source, works[0]?.held], [LIMIT / 2, 'outage', 1])
    assert.deepEqual([(await limiter.take('ada')).allowed, (await limiter.open('ada', { expect: 1 })).source], [false, 'outage'])
    assert.equal(await spentBy(works), LIMIT / 2)
    await Promise.all(works.map((work) => work.close()))
    assert.equal((await limiter.open('ada', { expect: 1 })).allowed, false)
    limiter.close()
  })
}

test('who waits in an outage beyond what the share gives in time waits for the store until its own time is over', async () => {
  const { limiter, breakDown, mend, clock, passing } = setUp(DAY)
  breakDown()
  assert.equal((await limiter.take('ada', 50)).source, 'outage')
  let ended = 0
  const [hasty, patient, impossible] = [10, 60_000, 60_000].map((maxWait, i) =>
    limiter.wait('ada', { cost: i === 2 ? LIMIT + 1 : 20, maxWait }).finally(() => ended++),
  ) as [Promise<Decision>, Promise<Decision>, Promise<Decision>]
  await turns(20)
  assert.equal(ended, 1, 'what can never pass is denied at once')
  assert.equal((await impossible).retryAfterMs, Number.POSITIVE_INFINITY)
  const denied = await passing(hasty)
  assert.deepEqual([denied.allowed, denied.source], [false, 'outage'])
  assert.ok(denied.retryAfterMs > 0)
  clock.advance(5_000)
  await turns(20)
  assert.equal(ended, 2)
  await mend()
  const { allowed: isAllowed, source } = await passing(patient)
  assert.deepEqual([isAllowed, source], [true, 'store'])
  limiter.close()
})

test('on several levels work that begins in an outage holds of the share of each, or of none', async () => {
  const { limiter, breakDown } = setUp(levels({ org: fixedWindow({ limit: 1_000, window: '1d' }), user: DAY }))
  breakDown()
  const work = await limiter.open(['acme', 'ada'], { expect: 40 })
  const [refused, other] = [await limiter.open(['acme', 'ada'], { expect: 11 }), await limiter.open(['acme', 'eve'], { expect: 50 })]
  assert.deepEqual([work.allowed, refused.allowed, refused.policy, other.allowed], [true, false, 'user', true])
  limiter.close()
})

test('a hold of the share is renewed by its pieces, ends by itself, and is free after its close', async () => {
  const { limiter, clock, breakDown } = setUp(DAY)
  breakDown()
  const kept = await limiter.open('ada', { expect: 30, ttl: '1s' })
  const left = await limiter.open('ada', { expect: 20, ttl: '1s' })
  for (let i = 0; i < 4; i++) {
    clock.advance(500)
    assert.equal(await kept.add(i === 0 ? 10 : 0), true)
  }
  assert.deepEqual([kept.held, kept.used, left.held], [20, 10, 0])
  assert.equal((await limiter.open('ada', { expect: 21 })).allowed, false)
  await kept.close(12)
  assert.equal((await limiter.open('ada', { expect: 38 })).allowed, true)
  limiter.close()
})

test('work of before the outage goes on in it, work that began in it goes on after it, and only what was spent is charged', async () => {
  const { limiter, clock, breakDown, mend, passing } = setUp(DAY)
  const before = await passing(limiter.open('ada', { expect: 10 }))
  breakDown()
  const within = await passing(limiter.open('ada', { expect: 40 }))
  assert.equal(await passing(spentBy([before], 3)), 3)
  assert.equal(await passing(spentBy([within], 5)), 5)
  await mend()
  // What is held of the share is no debt: the store has counted 5 for it, and what is held and granted of the work of before.
  const { remaining } = await passing(limiter.peek('ada'))
  assert.equal(remaining, LIMIT - 10 - 5)
  assert.equal(await passing(spentBy([within], 20)), 20)
  assert.equal(within.held > 0, true)
  assert.equal(await passing(spentBy([before], 4)), 4)
  await passing(Promise.all([before.close(), within.close()]))
  // What was granted before the outage ends, and has cost what was granted.
  clock.advance(30_000)
  assert.deepEqual([before.used, within.used, (await passing(limiter.peek('ada'))).remaining], [7, 25, LIMIT - 32])
  limiter.close()
})

test('work that began in one outage is decided by the share in the next, too', async () => {
  const { limiter, breakDown, mend, passing } = setUp(DAY)
  breakDown()
  const work = await passing(limiter.open('ada', { expect: 50 }))
  await mend()
  assert.equal(await passing(work.add(1)), true)
  breakDown()
  assert.ok((await passing(spentBy([work]))) <= LIMIT, 'what was granted, and the share')
  limiter.close()
})

test('with open all work begins and goes on, with closed none does', async () => {
  for (const outage of ['open', 'closed'] as const) {
    const { limiter, breakDown, passing } = setUp(DAY, outage)
    breakDown()
    const works = await passing(Promise.all(Array.from({ length: 200 }, () => limiter.open('ada', { expect: 1 }))))
    assert.equal(allowed(works).length, outage === 'open' ? 200 : 0)
    assert.equal(await passing(works[0]?.add(1) ?? false), outage === 'open')
    assert.equal((await passing(limiter.open('ada', { expect: LIMIT + 1 }))).retryAfterMs, Number.POSITIVE_INFINITY)
    limiter.close()
  }
})

test('a piece beyond the share is cut, waits, or is debt that the store is told of, as the work said', async () => {
  const { limiter, breakDown, mend, passing } = setUp(tokenBucket({ limit: LIMIT, window: '100s', name: 'day' }))
  breakDown()
  const [cut, wait, finish] = [
    await passing(limiter.open('ada', { expect: 10 })),
    await passing(limiter.open('ada', { expect: 10, over: 'wait' })),
    await passing(limiter.open('ada', { expect: 30, over: 'finish' })),
  ]
  assert.equal(await passing(cut.add(11)), false)
  assert.equal(await passing(finish.add(30)), true)
  const waiting = wait.add(12)
  let isAdded: boolean | undefined
  void Promise.resolve(waiting).then((passes) => (isAdded = passes))
  await turns(5)
  assert.equal(isAdded, undefined)
  assert.equal(await passing(waiting), true, 'a token in two seconds')
  assert.equal(await passing(finish.add(100)), true)
  assert.equal(finish.over, 100)
  await passing(cut.close())
  await mend()
  await passing(finish.close())
  assert.equal((await passing(limiter.peek('ada'))).allowed, false)
  limiter.close()
})

test('an answer that comes too late: the work goes on with what it grants, and what it does not spend is free', async () => {
  const { limiter, clock, holdUp } = setUp(DAY)
  const work = await limiter.open('ada', { expect: 80, ttl: '10s' })
  await holdUp(() => work.add(23))
  assert.deepEqual([work.held, await work.add(40)], [57, true])
  await work.close()
  clock.advance(20_000)
  assert.equal((await limiter.peek('ada')).remaining, LIMIT - 63)
  limiter.close()
})

test('an answer that comes after the work has closed: what it has granted is free', async () => {
  const { limiter, clock, holdUp } = setUp(DAY)
  const work = await limiter.open('ada', { expect: 80, ttl: '10s' })
  await holdUp(async () => {
    assert.equal(await work.add(23), true)
    await work.close()
  })
  clock.advance(20_000)
  assert.equal((await limiter.peek('ada')).remaining, LIMIT - 23)
  limiter.close()
})

test('what work holds that closes in an outage is free when the store answers again', async () => {
  const { limiter, clock, breakDown, mend, passing } = setUp(DAY)
  const work = await limiter.open('ada', { expect: 80, ttl: '10s' })
  assert.equal(await work.add(1), true)
  breakDown()
  // The circuit is open.
  for (let i = 0; i < 4; i++) await passing(limiter.take('eve'))
  await passing(work.close())
  await mend()
  clock.advance(1_250)
  await turns(40)
  assert.equal((await limiter.peek('ada')).remaining, LIMIT - 1)
  limiter.close()
})

test('a process that is lost costs what its work spends in four seconds, as work has of late', async () => {
  const { limiter, clock } = setUp(fixedWindow({ limit: 10_000, window: '1d' }))
  for (let works = 0; works < 3; works++) {
    const work = await limiter.open('ada', { expect: 1_000, ttl: '10s' })
    for (let pieces = 0; pieces < 50; pieces++) {
      await work.add(1)
      clock.advance(20)
      await turns(2)
    }
    await work.close()
  }
  const { remaining } = await limiter.peek('ada')
  assert.equal((await limiter.open('ada', { expect: 1_000, ttl: '10s' })).held, 1_000)
  clock.advance(20_000)
  const lost = remaining - (await limiter.peek('ada')).remaining
  assert.ok(lost >= 180 && lost <= 220, `${lost} are charged`)
  limiter.close()
})

test('work that is called off before it began says nothing of what work costs', async () => {
  const { limiter } = setUp(DAY)
  for (let works = 0; works < 20; works++) await (await limiter.open('ada', { most: 50 })).close()
  assert.equal((await limiter.open('ada', { most: 50 })).held, 50)
  limiter.close()
})

test('what is spent of a grant after its report was lost is charged, also where the report is answered after the next grant', async (t) => {
  const { limiter, clock } = setUp(DAY)
  const work = await limiter.open('ada', { expect: 80, ttl: '10s' })
  let isHeldUp = true
  const { execute } = SwapBackend.prototype
  let answerNow = (): void => undefined
  const answered = new Promise<void>((resolve) => (answerNow = resolve))
  // As by a client with several connections: the second call is answered before the first.
  t.mock.method(SwapBackend.prototype, 'execute', async function (this: SwapBackend, ...asked: Parameters<typeof execute>) {
    const answer = await execute.apply(this, asked)
    if (isHeldUp) {
      isHeldUp = false
      await answered
    }
    return answer
  })
  clock.advance(4_000)
  assert.equal(await work.add(1), true)
  await turns(4)
  clock.advance(150)
  await turns(4)
  assert.deepEqual([await work.add(20), await work.add(10)], [true, true])
  answerNow()
  await turns(40)
  await work.close()
  clock.advance(20_000)
  assert.deepEqual([work.used, (await limiter.peek('ada')).remaining], [31, LIMIT - 31])
  limiter.close()
})

/** Calls of the store are made, and answered once this is called. */
function answerLate(t: TestContext, isLate: (operation: Operation) => boolean): () => Promise<void> {
  const { execute } = SwapBackend.prototype
  let answerNow = (): void => undefined
  const answered = new Promise<void>((resolve) => (answerNow = resolve))
  const { mock } = t.mock.method(SwapBackend.prototype, 'execute', async function (this: SwapBackend, operation: Operation) {
    const answer = await execute.call(this, operation)
    if (isLate(operation)) await answered
    return answer
  })
  return async () => {
    mock.restore()
    answerNow()
    await turns(40)
  }
}

test('a refusal that comes too late leaves the work what it had, and what it does not spend of that is free', async (t) => {
  const { limiter, clock } = setUp(DAY, 'closed')
  const work = await limiter.open('ada', { expect: 80, ttl: '10s' })
  assert.deepEqual([(await limiter.take('ada', 20)).allowed, await work.add(5)], [true, true])
  const answerNow = answerLate(t, ({ verb }) => verb === 'hold')
  const adding = work.add(90)
  await turns(40)
  clock.advance(150)
  assert.equal(await adding, false)
  await answerNow()
  assert.equal(work.held, 75)
  await work.close()
  clock.advance(20_000)
  assert.equal((await limiter.peek('ada')).remaining, LIMIT - 20 - 5)
  limiter.close()
})

test('what an answer grants that comes after the time of its work is free a ttl later', async (t) => {
  const { limiter, clock } = setUp(DAY, 'closed')
  const work = await limiter.open('ada', { expect: 80, ttl: '10s' })
  assert.equal(await work.add(1), true)
  clock.advance(9_900)
  const answerNow = answerLate(t, ({ verb }) => verb === 'hold')
  const adding = work.add(30)
  await turns(40)
  clock.advance(150)
  assert.equal(await adding, false)
  clock.advance(2_000)
  await answerNow()
  assert.equal(work.held, 79)
  clock.advance(10_500)
  await turns(40)
  assert.equal((await limiter.peek('ada')).remaining, LIMIT - 1)
  limiter.close()
})

for (const isAnswered of [true, false]) {
  test(`a piece in debt whose answer ${isAnswered ? 'comes too late is charged once' : 'is lost leaves nothing to spend of the grant'}`, async (t) => {
    const { limiter, of, clock } = setUp(DAY, 'closed')
    const work = await limiter.open('ada', { expect: 80, ttl: '10s', over: 'finish' })
    assert.deepEqual([(await limiter.take('ada', 20)).allowed, await work.add(5)], [true, true])
    const answerNow = answerLate(t, (operation) => operation.verb === 'hold' && operation.isDebt)
    const adding = work.add(90)
    await turns(40)
    clock.advance(150)
    assert.deepEqual([await adding, work.over, work.held], [true, 90, 0])
    if (isAnswered) {
      await answerNow()
      await work.close()
    }
    // The process is lost.
    limiter.close()
    clock.advance(30_000)
    assert.equal((await of({}).peek('ada')).spent, 20 + 95)
  })
}

test('an answer of one key that comes too late grants nothing of the other keys, where no call changes them together', async () => {
  const policy = levels({ org: fixedWindow({ limit: 1_000_000, window: '1d' }), user: fixedWindow({ limit: 100_000, window: '1d' }) })
  const { limiter, of, clock, passing, holdUp, fail } = setUp(policy, 'closed', false)
  const work = await passing(limiter.open(['acme', 'ada'], { expect: 80_000, ttl: '10s' }))
  fail('ada')
  await holdUp(() => work.add(23_000))
  fail(undefined)
  await passing(work.add(50_000))
  // The process is lost.
  limiter.close()
  clock.advance(30_000)
  const { parts = [] } = await passing(of({}).peek(['acme', 'ada']))
  const charged = 100_000 - (parts[1]?.remaining ?? 0)
  assert.ok(charged >= work.used, `of ${work.used} that are spent ${charged} are charged`)
})

test('opens that began together, and filled a key, are closed by one step, and what is decided with it finds their room', async () => {
  const clock = manualClock(1_700_006_400_000)
  const backend = new SwapBackend(new StoreLanes(new TimedStore(memoryStore({ clock }), clock, 1_000)), DAY, () => 0, 'p')
  const step = { verb: 'hold', key: 'ada', id: 1, ttlUs: 10_000_000, spent: 0, want: 0, least: 0, isDebt: true } as const
  const { hold } = await backend.execute({ ...step, hold: LIMIT / 10, count: 10 })
  const answers = [
    backend.execute({ ...step, before: hold, hold: 0, count: 10 }),
    backend.execute({ ...step, hold: LIMIT + 1 }),
    backend.execute({ verb: 'take', key: 'ada', cost: LIMIT, id: 2 }),
  ]
  assert.deepEqual(
    (await Promise.all(answers)).map(({ done }) => done),
    [true, false, true],
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { microtasks } from 'sluicegate-testkit/turns.js'
import {
  attachLimiter,
  createLimiter,
  fixedWindow,
  gcra,
  manualClock,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../index.js'

// Whoever leaves and whatever makes room: those who wait hear of it at once.

const START_MS = 1_760_000_000_000
const POLICIES: readonly Policy[] = [
  tokenBucket({ limit: 10, window: '1s' }),
  gcra({ limit: 10, window: '1s', burst: 10 }),
  slidingLog({ limit: 10, window: '1s' }),
  slidingWindow({ limit: 10, window: '1s' }),
  fixedWindow({ limit: 10, window: '1s' }),
]

function fixture(policy: Policy) {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(policy, { clock })
  const passed: string[] = []
  const wait = (name: string, cost: number, signal?: AbortSignal): void => {
    limiter.wait('k', { cost, ...(signal && { signal }) }).then(
      ({ allowed }) => passed.push(`${name}${allowed ? '' : ' denied'} at ${clock.nowMs() - START_MS}`),
      () => passed.push(`${name} gave up`),
    )
  }
  const advanceTo = async (ms: number): Promise<void> => {
    clock.set(START_MS + ms)
    await microtasks(60)
  }
  return { clock, limiter, wait, passed, advanceTo }
}

for (const policy of POLICIES) {
  test(`${policy.algorithm}: a job behind one that is aborted starts as if that had never come`, async () => {
    const { clock, limiter } = fixture(policy)
    limiter.take('k', 10)
    const controller = new AbortController()
    const starts: number[] = []
    void limiter.run('k', () => 'never', { cost: 8, signal: controller.signal }).catch(() => undefined)
    const last = limiter.run('k', () => starts.push(clock.nowMs() - START_MS))
    await microtasks(60)
    clock.advance(30)
    controller.abort()
    for (let ms = 30; starts.length === 0 && ms < 3000; ms += 10) {
      clock.advance(10)
      await microtasks(60)
    }
    await last
    const other = fixture(policy)
    other.limiter.take('k', 10)
    const { retryAfterMs } = other.limiter.peek('k', 1)
    // A window that was booked stays closed until it begins.
    const isBucket = policy.algorithm === 'token-bucket' || policy.algorithm === 'gcra'
    assert.ok((starts[0] as number) <= (isBucket ? retryAfterMs + 10 : 2000), `started after ${starts[0]} ms`)
  })
}

for (const policy of POLICIES.slice(0, 2)) {
  test(`${policy.algorithm}: waits behind one that gives up move up, whatever they cost, and keep their order`, async () => {
    const { limiter, wait, passed, advanceTo } = fixture(policy)
    limiter.take('k', 10)
    const first = new AbortController()
    wait('a', 8, first.signal)
    wait('b', 1)
    wait('c', 2)
    wait('d', 1)
    await advanceTo(30)
    first.abort()
    for (let ms = 30; ms <= 500; ms += 10) await advanceTo(ms)
    assert.deepEqual(passed, ['a gave up', 'b at 100', 'c at 300', 'd at 400'])
    assert.equal(limiter.peek('k').resetAfterMs, 900)
  })

  test(`${policy.algorithm}: waits move up at once after a refund, a reset and a new policy`, async () => {
    for (const what of ['refund', 'reset', 'update'] as const) {
      const { limiter, wait, passed, advanceTo } = fixture(policy)
      limiter.take('k', 10)
      wait('a', 8)
      wait('b', 3)
      await advanceTo(10)
      if (what === 'refund') limiter.refund('k', 8)
      else if (what === 'reset') limiter.reset('k')
      else limiter.update((policy.algorithm === 'gcra' ? gcra : tokenBucket)({ limit: 100, window: '1s', burst: 100 }))
      await microtasks(60)
      const isBoth = what === 'update'
      assert.deepEqual(passed, isBoth ? ['a at 10', 'b at 10'] : ['a at 10'], what)
      for (let ms = 20; ms <= 310; ms += 10) await advanceTo(ms)
      assert.equal(passed[1], isBoth ? 'b at 10' : what === 'reset' ? 'b at 110' : 'b at 300', what)
    }
  })

  test(`${policy.algorithm}: waits of one thread hear of what another thread gives back`, async () => {
    const { clock, limiter, wait, passed, advanceTo } = fixture(policy)
    const other = attachLimiter(limiter.handle(), { clock })
    limiter.take('k', 10)
    wait('a', 8)
    await advanceTo(10)
    other.refund('k', 8)
    for (let i = 0; i < 20 && passed.length === 0; i++) await new Promise(setImmediate)
    assert.deepEqual(passed, ['a at 10'])
    limiter.close()
  })
}

test('a settled job lets those start that wait', async () => {
  const { clock, limiter, passed, advanceTo } = fixture(tokenBucket({ limit: 10, window: '10s' }))
  let end = (): void => undefined
  void limiter.run('k', (job) => new Promise<void>((resolve) => (end = () => resolve(job.settle(2)))), { cost: 10 })
  await microtasks(60)
  void limiter.run('k', () => passed.push(`started at ${clock.nowMs() - START_MS}`), { cost: 5 })
  await advanceTo(10)
  end()
  await microtasks(60)
  assert.deepEqual(passed, ['started at 10'])
})

test('no wait is lost when the clock fails in the middle of an update', async () => {
  for (let reading = 1, isDone = false; !isDone; reading++) {
    let left = Number.POSITIVE_INFINITY
    const own = manualClock(START_MS)
    const nowMs = (): number => {
      if (--left === 0) throw new Error('no clock')
      return own.nowMs()
    }
    const limiter = createLimiter(POLICIES[0] as Policy, { clock: { ...own, nowMs } })
    const ended: string[] = []
    for (const key of ['k', 'l']) limiter.take(key, 10)
    for (const key of ['k', 'l', 'k', 'l', 'k', 'l'])
      limiter.wait(key, { cost: 3 }).then(
        () => ended.push(key),
        () => ended.push(key),
      )
    left = reading
    try {
      limiter.update(tokenBucket({ limit: 20, window: '1s' }))
      isDone = left > 0
    } catch (error) {
      assert.match(String(error), /no clock/)
    }
    left = Number.POSITIVE_INFINITY
    for (let ms = 0; ms <= 2000; ms += 50) {
      own.advance(50)
      await microtasks(60)
    }
    assert.equal(ended.length, 6, `the clock failed at reading ${reading}`)
    limiter.close()
  }
})

const SEEDS = shortOrLong(20, 60)

/** A random life of waits and jobs over one key, beside a limiter that knows no waits: what could pass has passed, and costs what it must. */
async function live(policy: Policy, seed: number): Promise<void> {
  const random = new Random(seed)
  const clock = manualClock(START_MS)
  const limiter = createLimiter(policy, { clock, maxKeys: 8 })
  const isRate = policy.algorithm === 'token-bucket' || policy.algorithm === 'gcra'
  let ended = 0
  let limit = policy.limit
  let gift = 0
  const passed: { readonly atMs: number; readonly cost: number }[] = []
  const waiting = new Set<{ readonly cost: number; readonly isJob: boolean }>()
  const aborts: AbortController[] = []
  let asked = 0
  const arrive = (): void => {
    const one = { cost: random.integer(1, 6), isJob: random.chance(0.4) }
    const controller = new AbortController()
    aborts.push(controller)
    asked++
    waiting.add(one)
    let starts = 0
    const begin = (): void => {
      assert.equal(++starts, 1, 'started twice')
      passed.push({ atMs: clock.nowMs(), cost: one.cost })
    }
    const end = (): void => {
      ended++
      waiting.delete(one)
    }
    const options = { cost: one.cost, signal: controller.signal, ...(random.chance(0.2) && { maxWait: random.integer(0, 900) }) }
    if (one.isJob) limiter.run('k', begin, options).then(end, end)
    else
      limiter.wait('k', options).then(({ allowed }) => {
        if (allowed) begin()
        end()
      }, end)
  }
  for (let step = 0; step < 60; step++) {
    const what = random.integer(0, 9)
    if (what < 4) arrive()
    else if (what < 6) random.pick(aborts.length > 0 ? aborts : [new AbortController()]).abort()
    else if (what === 6) {
      const tokens = random.integer(1, 5)
      gift += tokens
      limiter.refund('k', tokens)
    } else if (what === 7 && random.chance(0.3)) {
      gift += limit
      limiter.reset('k')
    } else if (what === 8 && random.chance(0.4)) {
      limit = random.integer(6, 30)
      gift += limit
      limiter.update(policyOf(policy, limit))
    } else clock.advance(random.integer(1, 120))
    await microtasks(60)
    // The tokens of the first in line are not there, or its start is due by a timer that is set.
    const oldest = [...waiting][0]
    if (isRate && oldest !== undefined) {
      const { remaining } = limiter.peek('k')
      assert.ok(
        remaining < 6 || [...waiting].every(({ cost }) => cost > remaining),
        `seed ${seed}: ${remaining} are left, and ${oldest.cost} waits`,
      )
    }
  }
  for (const controller of aborts.filter(() => random.chance(0.3))) controller.abort()
  await microtasks(60)
  for (let ms = 0; ended < asked && ms < 30_000; ms += 50) {
    clock.advance(50)
    await microtasks(60)
  }
  assert.equal(ended, asked, `seed ${seed}: ${asked - ended} hang`)
  if (isRate) {
    const spent = passed.reduce((sum, { cost }) => sum + cost, 0)
    const lengthMs = clock.nowMs() - START_MS
    assert.ok(spent <= 30 + gift + (30 * lengthMs) / 1000, `seed ${seed}: ${spent}`)
  }
  clock.advance(60_000)
  assert.equal(limiter.peek('k').remaining, limit, `seed ${seed}: something is left charged`)
  limiter.close()
}

function policyOf({ algorithm }: Policy, limit: number, window = 1000): Policy {
  const options = { limit, window }
  if (algorithm === 'token-bucket') return tokenBucket(options)
  if (algorithm === 'gcra') return gcra({ ...options, burst: limit })
  if (algorithm === 'sliding-log') return slidingLog(options)
  return algorithm === 'sliding-window' ? slidingWindow(options) : fixedWindow(options)
}

for (const policy of POLICIES) {
  test(`${policy.algorithm}: a reset opens the key for all who wait, also for what was booked before an update`, async () => {
    const { limiter, wait, passed } = fixture(policy)
    limiter.take('k', 6)
    wait('first', 5)
    wait('second', 5)
    limiter.update(policyOf(policy, 18))
    await microtasks(60)
    limiter.reset('k')
    await microtasks(60)
    assert.deepEqual(passed, ['first at 0', 'second at 0'])
    limiter.close()
  })
}

for (const policy of POLICIES) {
  test(`${policy.algorithm}: in ${SEEDS} lives of arrivals, aborts, refunds, resets and updates nothing waits for what is there, hangs or starts twice`, async () => {
    for (let seed = 1; seed <= SEEDS; seed++) await live(policy, seed)
  })
}

const BOOKED_BY_WINDOWS = POLICIES.slice(2)

for (const policy of BOOKED_BY_WINDOWS) {
  test(`${policy.algorithm}: a higher limit lets those pass at once who have booked, over two windows as well, and no more`, async () => {
    for (const [limit, windowMs, atOnce] of [
      [20, 1000, 10],
      [15, 1000, 5],
      [15, 2000, 5],
      [5, 2000, 0],
    ] as const) {
      const { limiter, wait, passed, advanceTo } = fixture(policy)
      limiter.take('k', 10)
      for (let i = 0; i < 10; i++) wait(String(i), 1)
      await advanceTo(200)
      limiter.update(policyOf(policy, limit, windowMs))
      await microtasks(60)
      const expected = Array.from({ length: atOnce }, (_, i) => `${i} at 200`)
      assert.deepEqual(passed, expected, `${limit} in ${windowMs} ms`)
      assert.equal(limiter.take('k').allowed, false)
      limiter.close()
      await microtasks(60)
    }
  })

  test(`${policy.algorithm}: a lower limit takes times back that were booked beyond it`, async () => {
    const { clock, limiter, wait, passed, advanceTo } = fixture(policy)
    limiter.take('k', 10)
    for (let i = 0; i < 10; i++) wait(String(i), 1)
    await advanceTo(200)
    limiter.update(policyOf(policy, 5))
    for (let ms = 200; ms < 2000; ms += 10) await advanceTo(ms)
    assert.ok(passed.length <= 5, passed.join())
    for (let ms = 2000; passed.length < 10 && ms < 5000; ms += 10) await advanceTo(ms)
    assert.equal(passed.length, 10, `by ${clock.nowMs() - START_MS}`)
  })
}

test('sliding-window: a booking comes back before its time also where the next window is booked behind it', () => {
  const { limiter, clock } = fixture(slidingWindow({ limit: 10, window: '1s' }))
  limiter.take('k', 10)
  clock.advance(900)
  const first = limiter.reserve('k', 8)
  const second = limiter.reserve('k', 6)
  assert.deepEqual([first.waitMs > 100, second.waitMs > 1100], [true, true])
  first.cancel()
  second.cancel()
  clock.set(START_MS + 2000)
  assert.equal(limiter.peek('k').remaining, 10)
  // Once its time has come it counts as spent there.
  const due = fixture(slidingWindow({ limit: 10, window: '1s' }))
  due.limiter.take('k', 10)
  const spent = due.limiter.reserve('k', 8)
  due.limiter.reserve('k', 6)
  due.clock.advance(spent.waitMs)
  spent.cancel()
  due.clock.set(START_MS + 2000)
  assert.equal(due.limiter.peek('k').remaining < 10, true)
})

for (const policy of POLICIES.slice(0, 2)) {
  test(`${policy.algorithm}: what another thread has booked is charged once after an update, and what the update forgave once more`, async () => {
    for (const [limit, left] of [
      [24, 8],
      [16, 0],
      [8, 0],
    ] as const) {
      const { clock, limiter } = fixture(policyOf(policy, 10, 10_000))
      const other = attachLimiter(limiter.handle(), { clock })
      limiter.take('k', 10)
      let passed = 0
      for (const cost of [4, 2]) {
        other.wait('k', { cost }).then(
          () => (passed += cost),
          () => undefined,
        )
      }
      await microtasks(60)
      limiter.update(policyOf(policy, limit, 10_000))
      for (let i = 0; i < 20; i++) await new Promise(setImmediate)
      const spent = Math.round(limiter.peek('k').resetAfterMs / (10_000 / limit))
      assert.deepEqual([limiter.peek('k').remaining, spent], [left, limit === 8 ? 14 : 16], `to ${limit}`)
      assert.equal(passed, limit === 8 ? 0 : 6)
      other.close()
      limiter.close()
    }
  })
}

const WINDOWS: readonly Policy[] = [
  slidingLog({ limit: 10, window: '1s' }),
  slidingWindow({ limit: 10, window: '1s' }),
  slidingWindow({ limit: 100_000, window: '1s' }),
  fixedWindow({ limit: 10, window: '1s' }),
]

for (const policy of WINDOWS) {
  test(`${policy.algorithm} of ${policy.limit}: a refund goes to the first who wait, in order, and those behind keep their places`, async () => {
    const { limiter, wait, passed, advanceTo } = fixture(policy)
    limiter.take('k', policy.limit)
    const controller = new AbortController()
    wait('first', 1)
    wait('second', 2, controller.signal)
    for (let i = 0; i < 12; i++) wait(`later ${i}`, 1, controller.signal)
    await advanceTo(100)
    assert.deepEqual(passed, [])
    limiter.refund('k', 2)
    await microtasks(60)
    assert.deepEqual(passed, ['first at 100'])
    limiter.refund('k', 4)
    await microtasks(60)
    assert.deepEqual(passed, ['first at 100', 'second at 100', 'later 0 at 100', 'later 1 at 100'])
    assert.equal(limiter.take('k').allowed, false)
    controller.abort()
    await microtasks(60)
    assert.equal(passed.length, 14)
  })

  test(`${policy.algorithm} of ${policy.limit}: no refund passes a ban`, async () => {
    const { limiter, wait, passed } = fixture(policy)
    limiter.take('k', policy.limit)
    wait('first', 1)
    await microtasks(60)
    limiter.block('k', '1m')
    limiter.refund('k', 1)
    await microtasks(60)
    assert.deepEqual(passed, [])
    limiter.close()
    await microtasks(60)
  })

  if (policy.algorithm === 'sliding-log') continue
  test(`${policy.algorithm} of ${policy.limit}: what is settled below its estimate in this window is for those who wait, and no more than that`, async () => {
    const { limiter, wait, passed, advanceTo } = fixture(policy)
    limiter.take('k', policy.limit - 6)
    const reservation = limiter.reserve('k', 6)
    for (let i = 0; i < 6; i++) wait(String(i), 1)
    await advanceTo(100)
    reservation.settle(2)
    await microtasks(60)
    assert.deepEqual(passed, ['0 at 100', '1 at 100', '2 at 100', '3 at 100'])
    assert.equal(limiter.take('k').allowed, false)
    // What was charged in a window before is not room in this one.
    const late = fixture(policy)
    late.limiter.take('k', policy.limit - 6)
    const old = late.limiter.reserve('k', 6)
    await late.advanceTo(2000)
    late.limiter.take('k', policy.limit)
    late.wait('none', 1)
    await microtasks(60)
    old.settle(0)
    await microtasks(60)
    assert.deepEqual(late.passed, [])
  })
}

test('a fault where waits are made anew ends them with its error: nothing swallows it', async () => {
  const { clock, limiter } = fixture(POLICIES[0] as Policy)
  limiter.take('k', 10)
  const waiting = limiter.wait('k')
  const planted = new TypeError('planted')
  Object.assign(limiter, {
    isLate: () => {
      throw planted
    },
  })
  attachLimiter(limiter.handle(), { clock }).refund('k', 1)
  await assert.rejects(waiting, planted)
  limiter.close()
})

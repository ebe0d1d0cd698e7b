import assert from 'node:assert/strict'
import { test } from 'node:test'
import { promisedLimiter } from 'sluicegate-testkit/adapters/harness.js'
import { headerOf, type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { isPromise } from '../awaitable.js'
import { allOf, concurrency, createLimiter, fixedWindow, manualClock, tokenBucket } from '../index.js'
import { Middleware, type MiddlewareResult } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

const HUNDRED = fixedWindow({ limit: 100, window: '365d', name: 'hundred' })

/** Requests whose delays are on a clock of the test. */
function slowed(options: MiddlewareOptions<PlainRequest>) {
  const clock = manualClock(1_789_000_000_000)
  let timers = 0
  const after = (ms: number, fn: () => void): (() => void) => {
    timers++
    let isOver = false
    const end = (): boolean => {
      if (isOver) return false
      isOver = true
      timers--
      return true
    }
    clock.after?.(ms, () => void (end() && fn()))
    return () => void end()
  }
  const middleware = new Middleware<PlainRequest>({ key: ({ user = 'ada' }) => user, ...options }, { after })
  const decide = (request: PlainRequest = {}, whenGone?: (tell: () => void) => void) =>
    middleware.handle({ ...plainFacts(request), ...(whenGone && { whenGone }) }, request)
  return { clock, decide, timers: () => timers }
}

/** Whether a request passes at once, after how many milliseconds, or is denied. */
async function course(
  decided: MiddlewareResult | Promise<MiddlewareResult>,
  advance: (ms: number) => void,
  most = 100,
): Promise<number | 'denied'> {
  let outcome: MiddlewareResult | undefined
  if (isPromise(decided)) void decided.then((found) => (outcome = found))
  else outcome = decided
  for (let ms = 0; ms <= most; ms++) {
    await new Promise(setImmediate)
    if (outcome !== undefined) return outcome.passes ? ms : 'denied'
    advance(1)
  }
  throw new Error('still delayed')
}

test('requests up to `after` pass at once, those above are delayed, and those over the limit are denied', async () => {
  for (const [delay, expected] of [
    [5, [0, 0, 5, 5, 5, 'denied']],
    ['7ms', [0, 0, 7, 7, 7, 'denied']],
    [(over: number) => over * 10, [0, 0, 10, 20, 25, 'denied']],
  ] as const) {
    const five = fixedWindow({ limit: 5, window: '365d', name: 'five' })
    const { clock, decide } = slowed({ policy: five, slowDown: { after: 2, delay, maxDelay: 25 } })
    const courses = []
    for (let i = 0; i < 6; i++) courses.push(await course(decide(), (ms) => clock.advance(ms)))
    assert.deepEqual(courses, expected)
  }
})

test('a delay is the same over limiters that answer later, of several limits the longest, and of allOf by the policy most used', async () => {
  const one = createLimiter(HUNDRED)
  const cases: readonly MiddlewareOptions<PlainRequest>[] = [
    { limiter: promisedLimiter(one), slowDown: { after: 0, delay: 9 } },
    {
      limits: [
        { policy: HUNDRED, slowDown: { after: 0, delay: 4 } },
        { policy: tokenBucket({ limit: 9, window: '365d' }), slowDown: { after: 0, delay: 9 } },
        { policy: fixedWindow({ limit: 9, window: 'day' }) },
      ],
    },
    {
      policy: allOf([HUNDRED, fixedWindow({ limit: 9, window: 'day' })]),
      slowDown: { after: 0, delay: (over) => (over === 1 ? 9 : 1) },
    },
  ]
  for (const options of cases) {
    const { clock, decide } = slowed(options)
    assert.equal(await course(decide(), (ms) => clock.advance(ms)), 9)
  }
})

test('a client that goes away ends its delay at once, and no timer stays', async () => {
  const limiter = createLimiter(HUNDRED)
  const { decide, timers } = slowed({ limiter, slowDown: { after: 0, delay: '10s', maxDelayed: 1 } })
  for (let i = 0; i < 5; i++) {
    let gone = (): void => undefined
    const decided = decide({}, (tell) => (gone = tell)) as Promise<MiddlewareResult>
    assert.equal(timers(), 1)
    assert.equal(statusOf(await Promise.resolve(decide())), 429)
    gone()
    assert.equal((await decided).passes, true)
    gone()
    assert.equal(timers(), 0)
  }
  assert.equal(limiter.peek('ada').remaining, 95)
})

test('the number of delayed requests of a key and of all keys is bounded: further ones are denied with retry-after and not charged', async () => {
  const limiter = createLimiter(HUNDRED)
  const { clock, decide, timers } = slowed({ limiter, slowDown: { after: 0, delay: '2s', maxDelayed: 11 } })
  const delayed = [...Array.from({ length: 10 }, () => decide()), decide({ user: 'bob' })]
  for (const user of ['ada', 'bob', 'eve']) {
    const denied = decide({ user }) as MiddlewareResult
    assert.deepEqual([statusOf(denied), headerOf(denied, 'Retry-After')], [429, '2'])
  }
  assert.deepEqual([limiter.peek('ada').remaining, limiter.peek('eve').remaining, timers()], [90, 100, 11])
  clock.advance(2_000)
  for (const each of delayed) assert.equal((await each).passes, true)
  assert.equal(await course(decide({ user: 'eve' }), (ms) => clock.advance(ms), 2_000), 2_000)
})

test('one key delays ten requests at once, and no more', () => {
  const { decide, timers } = slowed({ limiter: createLimiter(HUNDRED), slowDown: { after: 0, delay: '2s' } })
  const answers = Array.from({ length: 12 }, () => decide())
  assert.equal(timers(), 10)
  assert.deepEqual(
    answers.slice(10).map((denied) => statusOf(denied as MiddlewareResult)),
    [429, 429],
  )
  assert.equal(decide({ user: 'bob' }) instanceof Promise, true)
})

test('decisions in shadow mode, decisions without the store and free requests are not delayed', async () => {
  const slowDown = { after: 0, delay: '10s' } as const
  const limiter = createLimiter(HUNDRED, { shadow: true, allow: ['friend'] })
  const outage = { ...limiter.peek('x'), remaining: 0, source: 'outage' } as const
  const without = { policy: HUNDRED, take: () => outage, peek: () => outage, refund: () => outage }
  for (const options of [
    { policy: HUNDRED, shadow: true, slowDown },
    { limiter, slowDown },
    { limiter: without, slowDown },
    { policy: HUNDRED, cost: 0, slowDown },
  ]) {
    const { decide } = slowed(options)
    assert.equal((decide() as MiddlewareResult).passes, true)
  }
  const { decide } = slowed({ limiter: createLimiter(HUNDRED, { allow: ['friend'] }), slowDown })
  assert.equal((decide({ user: 'friend' }) as MiddlewareResult).passes, true)
})

test('a place of concurrency is held while its request is delayed, and comes back where the function fails', async () => {
  const limiter = createLimiter(concurrency({ limit: 2, ttl: '1m' }))
  let fails = false
  const delay = (): number => {
    if (fails) throw new Error('no')
    return 5
  }
  const { clock, decide } = slowed({ limiter, slowDown: { after: 0, delay } })
  const decided = decide()
  assert.equal(limiter.peek('ada').remaining, 1)
  clock.advance(5)
  assert.equal((await decided).passes, true)
  fails = true
  assert.throws(() => decide(), /no/)
  assert.equal(limiter.peek('ada').remaining, 1)
})

test('invalid options are refused, and so is a function that returns no time', async () => {
  for (const [wrong, code, option] of [
    [{ after: -1 }, 'OPTION_INVALID', 'slowDown.after'],
    [{ delay: undefined }, 'DURATION_INVALID', 'slowDown.delay'],
    [{ delay: 'long' }, 'DURATION_INVALID', 'slowDown.delay'],
    [{ maxDelay: '2h' }, 'DURATION_INVALID', 'slowDown.maxDelay'],
    [{ maxDelayed: 0 }, 'OPTION_INVALID', 'slowDown.maxDelayed'],
    [{ maxDelayedPerKey: 1 }, 'OPTION_UNKNOWN', 'maxDelayedPerKey'],
    [{ delayMs: 5 }, 'OPTION_UNKNOWN', 'delayMs'],
  ] as const) {
    const slowDown = { after: 1, delay: 5, ...wrong } as never
    assert.throws(() => new Middleware({ policy: HUNDRED, slowDown }), { name: 'PolicyError', code, option })
  }
  for (const seen of [-1, Number.NaN, '5', undefined, Promise.resolve(5)]) {
    const { decide } = slowed({ policy: HUNDRED, slowDown: { after: 0, delay: () => seen as never } })
    assert.throws(() => decide(), { code: 'OPTION_INVALID', option: 'slowDown.delay' })
  }
})

test('a place of concurrency lasts through a delay that is longer than its time, and as long as ever after it', async () => {
  const own = manualClock(1_789_000_000_000)
  const limiter = createLimiter(concurrency({ limit: 1, ttl: '10s' }), { clock: own })
  const { clock, decide } = slowed({ limiter, slowDown: { after: 0, delay: '25s' } })
  const outcome = decide()
  const elapse = async (ms: number): Promise<number> => {
    await new Promise(setImmediate)
    own.advance(ms)
    clock.advance(ms)
    await new Promise(setImmediate)
    return limiter.peek('ada').remaining
  }
  for (let i = 0; i < 5; i++) assert.equal(await elapse(5_000), 0)
  assert.equal((await outcome).passes, true)
  assert.equal(await elapse(9_999), 0)
  // No adapter renews it that would notice the end of the response.
  assert.equal(await elapse(1), 1)
})

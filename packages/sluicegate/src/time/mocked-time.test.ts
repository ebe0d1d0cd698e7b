import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as realTimeout } from 'node:timers'
import { install } from '@sinonjs/fake-timers'
import { rateLimit } from '../adapters/fetch.js'
import { attachLimiter, createLimiter } from '../create-limiter.js'
import { HeaderWriter } from '../http.js'
import { concurrency, fixedWindow, tokenBucket } from '../policy/single-policy.js'
import { coarseClock, manualClock, preciseClock } from './clock.js'

/** Time as a test moves it: every promise that is settled by a timer on the way is heard. */
interface MovedTime {
  advance(ms: number): Promise<void>
  [Symbol.dispose](): void
}

const performanceBefore = globalThis.performance

/** The fake timers, and how a test begins to use them. */
const MOCKS: Readonly<Record<string, (t: TestContext) => MovedTime>> = {
  // Underneath those of Jest, Vitest and Sinon.
  '@sinonjs/fake-timers': () => {
    // The runner of these tests needs its ticks.
    const clock = install({ now: Date.parse('2026-01-01T00:00:30Z'), toNotFake: ['nextTick'] })
    return { advance: async (ms) => void (await clock.tickAsync(ms)), [Symbol.dispose]: () => clock.uninstall() }
  },
  // As Vitest has it before version 3.
  '@sinonjs/fake-timers without performance': () => {
    const clock = install({ now: 1e12, toFake: ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate'] })
    return { advance: async (ms) => void (await clock.tickAsync(ms)), [Symbol.dispose]: () => clock.uninstall() }
  },
  'node:test': ({ mock }) => {
    mock.timers.enable({ apis: ['Date', 'setTimeout'], now: 1e12 })
    const advance = async (ms: number): Promise<void> => {
      mock.timers.tick(ms)
      await new Promise((resolve) => realTimeout(resolve))
    }
    return { advance, [Symbol.dispose]: () => mock.timers.reset() }
  },
}

const policy = tokenBucket({ limit: 1, window: '1m' })

for (const [name, begin] of Object.entries(MOCKS)) {
  for (const [kind, clockOf] of Object.entries({ default: undefined, precise: preciseClock, coarse: coarseClock })) {
    test(`${name}: a limiter made under them with its ${kind} clock follows them`, async (t) => {
      using time = begin(t)
      using limiter = createLimiter(policy, clockOf === undefined ? {} : { clock: clockOf() })
      assert.equal(limiter.take('a').allowed, true)
      await time.advance(59_999)
      assert.equal(limiter.take('a').retryAfterMs, 1)
      await time.advance(1)
      assert.equal(limiter.take('a').allowed, true)
    })
  }

  test(`${name}: windows are those of the mocked date`, async (t) => {
    using time = begin(t)
    using limiter = createLimiter(fixedWindow({ limit: 1, window: '1m' }))
    const { resetAfterMs } = limiter.take('a')
    assert.equal(resetAfterMs, 60_000 - (Date.now() % 60_000))
    await time.advance(resetAfterMs)
    assert.equal(limiter.take('a').allowed, true)
  })

  test(`${name}: who waits is let through when they are advanced`, async (t) => {
    using time = begin(t)
    using limiter = createLimiter(policy)
    limiter.take('a')
    const seen: boolean[] = []
    const wait = limiter.wait('a').then(({ allowed }) => seen.push(allowed))
    await time.advance(59_999)
    assert.deepEqual(seen, [])
    await time.advance(2)
    assert.deepEqual(seen, [true])
    await wait
  })

  test(`${name}: a permit that is not released comes back after its ttl`, async (t) => {
    using time = begin(t)
    using limiter = createLimiter(concurrency({ limit: 1, ttl: '30s' }))
    assert.equal(limiter.take('a').allowed, true)
    assert.equal(limiter.take('a').allowed, false)
    await time.advance(30_000)
    assert.equal(limiter.take('a').allowed, true)
  })

  test(`${name}: middleware made under them follows them, with what comes back and its headers`, async (t) => {
    using time = begin(t)
    const limit = rateLimit({ policy, key: () => 'a', counts: 'failures', headers: { version: 'x-ratelimit' } })
    const answer = async (status: number): Promise<Response> =>
      limit.wrap(() => new Response(null, { status }))(new Request('http://localhost/'))
    assert.equal((await answer(200)).status, 200)
    assert.equal((await answer(500)).status, 500)
    const denied = await answer(200)
    assert.equal(denied.status, 429)
    assert.equal(denied.headers.get('x-ratelimit-reset'), String(Math.ceil((Date.now() + 60_000) / 1000)))
    await time.advance(60_000)
    assert.equal((await answer(200)).status, 200)
  })

  test(`${name}: a handle of such a limiter carries no clock to another thread, and says so there`, (t) => {
    using _time = begin(t)
    using limiter = createLimiter(policy)
    assert.throws(() => attachLimiter(limiter.handle()), { code: 'CLOCK_INVALID' })
  })
}

test('a limiter that was made before keeps to real time', async (t) => {
  using limiter = createLimiter(policy)
  limiter.take('a')
  for (const begin of Object.values(MOCKS)) {
    using time = begin(t)
    await time.advance(60_000)
    assert.equal(limiter.take('a').allowed, false)
  }
  assert.equal(globalThis.performance, performanceBefore)
})

test('one made after they are taken away keeps to real time, wherever the module was loaded', async () => {
  const time = install({ now: 0, toNotFake: ['nextTick'] })
  const { createLimiter: loadedUnder } = (await import(`../create-limiter.js?${Date.now()}`)) as { createLimiter: typeof createLimiter }
  time.uninstall()
  using limiter = loadedUnder(fixedWindow({ limit: 1, window: '1m' }))
  const nearlyMs = 60_000 - (Date.now() % 60_000)
  assert.ok(Math.abs(limiter.take('a').resetAfterMs - nearlyMs) < 1_000 || nearlyMs < 1_000)
})

test('a manual clock needs none of them', () => {
  const clock = manualClock()
  using limiter = createLimiter(policy, { clock })
  limiter.take('a')
  clock.advance(60_000)
  assert.equal(limiter.take('a').allowed, true)
})

test('the headers of decisions read the date when they are written', (t) => {
  using limiter = createLimiter(policy)
  const decision = limiter.take('a')
  const writer = new HeaderWriter({ version: 'x-ratelimit' })
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000_000_000 })
  const headers = new Map(writer.write(policy, decision))
  assert.match(headers.get('X-RateLimit-Reset') ?? headers.get('x-ratelimit-reset') ?? '', /^10000000\d\d$/)
})

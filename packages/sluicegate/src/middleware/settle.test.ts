import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { settlingLimiter } from 'sluicegate-testkit/receipts/settling-limiter.js'
import { unhandledRejections } from 'sluicegate-testkit/unhandled-rejections.js'
import { concurrency, createLimiter, fixedWindow, type Limiter, manualClock, type Policy, tokenBucket } from '../index.js'
import { Middleware, type Pass } from './middleware.js'
import type { MiddlewareLimiter, MiddlewareOptions } from './middleware-options.js'
import { settleQuietly } from './settle.js'

const KEY = '192.0.2.1'
const TTL_MS = 60_000

function tokens(): Limiter {
  return createLimiter(fixedWindow({ name: 'tokens', limit: 3, window: 'day' }))
}

function passOf(middleware: Middleware<PlainRequest>): Required<Pass> {
  const outcome = middleware.handle(plainFacts({}), {}) as Pass
  assert.ok(outcome.passes && outcome.settle !== undefined)
  return outcome as Required<Pass>
}

function settled(options: MiddlewareOptions<PlainRequest>, status: number | undefined): void {
  settleQuietly(passOf(new Middleware(options)).settle as NonNullable<Pass['settle']>, status)
}

async function warningsOf(t: TestContext, run: () => Promise<void>): Promise<string[]> {
  const seen: string[] = []
  const { mock } = t.mock.method(process, 'emitWarning', (warning: Error | string) => void seen.push(String(warning)))
  await run()
  mock.restore()
  return seen
}

test('a function may decide by a promise whether a request counts', async () => {
  for (const [counts, left] of [
    [async () => false, 3],
    [async () => true, 2],
  ] as const) {
    const limiter = tokens()
    settled({ limiter, counts }, 200)
    assert.equal(limiter.peek(KEY).remaining, 2, 'until then it is taken')
    await setImmediate()
    assert.equal(limiter.peek(KEY).remaining, left)
  }
})

test('what counts throws, at once or later, is a warning, and the request counts', async (t) => {
  const fault = new Error('not to be found')
  for (const counts of [
    () => {
      throw fault
    },
    () => Promise.reject(fault),
  ]) {
    const limiter = tokens()
    const reasons: unknown[] = []
    const seen = await warningsOf(t, async () => {
      reasons.push(...(await unhandledRejections(async () => settled({ limiter, counts }, 200))))
    })
    assert.deepEqual([seen, reasons, limiter.peek(KEY).remaining], [['Error: not to be found'], [], 2])
  }
})

test('places wait for no answer of counts, and a client that hangs up meanwhile changes nothing', async () => {
  const slots = createLimiter(concurrency({ name: 'slots', limit: 1 }))
  const limiter = tokens()
  let answer = (_counts: boolean): void => undefined
  const counts = (): Promise<boolean> =>
    new Promise((resolve) => {
      answer = resolve
    })
  const { settle } = passOf(new Middleware({ limits: [{ limiter: slots }, { limiter }], counts }))
  settle?.(200)
  assert.deepEqual([slots.peek(KEY).remaining, limiter.peek(KEY).remaining], [1, 2])
  settle?.(undefined)
  answer(false)
  await setImmediate()
  assert.deepEqual([slots.peek(KEY).remaining, limiter.peek(KEY).remaining], [1, 3])
})

test('a place is kept however long its response takes, and not after it', () => {
  const clock = manualClock()
  const slots = createLimiter(concurrency({ name: 'slots', limit: 1, ttl: TTL_MS }), { clock })
  let timers = 0
  const after = (ms: number, fn: () => void): (() => void) => {
    timers++
    return clock.after(ms, fn)
  }
  const { settle } = passOf(new Middleware({ limiter: slots }, { after }))
  settle?.keep?.()
  settle?.keep?.()
  for (let i = 0; i < 20; i++) clock.advance(TTL_MS / 4)
  assert.equal(slots.peek(KEY).remaining, 0)
  settle?.(200)
  const before = timers
  clock.advance(2 * TTL_MS)
  assert.deepEqual([slots.peek(KEY).remaining, timers], [1, before])
})

test('a permit that is not renewed expires, and without one there is nothing to renew', () => {
  const clock = manualClock()
  const slots = createLimiter(concurrency({ name: 'slots', limit: 1, ttl: TTL_MS }), { clock })
  passOf(new Middleware({ limiter: slots }, { after: clock.after }))
  clock.advance(TTL_MS)
  assert.equal(slots.peek(KEY).remaining, 1)
  assert.equal(passOf(new Middleware({ limiter: tokens(), counts: 'failures' })).settle?.keep, undefined)
})

test('a limiter that is closed meanwhile harms no response that is kept', () => {
  const clock = manualClock()
  const slots = createLimiter(concurrency({ name: 'slots', limit: 1, ttl: TTL_MS }), { clock })
  const { settle } = passOf(new Middleware({ limiter: slots }, { after: clock.after }))
  settle?.keep?.()
  slots.close()
  clock.advance(TTL_MS)
  settle?.(200)
})

describe('late returns', () => {
  const KEY = '192.0.2.1'

  function takeAll(limiter: Limiter): number {
    let taken = 0
    while (limiter.take(KEY).allowed) taken++
    return taken
  }

  test('a charge follows its key to another policy, and what comes back comes back there, once', () => {
    const clock = manualClock()
    const other = fixedWindow({ limit: 10, window: '1h', name: 'other' })
    let chosen: Policy | undefined
    const limiter = createLimiter(fixedWindow({ limit: 10, window: '1h', name: 'own' }), { clock, policyFor: () => chosen })
    const middleware = new Middleware<PlainRequest>({ limiter, cost: 4, counts: 'failures' })
    const outcome = middleware.handle(plainFacts({}), {}) as Pass
    chosen = other
    assert.equal(limiter.peek(KEY).remaining, 6)
    outcome.settle?.(200)
    assert.equal(takeAll(limiter), 10)
    chosen = undefined
    assert.equal(takeAll(limiter), 0)
  })

  test('a denial of one limit that comes after the window of another returns nothing to the next window', async () => {
    const clock = manualClock(1_790_000_000_000)
    const limiter = createLimiter(fixedWindow({ limit: 100, window: 300 }), { clock })
    let deny = (): void => undefined
    const denied = { allowed: false, limit: 1, remaining: 0, retryAfterMs: 1, resetAfterMs: 1, policy: 'late', source: 'store' } as const
    const late: MiddlewareLimiter = {
      policy: tokenBucket({ limit: 1, window: '1s', name: 'late' }),
      take: () =>
        new Promise((resolve) => {
          deny = () => resolve(denied)
        }),
      peek: async () => denied,
      refund: async () => denied,
    }
    const limits = [{ limiter: settlingLimiter(() => limiter), cost: 100 }, { limiter: late }]
    const middleware = new Middleware<PlainRequest>({ limits })
    const answer = middleware.handle(plainFacts({}), {}) as Promise<Pass>
    for (let turn = 0; turn < 5; turn++) await undefined
    assert.equal(limiter.peek(KEY).remaining, 0)
    clock.advance(320)
    assert.equal(takeAll(limiter), 100)
    deny()
    assert.equal(statusOf(await answer), 429)
    assert.equal(takeAll(limiter), 0)
    clock.advance(300)
    assert.equal(takeAll(limiter), 100)
  })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PlainRequest, plainFacts } from 'sluicegate-testkit/adapters/http-client.js'
import { holdOf } from '../holds/hold-of.js'
import { createLimiter, fixedWindow, levels, manualClock, tokenBucket } from '../index.js'
import { Middleware, type Pass } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'
import { settleQuietly } from './settle.js'

const START_MS = 1_789_000_020_000

function made(options: Omit<MiddlewareOptions<PlainRequest>, 'policy'> = {}, limit = 100) {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(fixedWindow({ limit, window: 'day', name: 'spend' }), { clock })
  const after = clock.after?.bind(clock) as NonNullable<typeof clock.after>
  const middleware = new Middleware<PlainRequest>(
    { ...('limits' in options ? {} : { limiter, key: () => 'ada', cost: { expect: 40 } }), ...options } as MiddlewareOptions<PlainRequest>,
    { after: (ms, fn) => after.call(clock, ms, fn) as unknown as () => void },
  )
  const handle = (): { readonly result: Pass; readonly request: PlainRequest } => {
    const request: PlainRequest = {}
    return { result: middleware.handle(plainFacts(request), request) as Pass, request }
  }
  return { clock, limiter, handle }
}

test('a cost may be chosen for each request, a number as well as a hold', () => {
  for (const [cost, held, left] of [
    [() => 'metered' as const, 1, 99],
    [() => ({ most: 7 }), 7, 93],
    [() => 5, undefined, 95],
    [() => 0, undefined, 100],
  ] as const) {
    const { limiter, handle } = made({ cost: cost as never })
    const { result, request } = handle()
    assert.equal(result.passes, true)
    assert.equal(holdOf(request)?.held, held)
    assert.equal(limiter.peek('ada').remaining, left)
    if (result.settle !== undefined) settleQuietly(result.settle, 200)
    assert.equal(limiter.peek('ada').remaining, held === undefined ? left : 100, 'nothing was added')
  }
})

test('in shadow mode every piece passes, also of a request that would have been denied', () => {
  const { limiter, handle } = made({ shadow: true }, 50)
  limiter.take('ada', 45)
  const { result, request } = handle()
  assert.equal(result.passes, true)
  assert.deepEqual([holdOf(request)?.add(30), holdOf(request)?.used], [true, 30])
  assert.equal(limiter.peek('ada').remaining, 5)
})

test('a request that another limit denies holds nothing', () => {
  const { limiter } = made()
  const other = createLimiter(fixedWindow({ limit: 1, window: 'day', name: 'requests' }), { clock: manualClock(START_MS) })
  const { handle } = made({
    limits: [
      { limiter, key: () => 'ada', cost: { expect: 40 } },
      { limiter: other, key: () => 'ada' },
    ],
  })
  const first = handle()
  assert.deepEqual([first.result.passes, holdOf(first.request)?.policy], [true, 'spend'])
  assert.equal(holdOf(first.request, 'requests'), undefined)
  assert.equal(handle().result.passes, false)
  assert.equal(limiter.peek('ada').remaining, 60, 'only the first is held')
})

test('levels are held together, by keys in the order of the policies or by name', () => {
  const limiter = createLimiter(
    levels({ org: fixedWindow({ limit: 100, window: 'day' }), user: tokenBucket({ limit: 50, window: '1m' }) }),
    { clock: manualClock(START_MS) },
  )
  const { handle } = made({ limits: [{ limiter, key: (() => ['acme', 'ada']) as never, cost: { expect: 40 } }] })
  const { result, request } = handle()
  assert.equal(holdOf(request)?.add(10), true)
  settleQuietly(result.settle as NonNullable<Pass['settle']>, 200)
  assert.deepEqual(
    limiter.peek({ org: 'acme', user: 'ada' }).parts?.map(({ remaining }) => remaining),
    [90, 40],
  )
  const named = (key: object) => made({ limits: [{ limiter, key: (() => key) as never, onMissingKey: 'skip' }] }).handle()
  assert.equal(named({ user: 'ada', org: 7 }).result.passes, true)
  assert.deepEqual(
    limiter.peek({ org: '7', user: 'ada' }).parts?.map(({ remaining }) => remaining),
    [99, 39],
  )
  assert.equal(named({ user: undefined, org: 'acme' }).result.passes, true, 'without one of them it has no key')
  assert.throws(() => named({ user: 'ada', team: 'math' }), { code: 'KEY_INVALID', mend: 'must have one key for each of org, user' })
})

test('what cannot be metered is refused', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(fixedWindow({ limit: 9, window: 'day' }), { clock })
  const { open: _, ...foreign } = {
    policy: limiter.policy,
    take: limiter.take.bind(limiter),
    peek: limiter.peek.bind(limiter),
    refund: limiter.refund.bind(limiter),
    open: 0,
  }
  for (const [options, code, option] of [
    [{ limiter: foreign, cost: 'metered' }, 'OPTION_INVALID', 'cost'],
    [{ limiter, cost: 'meter' }, 'COST_INVALID', 'cost'],
    [{ limiter, cost: { most: 0 } }, 'COST_INVALID', 'most'],
    [{ limiter, cost: { mots: 5 } }, 'OPTION_UNKNOWN', 'mots'],
    [{ limiter, cost: 'metered', counts: 'failures' }, 'OPTION_INVALID', 'counts'],
  ] as const) {
    assert.throws(() => new Middleware(options as never), { name: 'PolicyError', code, option })
  }
})

test('a hold is renewed as long as its response is open', () => {
  const { clock, limiter, handle } = made({ cost: { expect: 40, ttl: '10s' } })
  const { result, request } = handle()
  const stop = result.settle?.keep?.()
  clock.advance(60_000)
  assert.equal(holdOf(request)?.held, 40)
  stop?.()
  clock.advance(60_000)
  assert.deepEqual([holdOf(request)?.held, limiter.peek('ada').remaining], [0, 100], 'and ends after its ttl otherwise')
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { promisedLimiter } from 'sluicegate-testkit/adapters/harness.js'
import { type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { createLimiter } from '../create-limiter.js'
import { allOf, concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import type { Limiter } from '../limiter.js'
import { manualClock } from '../time/clock.js'
import { Middleware, type MiddlewareResult, type Pass } from './middleware.js'
import type { Counts, MiddlewareOptions } from './middleware-options.js'

const KEY = '192.0.2.1'

function keeperOf(limiter: Limiter, counts: Counts<PlainRequest>, clock = manualClock()): Middleware<PlainRequest> {
  return new Middleware<PlainRequest>({ limiter, counts }, { nowMs: () => clock.nowMs() })
}

function pass(middleware: Middleware<PlainRequest>): Pass {
  const outcome = middleware.handle(plainFacts({}), {})
  assert.ok(!(outcome instanceof Promise) && outcome.passes)
  return outcome
}

const POLICIES: readonly Policy[] = [
  tokenBucket({ limit: 3, window: '1h' }),
  gcra({ limit: 3, window: '1h' }),
  fixedWindow({ limit: 3, window: '1h' }),
  slidingWindow({ limit: 3, window: '1h' }),
  slidingLog({ limit: 3, window: '1h' }),
]

for (const policy of POLICIES) {
  test(`under ${policy.name} only failures count when only failures are to`, () => {
    const clock = manualClock()
    using limiter = createLimiter(policy, { clock })
    const middleware = keeperOf(limiter, 'failures')
    for (const status of [200, 302, 204, 200, 399]) pass(middleware).settle?.(status)
    assert.equal(limiter.peek(KEY).remaining, 3)
    for (const status of [400, 401, 500]) pass(middleware).settle?.(status)
    assert.equal(statusOf(middleware.handle(plainFacts({}), {}) as Pass), 429)
  })

  test(`under ${policy.name} what is under way counts until it turns out not to`, () => {
    using limiter = createLimiter(policy, { clock: manualClock() })
    const middleware = keeperOf(limiter, 'failures')
    const under = [pass(middleware), pass(middleware), pass(middleware)]
    assert.equal(statusOf(middleware.handle(plainFacts({}), {}) as Pass), 429)
    for (const each of under) each.settle?.(200)
    assert.equal(limiter.peek(KEY).remaining, 3)
  })
}

test('with counts successes only these count, and a function may decide', () => {
  using limiter = createLimiter(POLICIES[0] as Policy, { clock: manualClock() })
  const successes = keeperOf(limiter, 'successes')
  for (const status of [404, 500, 400]) pass(successes).settle?.(status)
  assert.equal(limiter.peek(KEY).remaining, 3)
  pass(successes).settle?.(201)
  assert.equal(limiter.peek(KEY).remaining, 2)
  const logins = keeperOf(limiter, (status) => status === 401)
  pass(logins).settle?.(500)
  pass(logins).settle?.(401)
  assert.equal(limiter.peek(KEY).remaining, 1)
})

test('a client that is gone before its response ended is counted, or breaking off would be free', () => {
  for (const counts of ['failures', 'successes'] as const) {
    using limiter = createLimiter(POLICIES[0] as Policy, { clock: manualClock() })
    pass(keeperOf(limiter, counts)).settle?.(undefined)
    assert.equal(limiter.peek(KEY).remaining, 2)
  }
})

test('what has come back does not come back a second time', () => {
  using limiter = createLimiter(POLICIES[0] as Policy, { clock: manualClock() })
  const middleware = keeperOf(limiter, 'failures')
  pass(middleware).settle?.(500)
  const { settle } = pass(middleware)
  for (let i = 0; i < 5; i++) settle?.(200)
  assert.equal(limiter.peek(KEY).remaining, 2)
})

test('where all count there is nothing to settle', () => {
  assert.equal(pass(new Middleware({ policy: POLICIES[0] as Policy })).settle, undefined)
})

// Of a log only the newest request comes back.
for (const policy of POLICIES.filter(({ algorithm }) => algorithm !== 'sliding-log')) {
  test(`under ${policy.name} a client that never fails is never denied, however many requests are under way`, () => {
    const random = new Random(5)
    const clock = manualClock()
    using limiter = createLimiter(policy, { clock })
    const middleware = keeperOf(limiter, 'failures', clock)
    const under: Pass[] = []
    for (let i = 0; i < 2_000; i++) {
      if (under.length === 2) under.splice(random.integer(0, 1), 1)[0]?.settle?.(200)
      under.push(pass(middleware))
      clock.advance(random.integer(0, 400))
    }
  })
}

test('a response that ends in a later window brings nothing back there', () => {
  const clock = manualClock()
  using limiter = createLimiter(fixedWindow({ limit: 3, window: '10s' }), { clock })
  const middleware = keeperOf(limiter, 'failures', clock)
  const late = [pass(middleware), pass(middleware)]
  clock.advance(10_000)
  for (const status of [500, 500, 500]) pass(middleware).settle?.(status)
  for (const each of late) each.settle?.(200)
  assert.equal(statusOf(middleware.handle(plainFacts({}), {}) as Pass), 429)
})

test('a response that ends when its key was full for long brings nothing back', () => {
  for (const policy of [tokenBucket({ limit: 3, window: '9s' }), slidingLog({ limit: 3, window: '9s' })]) {
    const clock = manualClock()
    using limiter = createLimiter(policy, { clock })
    const middleware = keeperOf(limiter, 'failures', clock)
    const late = [pass(middleware), pass(middleware), pass(middleware)]
    clock.advance(9_000)
    for (const status of [500, 500, 500]) pass(middleware).settle?.(status)
    for (const each of late) each.settle?.(200)
    assert.equal(statusOf(middleware.handle(plainFacts({}), {}) as Pass), 429)
  }
})

test('whatever clients do, at most one burst more counts than the policy allows, and under a fixed window none', () => {
  const random = new Random(77)
  const policies = [
    tokenBucket({ limit: 5, window: '10s' }),
    fixedWindow({ limit: 5, window: '10s' }),
    slidingLog({ limit: 5, window: '10s' }),
  ]
  for (const policy of policies) {
    const beyond = policy.algorithm === 'fixed-window' ? 0 : 5
    for (let run = 0; run < 60; run++) {
      const clock = manualClock()
      using limiter = createLimiter(policy, { clock })
      const middleware = keeperOf(limiter, 'failures', clock)
      const under: Pass[] = []
      /** When requests that turned out to count were let in. */
      const counted: number[] = []
      for (let i = 0; i < 120; i++) {
        const outcome = middleware.handle(plainFacts({}), {}) as Pass
        if (outcome.passes) {
          if (random.chance(0.5)) under.push(outcome)
          else {
            counted.push(clock.nowMs())
            outcome.settle?.(500)
          }
        }
        if (under.length > 0 && random.chance(0.4)) under.splice(random.integer(0, under.length - 1), 1)[0]?.settle?.(200)
        clock.advance(random.integer(0, 1_500))
      }
      for (const [from, start] of counted.entries()) {
        for (const [to, end] of counted.entries()) {
          if (to < from) continue
          const most = mostIn(policy, start, end) + beyond
          assert.ok(
            to - from + 1 <= most,
            `run ${run}: ${to - from + 1} failures under ${policy.name} within ${end - start} ms, over ${most}`,
          )
        }
      }
    }
  }
})

test('a place of concurrency is held until the response has ended, whatever counts', () => {
  for (const counts of ['all', 'failures'] as const) {
    for (const status of [200, 500, undefined]) {
      using limiter = createLimiter(concurrency({ limit: 1 }), { clock: manualClock() })
      const middleware = keeperOf(limiter, counts)
      const first = pass(middleware)
      assert.equal(statusOf(middleware.handle(plainFacts({}), {}) as Pass), 429)
      first.settle?.(status)
      pass(middleware)
    }
  }
})

test('places and tokens at once: the place comes back, and the token only of what does not count', () => {
  const clock = manualClock()
  const slots = createLimiter(concurrency({ limit: 1 }), { clock })
  const tokens = createLimiter(POLICIES[0] as Policy, { clock })
  const middleware = new Middleware<PlainRequest>({ limits: [{ limiter: slots }, { limiter: tokens }], counts: 'failures' })
  pass(middleware).settle?.(200)
  assert.deepEqual([slots.peek(KEY).remaining, tokens.peek(KEY).remaining], [1, 3])
  pass(middleware).settle?.(500)
  assert.deepEqual([slots.peek(KEY).remaining, tokens.peek(KEY).remaining], [1, 2])
})

test('with a limiter that answers later it is the same, and a lost answer to the giving back is no error', async () => {
  const clock = manualClock()
  const limiter = createLimiter(POLICIES[0] as Policy, { clock })
  const middleware = new Middleware<PlainRequest>({ limiter: promisedLimiter(limiter), counts: 'failures' })
  const ask = async (): Promise<Pass> => (await middleware.handle(plainFacts({}), {})) as Pass
  ;(await ask()).settle?.(200)
  assert.equal(limiter.peek(KEY).remaining, 3)
  const { settle } = await ask()
  limiter.close()
  settle?.(200)
  assert.equal(statusOf(await ask()), 503)
})

/** How much a policy of 5 in 10 s may let in from one moment to another, both included. */
function mostIn(policy: Policy, startMs: number, endMs: number): number {
  switch (policy.algorithm) {
    case 'fixed-window':
      return 5 * (Math.floor(endMs / 10_000) - Math.floor(startMs / 10_000) + 1)
    case 'sliding-log':
      return 5 * (Math.floor((endMs - startMs) / 10_000) + 1)
    default:
      return 5 + Math.floor(((endMs - startMs) * 5) / 10_000 + 1e-9)
  }
}

test('whether a charge has worn off is read from the clock of the limiter', () => {
  for (const wrapped of [false, true]) {
    const clock = manualClock()
    using limiter = createLimiter(fixedWindow({ limit: 3, window: '1h' }), { clock, shadow: wrapped })
    const middleware = new Middleware<PlainRequest>({ limiter, counts: 'failures' })
    const long = pass(middleware)
    clock.advance(2 * 3_600_000)
    pass(middleware)
    long.settle?.(200)
    assert.equal(limiter.peek(KEY).remaining, 2)
  }
})

describe('counts all of', () => {
  const KEY = '192.0.2.1'
  const BUCKET = tokenBucket({ limit: 3, window: '1h' })

  function pass(middleware: Middleware<PlainRequest>): Pass {
    const outcome = middleware.handle(plainFacts({}), {}) as MiddlewareResult
    assert.ok(outcome.passes)
    return outcome
  }

  test('of allOf each policy takes back by its own rule, for a key of its own too: nothing goes to a later window of the shorter one', () => {
    const both = allOf([fixedWindow({ limit: 5, window: '1m' }), fixedWindow({ limit: 100, window: '1h' })])
    for (const options of [{}, { policyFor: () => both }]) {
      const clock = manualClock()
      using limiter = createLimiter('policyFor' in options ? BUCKET : both, { clock, ...options })
      const middleware = new Middleware<PlainRequest>({ limiter, counts: 'failures' })
      const late = pass(middleware)
      clock.advance(60_000)
      pass(middleware)
      late.settle?.(200)
      assert.deepEqual(
        limiter.peek(KEY).parts?.map(({ remaining }) => remaining),
        [4, 99],
      )
    }
  })

  test('several limits refund each until an end of its own, so that the shorter one holds', () => {
    const clock = manualClock()
    using minute = createLimiter(fixedWindow({ name: 'minute', limit: 5, window: '1m' }), { clock })
    using hour = createLimiter(fixedWindow({ name: 'hour', limit: 100, window: '1h' }), { clock })
    const options: MiddlewareOptions<PlainRequest> = { limits: [{ limiter: minute }, { limiter: hour }], counts: 'failures' }
    const middleware = new Middleware(options, { nowMs: () => clock.nowMs() })
    const late = Array.from({ length: 5 }, () => pass(middleware))
    clock.advance(60_000)
    for (let i = 0; i < 5; i++) pass(middleware).settle?.(500)
    for (const each of late) each.settle?.(200)
    assert.equal(statusOf(middleware.handle(plainFacts({}), {}) as MiddlewareResult), 429)
    assert.equal(hour.peek(KEY).remaining, 95)
  })
})

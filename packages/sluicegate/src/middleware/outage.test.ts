import assert from 'node:assert/strict'
import { test } from 'node:test'
import { promisedLimiter } from 'sluicegate-testkit/adapters/harness.js'
import { headerOf, type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { unhandledRejections } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision/decision.js'
import { StoreError } from '../errors.js'
import type { Limiter } from '../limiter.js'
import { allOf } from '../policy/all-of.js'
import type { Policy } from '../policy/policy.js'
import { fixedWindow, gcra, tokenBucket } from '../policy/single-policy.js'
import { manualClock } from '../time/clock.js'
import type { DenialResponse } from './denial-response.js'
import { Middleware, type MiddlewareResult } from './middleware.js'
import type { MiddlewareLimiter, MiddlewareOptions, OutageDecision } from './middleware-options.js'

const POLICY = tokenBucket({ name: 'p', limit: 2, window: '10s' })

/** A limiter that decides as one of a fleet does without its store. */
function withoutStore(policy: Policy, allowed: boolean, retryAfterMs = allowed ? 0 : 2_500): MiddlewareLimiter {
  const { limit, name } = policy
  const decision: Decision = { allowed, limit, remaining: 0, retryAfterMs, resetAfterMs: 0, policy: name, source: 'outage' }
  const out = async (): Promise<never> => {
    throw new StoreError('OUTAGE', 'the store cannot be reached')
  }
  return { policy, take: () => decision, peek: () => decision, refund: out }
}

function limited(policy: Policy = POLICY): Limiter {
  return createLimiter(policy, { clock: manualClock() })
}

async function outcomeOf(options: MiddlewareOptions<PlainRequest>, prepare?: () => void): Promise<MiddlewareResult> {
  const middleware = new Middleware<PlainRequest>(options)
  prepare?.()
  return middleware.handle(plainFacts({}), {})
}

test('a request that the limiter allows in an outage passes, and headers have only its policy', async () => {
  const outcome = await outcomeOf({ limiter: withoutStore(POLICY, true) })
  assert.deepEqual([statusOf(outcome), outcome.headers], [200, [['RateLimit-Policy', '"p";q=2;w=10']]])
})

test('what it does not let pass is answered with 503 and when to come back, not as a denial', async () => {
  const outcome = (await outcomeOf({ limiter: withoutStore(POLICY, false) })) as DenialResponse
  assert.deepEqual([outcome.status, headerOf(outcome, 'Retry-After'), headerOf(outcome, 'RateLimit')], [503, '3', undefined])
  const { type, status, detail } = JSON.parse(outcome.body)
  assert.match(type, /#temporary-reduced-capacity$/)
  assert.deepEqual([status, detail], [503, 'Try again in 3 seconds.'])
})

test('a cost that can never pass is reported as such, in an outage too', async () => {
  const limiter = withoutStore(POLICY, false, Number.POSITIVE_INFINITY)
  for (const more of [{}, { onOutage: 'open' }] as const) assert.equal(statusOf(await outcomeOf({ limiter, cost: 3, ...more })), 422)
})

test('onOutage overrules the limiter: open lets pass, closed does not', async () => {
  assert.equal(statusOf(await outcomeOf({ limiter: withoutStore(POLICY, false), onOutage: 'open' })), 200)
  const shut = await outcomeOf({ limiter: withoutStore(POLICY, true), onOutage: 'closed' })
  assert.deepEqual([statusOf(shut), headerOf(shut, 'Retry-After')], [503, '1'])
})

for (const isLater of [false, true]) {
  test(`a limiter that ${isLater ? 'rejects' : 'throws'} is an outage: closed by default`, async () => {
    for (const counts of ['all', 'failures'] as const) {
      for (const [more, status] of [
        [{}, 503],
        [{ onOutage: 'open' }, 200],
        [{ onOutage: () => undefined }, 503],
      ] as const) {
        const limiter = limited()
        const asked = isLater ? promisedLimiter(limiter) : limiter
        assert.equal(statusOf(await outcomeOf({ limiter: asked, counts, ...more }, () => limiter.close())), status)
      }
    }
  })
}

test('onOutage is called with each decision without the store, and with the error', async () => {
  const seen: OutageDecision[] = []
  const onOutage = (outage: OutageDecision): undefined => void seen.push(outage)
  await outcomeOf({ limiter: withoutStore(POLICY, true), onOutage })
  const limiter = limited()
  await outcomeOf({ limiter, onOutage }, () => limiter.close())
  await outcomeOf({ limiter: limited(), onOutage })
  assert.deepEqual(
    seen.map(({ decision, error }) => [decision.allowed, error?.code]),
    [
      [true, undefined],
      [false, 'CLOSED'],
    ],
  )
})

test('what onOutage returns is a choice, none, or refused', async () => {
  const limiter = withoutStore(POLICY, true)
  const seen: unknown[] = []
  const none = [() => undefined, () => null, () => seen.push('outage'), () => true, () => ({ logged: true })]
  for (const onOutage of none) assert.equal(statusOf(await outcomeOf({ limiter, onOutage: onOutage as never })), 200)
  const rejects = async (): Promise<never> => {
    throw new Error('unhandled')
  }
  const reasons = await unhandledRejections(async () => {
    for (const onOutage of [() => 'local', async () => 'open', rejects]) {
      await assert.rejects(outcomeOf({ limiter, onOutage: onOutage as never }), { code: 'OPTION_INVALID', option: 'onOutage' })
    }
  })
  assert.deepEqual(reasons, [])
})

test('an answer that is not a decision is an outage', async () => {
  const denied = { ...(withoutStore(POLICY, false).take('') as Decision), source: 'store' } as const
  const answers: unknown[] = [undefined, null, 'no', {}, { error: 'too many' }, { allowed: false }, { ...denied, allowed: 'no' }]
  for (const wrong of [Number.NaN, undefined, null, -1, '5']) {
    answers.push(
      { ...denied, remaining: wrong },
      { ...denied, retryAfterMs: wrong },
      { ...denied, resetAfterMs: wrong },
      { ...denied, limit: wrong },
    )
  }
  answers.push({ ...denied, parts: {} }, { ...denied, parts: [{ allowed: false }] }, { ...denied, policy: undefined })
  const seen: OutageDecision[] = []
  for (const answer of answers) {
    for (const take of [() => answer, async () => answer]) {
      const limiter = { ...withoutStore(POLICY, true), take, peek: take } as MiddlewareLimiter
      const outcome = (await outcomeOf({ limiter, onOutage: (outage) => void seen.push(outage) })) as DenialResponse
      assert.deepEqual([outcome.status, headerOf(outcome, 'RateLimit'), headerOf(outcome, 'Retry-After')], [503, undefined, '1'])
      assert.equal(statusOf(await outcomeOf({ limiter, onOutage: 'open' })), 200)
      assert.equal(statusOf(await outcomeOf({ limits: [{ limiter }, { limiter: limited(gcra({ limit: 1, window: 1 })) }] })), 503)
    }
  }
  assert.ok(seen.every(({ error }) => error?.code === 'OUTAGE' && /is not a decision/.test(error.message)))
  assert.equal(seen.length, 2 * answers.length)
  const whole = { ...withoutStore(POLICY, true), take: async () => denied }
  assert.equal(statusOf(await outcomeOf({ limiter: whole })), 429)
})

test('an error that is no outage is not taken for one', async () => {
  const broken: MiddlewareLimiter = {
    ...withoutStore(POLICY, true),
    take: () => {
      throw new RangeError('a fault')
    },
  }
  await assert.rejects(outcomeOf({ limiter: broken, onOutage: 'open' }), RangeError)
})

test('of several limits one without its store answers 503, and the others are not charged', async () => {
  const clock = manualClock()
  const own = createLimiter(gcra({ name: 'own', limit: 2, window: '1h', burst: 2 }), { clock })
  const outcome = await outcomeOf({ limits: [{ limiter: own }, { limiter: withoutStore(POLICY, false) }] })
  assert.equal(statusOf(outcome), 503)
  assert.equal(own.peek('192.0.2.1').remaining, 2)
})

test('where a limit of this process denies, one without its store is not asked', async () => {
  const own = limited(gcra({ name: 'own', limit: 1, window: '1h' }))
  own.take('192.0.2.1')
  const seen: OutageDecision[] = []
  const limits = [{ limiter: own }, { limiter: withoutStore(POLICY, false) }]
  const outcome = (await outcomeOf({ limits, onOutage: (outage) => void seen.push(outage) })) as DenialResponse
  assert.deepEqual([outcome.status, headerOf(outcome, 'Retry-After'), seen.length], [429, '3600', 0])
  assert.deepEqual(JSON.parse(outcome.body)['violated-policies'], ['own'])
})

test('of several limits onOutage is called once for one request, and its choice holds', async () => {
  const choices = ['open', 'closed'] as const
  let seen = 0
  const middleware = new Middleware<PlainRequest>({
    limits: [{ limiter: limited(gcra({ name: 'own', limit: 2, window: '1h', burst: 2 })) }, { limiter: withoutStore(POLICY, true) }],
    onOutage: () => choices[seen++],
  })
  const statuses = [await middleware.handle(plainFacts({}), {}), await middleware.handle(plainFacts({}), {})].map(statusOf)
  assert.deepEqual([statuses, seen], [[200, 503], 2])
})

test('in an outage headers describe all policies of allOf, whatever onOutage returns', async () => {
  const both = allOf([fixedWindow({ name: 'second', limit: 10, window: '1s' }), fixedWindow({ name: 'day', limit: 1_000, window: 'day' })])
  const seen = '"second";q=10;w=1, "day";q=1000;w=86400'
  const decided = { ...(withoutStore(both, true).take('') as Decision), policy: 'second' }
  const parts = [decided, { ...decided, policy: 'day' }]
  const apart: MiddlewareLimiter = { ...withoutStore(both, true), take: () => ({ ...decided, parts }) }
  for (const isShut of [false, true]) {
    for (const onOutage of ['open', 'closed'] as const) {
      const shut = limited(both)
      const outcome = await outcomeOf({ limiter: isShut ? shut : apart, onOutage }, () => shut.close())
      assert.deepEqual([statusOf(outcome), headerOf(outcome, 'RateLimit-Policy')], [onOutage === 'open' ? 200 : 503, seen])
      if (!outcome.passes) assert.deepEqual(JSON.parse(outcome.body)['violated-policies'], ['second', 'day'])
    }
  }
})

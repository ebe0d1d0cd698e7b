import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headerOf, type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { concurrency, createLimiter, gcra, type Limiter, manualClock, PolicyError, tokenBucket } from '../index.js'
import type { DenialResponse } from './denial-response.js'
import { Middleware, type MiddlewareResult, type Pass } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

type Options = MiddlewareOptions<PlainRequest>

const TWO = tokenBucket({ name: 'two', limit: 2, window: '10s' })

function asking(options: Options): (request?: PlainRequest) => MiddlewareResult {
  const middleware = new Middleware<PlainRequest>(options)
  return (request = {}) => middleware.handle(plainFacts(request), request) as MiddlewareResult
}

function limited(): Limiter {
  return createLimiter(TWO, { clock: manualClock(), maxKeys: 10 })
}

function refused(options: object, code: string, message: RegExp): void {
  const isIt = (error: unknown): boolean => error instanceof PolicyError && error.code === code && message.test(error.message)
  assert.throws(() => new Middleware(options as Options), isIt)
}

test('the status can be chosen, for denials or for each kind', () => {
  const ask = asking({ limiter: limited(), status: 503, cost: 2 })
  assert.deepEqual([statusOf(ask()), statusOf(ask())], [200, 503])
  assert.equal(statusOf(asking({ limiter: limited(), cost: 3, status: { impossible: 413 } })()), 413)
})

test('the body is a line of text, or what a function makes of the denial', () => {
  const bodyWith = (body: Options['body']): (string | undefined)[] => {
    const ask = asking({ limiter: limited(), cost: 2, ...(body && { body }) })
    ask()
    const answer = ask() as DenialResponse
    return [headerOf(answer, 'Content-Type'), answer.body]
  }
  assert.deepEqual(bodyWith('text'), ['text/plain; charset=utf-8', 'Quota exceeded. Try again in 10 seconds.\n'])
  assert.deepEqual(
    bodyWith(({ kind }) => kind),
    ['text/plain; charset=utf-8', 'denied'],
  )
  assert.deepEqual(
    bodyWith(({ violated }) => ({ violated })),
    ['application/json', '{"violated":["two"]}'],
  )
  // One that is always the same needs no function.
  assert.deepEqual(bodyWith('Slow down, please.'), ['text/plain; charset=utf-8', 'Slow down, please.'])
  assert.deepEqual(bodyWith({ error: 'slow down' }), ['application/json', '{"error":"slow down"}'])
  assert.deepEqual(bodyWith({ type: 'text/html', text: '<p>' }), ['text/html', '<p>'])
  assert.deepEqual(
    bodyWith(() => ({ type: 'text/html', text: '<p>' })),
    ['text/html', '<p>'],
  )
})

test('onDenied is called with each denial and may change the answer', () => {
  const seen: string[] = []
  const ask = asking({
    limiter: limited(),
    cost: 2,
    onDenied({ decision, violated }, { user = '' }) {
      seen.push(`${user} ${violated} ${decision.retryAfterMs}`)
      return user === 'ada' ? { status: 420, headers: [['X-Why', 'calm']], body: 'calm down' } : undefined
    },
  })
  ask({ user: 'ada' })
  const answer = ask({ user: 'ada' }) as DenialResponse
  assert.deepEqual(
    [answer.status, answer.body, headerOf(answer, 'X-Why'), headerOf(answer, 'Retry-After')],
    [420, 'calm down', 'calm', '10'],
  )
  assert.equal(statusOf(ask({ user: 'bob' })), 429)
  assert.deepEqual(seen, ['ada two 10000', 'bob two 10000'])
})

test('what onDenied or body returns is looked at before any of it is written', async () => {
  const wrong: [Options, RegExp][] = [
    [{ onDenied: () => ({ status: 99 }) }, /^onDenied: must be the status/],
    [{ onDenied: () => ({ status: 204 }) }, /^onDenied: must be the status of a response with a body/],
    [{ onDenied: () => ({ status: Number.NaN }) }, /^onDenied/],
    [
      { onDenied: () => new Response('{}', { headers: { 'set-cookie': 'a=1' } }) as never },
      /^onDenied: must return \{ status, headers, body \}/,
    ],
    [{ onDenied: () => ({ headers: { 'X-Asked': 'a' } }) as never }, /^onDenied: must return headers as an array/],
    [{ onDenied: async () => ({ headers: [['X-Asked', 'a\r\nb']] }) }, /^onDenied: must contain headers/],
    [{ onDenied: () => ({ headers: [['X-Price', '\u20ac']] }) }, /^onDenied/],
    [{ onDenied: () => ({ headers: [['X LimitResult', 'a']] }) }, /^onDenied/],
    [{ onDenied: () => ({ headers: ['X-Asked'] as never }) }, /^onDenied/],
    [{ onDenied: () => ({ headers: [['content-Length', '3']] }) }, /^onDenied: must not contain content-Length/],
    [{ onDenied: () => ({ headers: [['Transfer-Encoding', 'chunked']] }) }, /^onDenied: must not contain Transfer-Encoding/],
    [{ onDenied: () => ({ headers: [['X-Asked', 5]] as never }) }, /^onDenied/],
    [{ onDenied: () => ({ body: 5 as never }) }, /^onDenied: must be a string/],
    [{ body: () => undefined as never }, /^body: must be a string/],
    [{ body: async () => ({ type: 'text/plain\n', text: '' }) }, /^body: must contain headers/],
  ]
  for (const [options, message] of wrong) {
    const middleware = new Middleware<PlainRequest>({ limiter: limited(), cost: 3, ...options })
    const isIt = (error: unknown): boolean => error instanceof PolicyError && error.code === 'OPTION_INVALID' && message.test(error.message)
    await assert.rejects(async () => middleware.handle(plainFacts({}), {}), isIt)
  }
})

test('other values that onDenied returns change nothing', () => {
  const list: string[] = []
  const returned = [() => list.push('denied') as never, () => null as never, () => 'yes' as never, () => new Map() as never]
  for (const onDenied of returned) assert.equal(statusOf(asking({ limiter: limited(), cost: 3, onDenied })()), 422)
  assert.deepEqual(list, ['denied'])
})

test('what onDenied returns is misspelt where it is a plain object of other names', () => {
  for (const onDenied of [() => ({ headesr: [] }), () => ({ status: 420, bdy: 'calm' }), () => JSON.parse('{"logged":true}')]) {
    const ask = asking({ limiter: limited(), cost: 3, onDenied: onDenied as never })
    assert.throws(ask, { name: 'PolicyError', code: 'OPTION_UNKNOWN' })
  }
})

test('the version of the headers, or all their options, can be chosen', () => {
  assert.equal(headerOf(asking({ limiter: limited(), headers: 'draft-7' })(), 'RateLimit'), 'limit=2, remaining=1, reset=5')
  const seen = asking({ limiter: limited(), headers: { version: 'x-ratelimit', reset: 'delta-seconds' } })()
  assert.equal(headerOf(seen, 'X-RateLimit-Reset'), '5')
  assert.deepEqual(asking({ limiter: limited(), headers: 'none' })().headers, [])
  assert.match(headerOf(asking({ limiter: limited(), unit: 'content-bytes' })(), 'RateLimit-Policy') ?? '', /qu="content-bytes"/)
})

test('a hook that fails leaves no place taken', async () => {
  const clock = manualClock()
  const slots = createLimiter(concurrency({ name: 'slots', limit: 1 }), { clock })
  const dark = createLimiter(gcra({ name: 'dark', limit: 1, window: '1h' }), { clock })
  const fault = new Error('a fault')
  const hooks: Options['onDenied'][] = [
    () => {
      throw fault
    },
    async () => {
      throw fault
    },
  ]
  for (const onDenied of hooks) {
    dark.take('192.0.2.1')
    const middleware = new Middleware<PlainRequest>({
      limits: [{ limiter: slots }, { limiter: dark, shadow: true }],
      ...(onDenied && { onDenied }),
    })
    await assert.rejects(async () => middleware.handle(plainFacts({}), {}), fault)
    assert.equal(slots.peek('192.0.2.1').remaining, 1)
  }
})

test('when counts fails permits are released all the same, and the request counts', () => {
  const clock = manualClock()
  const limits = [
    { limiter: createLimiter(concurrency({ name: 'slots', limit: 1 }), { clock }) },
    { limiter: createLimiter(TWO, { clock }) },
  ]
  const counts = (): boolean => {
    throw new RangeError('a fault')
  }
  const { settle } = asking({ limits, counts })() as Pass
  assert.throws(() => settle?.(200), RangeError)
  assert.deepEqual(
    limits.map(({ limiter }) => limiter.peek('192.0.2.1').remaining),
    [1, 1],
  )
})

test('wrong options are refused where the middleware is made', () => {
  const limiter = limited()
  refused({}, 'OPTION_INVALID', /^policy: or limiter must be given/)
  refused({ policy: TWO, limiter }, 'OPTION_INVALID', /^policy/)
  refused({ policy: TWO, windowMs: 5 }, 'OPTION_UNKNOWN', /^windowMs: is not one of policy, limiter, key/)
  refused({ limiter: {} }, 'OPTION_INVALID', /^limiter: must be a limiter/)
  refused({ policy: { limit: 5 } }, 'POLICY_INVALID', /./)
  refused({ limiter, key: 'ip' }, 'OPTION_INVALID', /^key/)
  refused({ limiter, cost: -1 }, 'COST_INVALID', /^cost/)
  refused({ limiter, shadow: 1 }, 'OPTION_INVALID', /^shadow/)
  refused({ limiter, unit: 'apples' }, 'OPTION_INVALID', /^unit/)
  refused({ limiter, problem: 'quota-exceeded' }, 'OPTION_UNKNOWN', /^problem: .* give body a function/)
  refused({ limiter, banAfter: {} }, 'OPTION_UNKNOWN', /createLimiter\(policy, \{ banAfter \}\)/)
  refused({ limiter, counts: 'some' }, 'OPTION_INVALID', /^counts/)
  for (const status of [99, 600, 204, 205, 304, null, 'denied']) refused({ limiter, status }, 'OPTION_INVALID', /^status/)
  refused({ limiter, status: { toString: 429 } }, 'OPTION_UNKNOWN', /^status.toString/)
  refused({ limiter, status: { refused: 429 } }, 'OPTION_UNKNOWN', /^status.refused/)
  refused({ limiter, headers: 'draft-3' }, 'OPTION_INVALID', /^version/)
  refused({ limiter, body: 'html' }, 'OPTION_INVALID', /^body/)
  refused({ limiter, onOutage: 'local' }, 'OPTION_INVALID', /^onOutage/)
  refused({ limits: [] }, 'OPTION_INVALID', /^limits/)
  refused({ limits: [{ limiter, status: 5 }] }, 'OPTION_UNKNOWN', /^status/)
  refused({ limiter, limits: [{ limiter }] }, 'OPTION_INVALID', /^limiter: belongs into each of limits/)
})

test('what is to be a function of requests is one, or refused', () => {
  for (const option of ['skip', 'onDenied']) {
    for (const value of [true, '/health', 5, null, { status: 420 }]) {
      refused({ policy: TWO, [option]: value }, 'OPTION_INVALID', new RegExp(`^${option}: must be a function`))
    }
  }
})

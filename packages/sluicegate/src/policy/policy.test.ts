import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PolicyError } from '../errors.js'
import { checkedPolicy } from './checked-policy.js'
import { concurrency, fixedWindow, gcra, type RateOptions, slidingLog, slidingWindow, tokenBucket } from './single-policy.js'

test('a policy is frozen data with its defaults filled in', () => {
  const policy = tokenBucket({ limit: 100, window: '1m' })
  assert.deepEqual(policy, { algorithm: 'token-bucket', name: 'token-bucket-100-1m', limit: 100, windowMs: 60_000, burst: 100 })
  assert.ok(Object.isFrozen(policy))
  assert.deepEqual(gcra({ limit: 1, window: 1500, burst: 7, name: 'slow & steady' }), {
    algorithm: 'gcra',
    name: 'slow & steady',
    limit: 1,
    windowMs: 1500,
    burst: 7,
  })
})

test('the whole range of options is accepted', () => {
  for (const options of [
    { limit: 1, window: '30d' },
    { limit: 1, window: '366d' },
    { limit: 1_000_000_000, window: '1s' },
    { limit: 1_000_000_000, window: '366d' },
    { limit: 1, window: 1 },
    { limit: 1, window: 1.001 },
    { limit: 7, window: 17_417_771_096.719 },
    { limit: 100, window: '1s', burst: 1_000_000_000 },
    { limit: 1, window: '1s', name: '~'.repeat(120) },
  ] as RateOptions[]) {
    assert.equal(tokenBucket(options).limit, options.limit)
    assert.equal(gcra(options).limit, options.limit)
  }
})

const GOOD = { limit: 10, window: '1s' } as const
const FAULTS: readonly (readonly [string, string, readonly object[]])[] = [
  [
    'LIMIT_INVALID',
    'limit',
    [0, -1, 0.35, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1_000_000_001, '10', null, undefined, 10n].map((limit) => ({
      ...GOOD,
      limit,
    })),
  ],
  ['BURST_INVALID', 'burst', [0, -1, 0.5, Number.NaN, 1_000_000_001, '1', null].map((burst) => ({ ...GOOD, burst }))],
  [
    'WINDOW_INVALID',
    'window',
    [
      0,
      0.5,
      0.999,
      1.0005,
      1.0000004,
      1.00000001,
      60_000.0000001,
      31_622_399_999.0001,
      -1,
      '0s',
      '367d',
      'soon',
      Number.NaN,
      null,
      undefined,
    ].map((window) => ({ ...GOOD, window })),
  ],
  ['NAME_INVALID', 'name', ['', 'x'.repeat(121), 'caf\u00e9', 'a\nb', 'a\0', 7, null].slice(0, 6).map((name) => ({ ...GOOD, name }))],
  ['RANGE_UNSUPPORTED', 'burst', [{ limit: 1, window: '366d', burst: 24 }]],
  ['RANGE_UNSUPPORTED', 'limit', [{ limit: 999_999_937, window: 1, burst: 1 }]],
]

for (const [code, option, cases] of FAULTS) {
  test(`a policy with a bad ${option} is refused with ${code}, the option and the value`, () => {
    for (const options of cases) {
      const wrong = (options as Record<string, unknown>)[option]
      for (const policyOf of [tokenBucket, gcra]) {
        assert.throws(
          () => policyOf(options as RateOptions),
          (error) => error instanceof PolicyError && error.code === code && error.option === option && Object.is(error.value, wrong),
          `${option}: ${String(wrong)}`,
        )
      }
    }
  })
}

test('an unknown option is refused by name, and so is what is no object', () => {
  assert.throws(() => tokenBucket({ ...GOOD, brust: 3 } as RateOptions), { code: 'OPTION_UNKNOWN', option: 'brust', value: 3 })
  for (const wrong of [null, undefined, 10, '10/s']) assert.throws(() => gcra(wrong as never), { code: 'OPTION_INVALID' })
})

test('the error for a fraction per second says how to widen the window', () => {
  assert.throws(() => tokenBucket({ limit: 0.35, window: '1s' }), /0\.35 a second is 7 per 20s/)
})

test('the error for a fractional burst or concurrency limit does not suggest a wider window', () => {
  for (const make of [() => tokenBucket({ ...GOOD, burst: 1.5 }), () => concurrency({ limit: 1.5 })]) {
    assert.throws(make, (error: Error) => /must be an integer from 1 to/.test(error.message) && !/window/.test(error.message))
  }
})

test('a message shows a bigint as it is written', () => {
  assert.throws(() => tokenBucket({ ...GOOD, limit: 10n as never }), /\(got 10n\)$/)
})

test('a window that was counted out is whole microseconds, up to what doubles lose on the way', () => {
  assert.equal(tokenBucket({ limit: 1, window: 1000 * (0.1 + 0.2) }).windowMs, 300)
  assert.deepEqual(gcra({ limit: 1, window: 1.1 * 3 }), gcra({ limit: 1, window: 3.3 }))
})

test('the error for an unknown unit lists the units and names the policy', () => {
  for (const [policyOf, window] of [
    [tokenBucket, 'month'],
    [slidingWindow, 'day'],
    [slidingLog, 'week'],
    [fixedWindow, 'hour'],
    [fixedWindow, 'Month'],
  ] as const) {
    assert.throws(() => policyOf({ limit: 1, window: window as never }), {
      code: 'WINDOW_INVALID',
      message: `window: must be milliseconds >= 0 or a string such as '250ms', '10s', '1m', '24h', '30d'; only fixedWindow() also takes 'day', 'week', 'month', 'year' (got "${window}")`,
    })
  }
  assert.throws(
    () => concurrency({ limit: 1, ttl: 'day' as never }),
    (error: Error) => !/fixedWindow/.test(error.message),
  )
})

test('a policy that was cloned is checked again, whatever it claims', () => {
  const policy = gcra({ limit: 3, window: '1s', name: 'cloned' })
  assert.deepEqual(checkedPolicy(structuredClone(policy)), policy)
  assert.throws(() => checkedPolicy({ ...policy, algorithm: 'leaky-bucket' }), { code: 'POLICY_INVALID' })
  assert.throws(() => checkedPolicy({ ...policy, limit: 0 }), { code: 'LIMIT_INVALID' })
  for (const wrong of [null, undefined, 'gcra', 7, []])
    assert.throws(() => checkedPolicy(wrong), { code: 'POLICY_INVALID', option: 'policy' })
})

test('options of Bottleneck and p-queue in the place of a policy lead to their guide', () => {
  for (const options of [{ minTime: 100 }, { maxConcurrent: 5 }, { reservoir: 40 }, { concurrency: 2, intervalCap: 10, interval: 1000 }]) {
    assert.throws(
      () => checkedPolicy(options as never),
      (error) =>
        error instanceof PolicyError &&
        error.code === 'POLICY_INVALID' &&
        /docs\/moving-from-bottleneck\.md/.test(error.message) &&
        Object.keys(options).some((name) => error.message.includes(name)),
    )
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exactEmission, Random, type RateSpec } from 'sluicegate-testkit'
import { PolicyError } from '../errors.js'
import { HeaderWriter } from '../headers/header-writer.js'
import { readRateLimit } from '../headers/read-rate-limit.js'
import { createLimiter, manualClock, type Policy } from '../index.js'
import { allOf } from './all-of.js'
import { calendarOf, minuteWindow } from './calendar.js'
import { checkedPolicy } from './checked-policy.js'
import { emissionOf, numbersOf } from './policy-numbers.js'
import { concurrency, credits, fixedWindow, gcra, type RateOptions, slidingLog, slidingWindow, tokenBucket } from './single-policy.js'

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
    { limit: 834_000_000_000, window: '1s' },
    { limit: 50_000_000_000, window: '30d' },
    { limit: 750_588_768_000_000, window: '15m', burst: 1 },
    { limit: 1, window: 1, burst: 700_000_000_000 },
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
    [0, -1, 0.35, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '10', null, undefined, 10n].map((limit) => ({
      ...GOOD,
      limit,
    })),
  ],
  ['BURST_INVALID', 'burst', [0, -1, 0.5, Number.NaN, 2 ** 53, '1', null].map((burst) => ({ ...GOOD, burst }))],
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

test('the integers of any policy are the ones that exact arithmetic finds, refusals included', () => {
  let refused = 0
  let rounded = 0
  for (let seed = 1; seed <= 60_000; seed++) {
    const spec = anySpec(new Random(seed))
    const exact = exactEmission(spec)
    const expected = exact && { unitsPerUs: Number(exact.q), unitsPerToken: Number(exact.perToken), capacity: Number(exact.capacity) }
    assert.deepEqual(emissionOrRefusal(spec), expected, `seed ${seed}: ${JSON.stringify(spec)}`)
    if (exact === undefined) refused++
    else if (exact.perToken * BigInt(spec.limit) !== exact.q * BigInt(Math.round(spec.windowMs * 1000))) rounded++
  }
  assert.ok(refused > 1000 && rounded > 1000, `${refused} refused, ${rounded} rounded`)
})

test('a policy that no state word can hold is refused by what it is about', () => {
  const faultOf = (spec: RateSpec) => {
    try {
      emissionOf(spec)
      return undefined
    } catch (error) {
      assert.ok(error instanceof PolicyError)
      return [error.code, error.option]
    }
  }
  assert.deepEqual(faultOf({ limit: 1, windowMs: 366 * 86_400_000, burst: 24 }), ['RANGE_UNSUPPORTED', 'burst'])
  assert.deepEqual(faultOf({ limit: 999_999_937, windowMs: 1, burst: 1 }), ['RANGE_UNSUPPORTED', 'limit'])
})

/** The largest limit that the refusal of a larger one names. */
function largestOf(make: (limit: number) => unknown, limit = Number.MAX_SAFE_INTEGER): number {
  try {
    make(limit)
    return limit
  } catch (error) {
    assert.ok(
      error instanceof PolicyError && error.code === 'RANGE_UNSUPPORTED' && error.option === 'limit' && error.value === limit,
      String(error),
    )
    assert.match(error.message, /take a longer window, or count in larger units/)
    return Number(/which is (\d+)/.exec(error.message)?.[1])
  }
}

test('a limit that a window cannot count exactly is refused with the largest that it can, which is accepted', () => {
  const windows = ['1ms', '10ms', '1s', '1m', '8m', '9m', '1h', '1d', '30d', '366d'] as const
  const sizes = windows.map((window) => {
    const makers = [
      (limit: number) => tokenBucket({ limit, window }),
      (limit: number) => tokenBucket({ limit, window, burst: 1000 }),
      (limit: number) => fixedWindow({ limit, window }),
      (limit: number) => slidingWindow({ limit, window }),
    ]
    return makers.map((make, i) => {
      const largest = largestOf(make)
      make(largest)
      // A rate loses up to 0.1 % to rounding before it is refused.
      const above = i < 2 ? Math.ceil(largest * 1.0011) : largest + 1
      if (largest < Number.MAX_SAFE_INTEGER) assert.equal(largestOf(make, above), largest)
      return largest
    })
  })
  const all = Number.MAX_SAFE_INTEGER
  assert.deepEqual(sizes, [
    [834_000_000, 834_000_000, 1_561_806_289, 1_561_806_289],
    [8_340_000_000, 8_340_000_000, 12_494_450_315, 12_494_450_315],
    [834_000_000_000, 834_000_000_000, 799_644_820_200, 799_644_820_200],
    [50_040_000_000_000, 50_040_000_000_000, 51_177_268_492_846, 799_644_820_200],
    [400_320_000_000_000, 400_320_000_000_000, 409_418_147_942_772, 799_644_820_200],
    [450_360_000_000_000, 450_360_000_000_000, all, 799_644_820_200],
    [750_596_400_000_000, 3_002_400_000_000_000, all, 799_644_820_200],
    [750_556_800_000_000, all, all, 799_644_820_200],
    [749_088_000_000_000, all, all, 799_644_820_200],
    [727_315_200_000_000, all, all, 799_644_820_200],
  ])
  for (const window of ['day', 'week', 'month', 'year'] as const)
    assert.equal(
      largestOf((limit) => fixedWindow({ limit, window })),
      Number.MAX_SAFE_INTEGER,
    )
})

test('credits of any number are kept over the decades, also while their policy changes and their time base moves', () => {
  for (const limit of [5_000, 1_000_000_000, 50_000_000_000, Number.MAX_SAFE_INTEGER]) {
    const clock = manualClock(Date.UTC(2026, 8, 10))
    const limiter = createLimiter(credits({ limit }), { clock })
    limiter.take('ada', limit - 1)
    for (let year = 0; year < 60; year++) {
      clock.advance(366 * 86_400_000)
      assert.equal(limiter.peek('ada').remaining, 1, `${limit} after ${year + 1} years`)
    }
    limiter.update(credits({ limit: limit - 1 }))
    assert.equal(limiter.take('ada').allowed, false)
    limiter.refund('ada', 7)
    assert.equal(limiter.take('ada', 7).allowed, true)
  }
})

test('the ticks of a calendar are no longer than its shortest windows, those with a day that the zone skipped', () => {
  const years = [
    ['Pacific/Apia', 2011],
    ['Pacific/Kwajalein', 1993],
    ['Pacific/Kiritimati', 1994],
    ['Pacific/Kiritimati', 1995],
    ['Antarctica/Vostok', 1994],
    ['Australia/Lord_Howe', 2020],
    ['Asia/Pyongyang', 2015],
    ['Europe/Rome', 2026],
  ] as const
  for (const unit of ['day', 'week', 'month', 'year'] as const) {
    const { tickUs, numberBits, countBits } = numbersOf(fixedWindow({ limit: Number.MAX_SAFE_INTEGER, window: unit }))
    assert.deepEqual([numberBits, countBits], [3, 53])
    for (const [timeZone, year] of years) {
      let us = Date.UTC(year, 0, 2) * 1000
      while (us < Date.UTC(year + 1, 0, 2) * 1000) {
        const { startUs, endUs } = minuteWindow(calendarOf(unit, timeZone), us)
        assert.ok(endUs - startUs >= tickUs, `${unit} of ${timeZone}, ${new Date(startUs / 1000).toISOString()}`)
        us = endUs
      }
    }
  }
})

function emissionOrRefusal(spec: RateSpec): unknown {
  try {
    return emissionOf(spec)
  } catch (error) {
    assert.ok(error instanceof PolicyError)
    return undefined
  }
}

/** Over the whole range of options, accepted or not. */
function anySpec(random: Random): RateSpec {
  const windowUs = random.chance(0.3) ? random.magnitude(1, 31_622_400) * 1_000_000 : random.magnitude(1000, 366 * 86_400_000_000)
  const most = random.pick([1_000_000_000, 2 ** 53 - 1])
  return { limit: random.magnitude(1, most), windowMs: windowUs / 1000, burst: random.magnitude(1, most) }
}

function namesOf(...names: string[]): string[] {
  return allOf(names.map((name) => tokenBucket({ limit: 10, window: '1m', name }))).policies.map(({ name }) => name)
}

test('of several parts of one name the second and later ones are numbered', () => {
  assert.deepEqual(namesOf('a', 'b'), ['a', 'b'])
  assert.deepEqual(namesOf('a', 'b', 'a', 'a'), ['a', 'b', 'a 2', 'a 3'])
  assert.deepEqual(namesOf('a', 'a', 'a 2'), ['a', 'a 3', 'a 2'])
  assert.deepEqual(namesOf('a 2', 'a', 'a', 'a 2'), ['a 2', 'a', 'a 3', 'a 2 2'])
})

test('the longest names are distinguished as well, and stay valid names', () => {
  const [first, second = '', third = ''] = namesOf('x'.repeat(120), 'x'.repeat(120), 'x'.repeat(120))
  assert.deepEqual([first, second, third], ['x'.repeat(120), `${'x'.repeat(118)} 2`, `${'x'.repeat(118)} 3`])
})

test('made anew, and cloned, a policy keeps the names of its parts', () => {
  const part = tokenBucket({ limit: 10, window: '1m' })
  const policy = allOf([part, part, fixedWindow({ limit: 10, window: '1m', name: part.name })])
  assert.equal(policy.policies[0].name, 'token-bucket-10-1m')
  assert.ok(policy.policies.every(Object.isFrozen))
  assert.deepEqual(allOf(policy.policies), policy)
  assert.deepEqual(checkedPolicy(structuredClone(policy)), policy)
})

test('reports about parts of the same name can be distinguished', () => {
  const policy: Policy = allOf([tokenBucket({ limit: 10, window: '1m' }), tokenBucket({ limit: 10, window: '1m', burst: 3 })])
  using limiter = createLimiter(policy, { clock: manualClock() })
  const decision = limiter.take('ada')
  assert.deepEqual(
    decision.parts?.map((part) => part.policy),
    ['token-bucket-10-1m', 'token-bucket-10-1m 2'],
  )
  const { policies, ...binding } = readRateLimit(Object.fromEntries(new HeaderWriter().write(limiter.policy, decision)))
  assert.deepEqual(binding, { limit: 3, remaining: 2, resetAfterMs: 12_000 })
  assert.deepEqual(
    policies?.map(({ name, limit, remaining }) => [name, limit, remaining]),
    [
      ['token-bucket-10-1m', 10, 9],
      ['token-bucket-10-1m 2', 3, 2],
    ],
  )
})

test('an update may give parts one name, too', () => {
  const named = (limit: number, name: string): Policy => tokenBucket({ limit, window: '1m', name })
  using limiter = createLimiter(allOf([named(10, 'a'), named(5, 'b')]), { clock: manualClock() })
  limiter.update(allOf([named(10, 'c'), named(5, 'c')]))
  assert.deepEqual(
    limiter.take('ada').parts?.map(({ policy }) => policy),
    ['c', 'c 2'],
  )
  assert.deepEqual(
    limiter.policy.policies?.map(({ name }) => name),
    ['c', 'c 2'],
  )
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type RateLimitReading, readRateLimit } from './read-rate-limit.js'

const NOW_MS = Date.UTC(2026, 10, 21, 12, 0, 0)
const IN_A_MINUTE_S = NOW_MS / 1000 + 60

type Case = readonly [who: string, headers: Record<string, string>, reading: RateLimitReading]

const CASES: readonly Case[] = [
  [
    'draft 11',
    { 'RateLimit-Policy': '"burst";q=100;w=60;qu="requests"', RateLimit: '"burst";r=50;t=30;pk=:cHsdsRa894A=:' },
    {
      limit: 100,
      remaining: 50,
      resetAfterMs: 30_000,
      policies: [
        {
          name: 'burst',
          limit: 100,
          windowMs: 60_000,
          unit: 'requests',
          remaining: 50,
          resetAfterMs: 30_000,
          partitionKey: 'cHsdsRa894A=',
        },
      ],
    },
  ],
  [
    'draft 11 with two policies, of which the second binds, and a third without a limit',
    { 'ratelimit-policy': '"a";q=9;w=1,"b";q=99;w=60,"c";q=5', ratelimit: '"b";r=0;t=7,"a";r=3;t=1' },
    {
      limit: 99,
      remaining: 0,
      resetAfterMs: 7_000,
      policies: [
        { name: 'b', limit: 99, windowMs: 60_000, remaining: 0, resetAfterMs: 7_000 },
        { name: 'a', limit: 9, windowMs: 1_000, remaining: 3, resetAfterMs: 1_000 },
        { name: 'c', limit: 5 },
      ],
    },
  ],
  [
    'draft 11 with one policy in two partitions',
    { 'ratelimit-policy': '"a";q=9;pk=:AA==:, "a";q=8;pk=:AQ==:', ratelimit: '"a";r=3;pk=:AQ==:' },
    {
      limit: 8,
      remaining: 3,
      policies: [
        { name: 'a', limit: 8, partitionKey: 'AQ==', remaining: 3 },
        { name: 'a', limit: 9, partitionKey: 'AA==' },
      ],
    },
  ],
  ['only the policy', { 'ratelimit-policy': '"a";q=9;w=1' }, { policies: [{ name: 'a', limit: 9, windowMs: 1_000 }] }],
  [
    'draft 7',
    { 'RateLimit-Policy': '10;w=1, 100;w=60;comment="x"', RateLimit: 'limit=10, remaining=4, reset=1' },
    {
      limit: 10,
      remaining: 4,
      resetAfterMs: 1_000,
      policies: [
        { limit: 10, windowMs: 1_000 },
        { limit: 100, windowMs: 60_000 },
      ],
    },
  ],
  [
    'draft 6',
    { 'RateLimit-Policy': '10;w=1', 'RateLimit-Limit': '10', 'RateLimit-Remaining': '4', 'RateLimit-Reset': '1' },
    { limit: 10, remaining: 4, resetAfterMs: 1_000, policies: [{ limit: 10, windowMs: 1_000 }] },
  ],
  ['an older draft, with the windows in the limit', { 'RateLimit-Limit': '10, 10;w=1' }, { limit: 10 }],
  [
    'GitHub',
    { 'x-ratelimit-limit': '5000', 'x-ratelimit-remaining': '4999', 'x-ratelimit-reset': String(IN_A_MINUTE_S), 'x-ratelimit-used': '1' },
    { limit: 5000, remaining: 4999, resetAfterMs: 60_000 },
  ],
  [
    'the spelling with two hyphens',
    { 'x-rate-limit-limit': '15', 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': String(IN_A_MINUTE_S) },
    { limit: 15, remaining: 0, resetAfterMs: 60_000 },
  ],
  ['seconds until then', { 'X-RateLimit-Remaining': '586.0', 'X-RateLimit-Reset': '300' }, { remaining: 586, resetAfterMs: 300_000 }],
  ['milliseconds of Unix time', { 'X-RateLimit-Reset': String(NOW_MS + 1_500) }, { resetAfterMs: 1_500 }],
  ['microseconds of Unix time', { 'X-RateLimit-Reset': String((NOW_MS + 1_500) * 1000) }, { resetAfterMs: 1_500 }],
  ['a moment that is past', { 'X-RateLimit-Reset': String(IN_A_MINUTE_S - 600) }, { resetAfterMs: 0 }],
  [
    'both a moment and a span, of which the span is finer',
    { 'X-RateLimit-Reset': String(IN_A_MINUTE_S), 'X-RateLimit-Reset-After': '1.25' },
    { resetAfterMs: 1_250 },
  ],
  [
    'a language model with two limits, their resets as durations',
    {
      'x-ratelimit-limit-requests': '60',
      'x-ratelimit-limit-tokens': '150000',
      'x-ratelimit-remaining-requests': '59',
      'x-ratelimit-remaining-tokens': '149984',
      'x-ratelimit-reset-requests': '120ms',
      'x-ratelimit-reset-tokens': '1h6m0.5s',
    },
    {
      limit: 60,
      remaining: 59,
      resetAfterMs: 120,
      policies: [
        { name: 'requests', limit: 60, remaining: 59, resetAfterMs: 120 },
        { name: 'tokens', limit: 150_000, remaining: 149_984, resetAfterMs: 3_960_500 },
      ],
    },
  ],
  [
    'another, with dates',
    { 'anthropic-ratelimit-input-tokens-remaining': '7', 'anthropic-ratelimit-input-tokens-reset': '2026-11-21T12:01:00Z' },
    { policies: [{ name: 'input-tokens', remaining: 7, resetAfterMs: 60_000 }] },
  ],
  ['Retry-After in seconds', { 'Retry-After': '120' }, { retryAfterMs: 120_000 }],
  ['Retry-After as a date', { 'Retry-After': 'Sat, 21 Nov 2026 12:00:30 GMT' }, { retryAfterMs: 30_000 }],
  [
    'Retry-After as a date on the server’s clock',
    { 'Retry-After': 'Sat, 21 Nov 2026 09:00:30 GMT', date: 'Sat, 21 Nov 2026 09:00:00 GMT' },
    { retryAfterMs: 30_000 },
  ],
  ['Retry-After in milliseconds', { 'Retry-After': '2', 'retry-after-ms': '1250' }, { retryAfterMs: 1_250 }],
  ['nothing', { 'content-type': 'text/plain' }, {}],
]

for (const [who, headers, reading] of CASES) {
  test(`the reader understands ${who}`, () => {
    assert.deepEqual(readRateLimit(headers, { nowMs: NOW_MS }), reading)
    assert.deepEqual(readRateLimit(new Headers(headers), { nowMs: NOW_MS }), reading)
  })
}

const MALFORMED: readonly Readonly<Record<string, string | string[]>>[] = [
  { ratelimit: '"a";r=-1;t=5' },
  { ratelimit: '"a";r=1.5' },
  { ratelimit: '"a";r="1"' },
  { ratelimit: '"a;r=1' },
  { ratelimit: '"a";r=1,' },
  { ratelimit: '("a");r=1' },
  { ratelimit: '("a";r=1' },
  { ratelimit: '"a";r=@5' },
  { ratelimit: '"a";r=1;x=("y")' },
  { ratelimit: '@5;r=1' },
  { 'ratelimit-policy': '@5, %"a";q=5' },
  // An item is malformed, and with it the field: draft 11, sections 3, 4 and 7.
  { ratelimit: '"a";r=-1, "b";r=5' },
  { ratelimit: '"b";r=5, "a"' },
  { ratelimit: 'default;r=5;t=2' },
  { ratelimit: '"a";r=5, default;r=4' },
  { ratelimit: '"a";r=5.0' },
  { ratelimit: '"a";r=5;t=-1' },
  { ratelimit: '"a";r=5;t=1.5' },
  { ratelimit: '"a";r=5;pk="abc"' },
  { ratelimit: '"a";r=5;pk=abc' },
  { ratelimit: '("x" "y");z, "a";r=5' },
  { 'ratelimit-policy': '"a";q=100;w=0' },
  { 'ratelimit-policy': '"a";q=100;w=60, "b";q=100;w=0' },
  { 'ratelimit-policy': '"a";q=100;w=1.0' },
  { 'ratelimit-policy': '"a";q=100;w' },
  { 'ratelimit-policy': 'default;q=100' },
  { 'ratelimit-policy': '"a";q=-1, "b";q=3' },
  { 'ratelimit-policy': '"a";q=100;qu=requests' },
  { 'ratelimit-policy': '"a";q=100;pk="x"' },
  { 'ratelimit-policy': '100;w=0' },
  { ratelimit: 'limit=10, remaining=-1, reset=5' },
  { ratelimit: 'limit=10, remaining=4, reset=soon' },
  { ratelimit: 'limit=ten, remaining=?1' },
  { 'ratelimit-policy': '"a";w=60' },
  { 'ratelimit-policy': '?1;q=60' },
  { 'ratelimit-limit': 'many' },
  { 'x-ratelimit-limit': '0x10', 'x-ratelimit-remaining': '-1', 'x-ratelimit-reset': '1e9' },
  { 'x-ratelimit-limit': '9'.repeat(30), 'x-ratelimit-reset': '9'.repeat(30) },
  { 'retry-after': 'soon' },
  { 'retry-after': '-1' },
  { 'retry-after': 'Sat, 31 Feb 2026 12:00:30 GMT' },
  { 'retry-after': '2026' },
  { 'retry-after': '' },
  { 'x-ratelimit-reset': ' ' },
  { 'x-ratelimit-reset': '10, soon' },
  { 'x-ratelimit-reset': '2026-11-21T12:00:30+24:00' },
  { 'x-ratelimit-reset': '2026-13-21T12:00:30Z' },
]

for (const headers of MALFORMED) {
  test(`the reader ignores ${JSON.stringify(headers)}`, () => {
    // A number by itself is a year to some parsers of dates, not to this one: it is seconds.
    const reading = readRateLimit(headers, { nowMs: NOW_MS })
    assert.deepEqual(reading, headers['retry-after'] === '2026' ? { retryAfterMs: 2_026_000 } : {})
  })
}

test('a malformed field does not keep the others from being read', () => {
  const headers = { ratelimit: '"', 'ratelimit-policy': '"a";q=5', 'x-ratelimit-remaining': '4', 'retry-after': '1' }
  assert.deepEqual(readRateLimit(headers), { remaining: 4, retryAfterMs: 1_000, policies: [{ name: 'a', limit: 5 }] })
})

test('an unknown kind of item does not keep others from being read', () => {
  const a = { name: 'a', remaining: 5 }
  const seen = ['"a";r=5;ext=@1795348830', '"a";ext=@-1;r=5', '"a";r=5;ext=%"f%c3%bc"', '"a";r=5;ext=token;q=-1', '"a";x=1.5;r=5;w=?1']
  for (const ratelimit of seen) assert.deepEqual(readRateLimit({ ratelimit }), { remaining: 5, policies: [a] }, ratelimit)
  assert.deepEqual(readRateLimit({ ratelimit: '"a";r=5;pk=:AAA:' }).policies, [{ ...a, partitionKey: 'AAA' }])
  const many = Array.from({ length: 200 }, (_, i) => `;z${i}`).join('')
  assert.deepEqual(readRateLimit({ ratelimit: `"a"${many};r=5` }), { remaining: 5, policies: [a] })
  assert.deepEqual(readRateLimit({ ratelimit: 'limit=9, ext=("x"), remaining=5' }), { limit: 9, remaining: 5 })
})

test('headers of several lines are one list', () => {
  assert.deepEqual(readRateLimit({ ratelimit: ['"a";r=1', '"b";r=0'] }).remaining, 0)
})

test('names that objects inherit are no headers', () => {
  assert.deepEqual(readRateLimit(Object.create({ 'retry-after': '5' })), {})
  assert.deepEqual(readRateLimit(JSON.parse('{"__proto__": {"retry-after": "5"}, "constructor": "1"}')), {})
})

describe('cached reading', () => {
  const NOW_MS = Date.UTC(2026, 10, 21, 12, 0, 0)
  const IN_A_MINUTE_S = NOW_MS / 1000 + 60

  test('the quota of a cached response is not used, in any version', () => {
    const seen: readonly Record<string, string>[] = [
      { ratelimit: '"a";r=0;t=60', 'ratelimit-policy': '"a";q=5;w=60' },
      { ratelimit: 'limit=10, remaining=0, reset=60' },
      { 'ratelimit-limit': '10', 'ratelimit-remaining': '0', 'ratelimit-reset': '60' },
      { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(IN_A_MINUTE_S) },
      { 'x-ratelimit-remaining-requests': '0', 'anthropic-ratelimit-tokens-remaining': '0' },
    ]
    for (const headers of seen) {
      for (const age of ['30', '1', '30, 0', '9'.repeat(40)])
        assert.deepEqual(readRateLimit({ ...headers, Age: age }, { nowMs: NOW_MS }), {})
      // No age, or none that can be read: it comes from the service.
      const fresh = readRateLimit(headers, { nowMs: NOW_MS })
      for (const age of ['0', '0, 30', '', '-1', '1.5', 'old'])
        assert.deepEqual(readRateLimit({ ...headers, age }, { nowMs: NOW_MS }), fresh, age)
      assert.equal(fresh.policies?.[0]?.remaining ?? fresh.remaining, 0)
    }
  })

  test('Retry-After of a cached response counts from when that was made, and not at all once it is over', () => {
    const read = (headers: Record<string, string>): number | undefined => readRateLimit(headers, { nowMs: NOW_MS }).retryAfterMs
    const made = new Date(NOW_MS - 30_000).toUTCString()
    const then = new Date(NOW_MS + 20_000).toUTCString()
    assert.equal(read({ 'retry-after': '50', age: '30' }), 20_000)
    assert.equal(read({ 'retry-after': '30', age: '30' }), undefined)
    assert.equal(read({ 'retry-after': '5', age: '30' }), undefined)
    assert.equal(read({ 'retry-after-ms': '30250', age: '30' }), 250)
    assert.equal(read({ 'retry-after': then, date: made, age: '30' }), 20_000)
    assert.equal(read({ 'retry-after': then, age: '30' }), 20_000)
  })
})

describe('read several', () => {
  const NOW_MS = Date.UTC(2026, 10, 21, 12, 0, 0)

  test('of several remaining numbers the least counts, with its other numbers', () => {
    const read = (headers: Record<string, string>): RateLimitReading => {
      const { policies, ...numbers } = readRateLimit(headers, { nowMs: NOW_MS })
      return numbers
    }
    const service = { 'X-RateLimit-Remaining': '3', 'X-RateLimit-Reset': '60' }
    const three = { remaining: 3, resetAfterMs: 60_000 }
    assert.deepEqual(read({ 'RateLimit-Limit': '10', ...service }), { limit: 10, ...three })
    assert.deepEqual(read({ 'RateLimit-Limit': '10', 'RateLimit-Remaining': '5', 'RateLimit-Reset': '9', ...service }), three)
    assert.deepEqual(read({ 'RateLimit-Remaining': '3', 'RateLimit-Reset': '9', ...service, 'X-RateLimit-Limit': '4' }), {
      limit: 4,
      remaining: 3,
      resetAfterMs: 9_000,
    })
    assert.deepEqual(read({ RateLimit: '"a";r=50;t=1', 'RateLimit-Policy': '"a";q=60', ...service }), three)
    assert.deepEqual(read({ RateLimit: '"a";r=2;t=1', ...service }), { remaining: 2, resetAfterMs: 1_000 })
    assert.deepEqual(read({ 'X-RateLimit-Limit': '100', 'X-RateLimit-Remaining-Requests': '0' }), { limit: 100, remaining: 0 })
  })

  test('of two lines, as of a gateway and what is behind it, the smaller remainder and the longer reset count', () => {
    const soon = new Date(NOW_MS + 10_000).toUTCString()
    const reset = ['10, 60', `${soon}, 60`, '60s, 10ms']
    for (const text of reset) {
      const headers = { 'x-ratelimit-remaining': '5, 0', 'x-ratelimit-reset': text }
      assert.deepEqual(readRateLimit(headers, { nowMs: NOW_MS }), { remaining: 0, resetAfterMs: 60_000 }, text)
    }
    assert.equal(readRateLimit({ 'ratelimit-remaining': ['76;w=21600', '80;w=60'] }).remaining, 76)
  })

  test('of two lines of Retry-After, which arrive as one, the longer counts', () => {
    const nowMs = Date.UTC(2026, 0, 1)
    const soon = new Date(nowMs + 5_000).toUTCString()
    const later = new Date(nowMs + 90_000).toUTCString()
    const seen = ['120, 120', '5,  30', `${later}, ${soon}`, `7, ${soon}`, soon, '5, soon', ',']
    assert.deepEqual(
      seen.map((text) => readRateLimit({ 'Retry-After': text }, { nowMs }).retryAfterMs),
      [120_000, 30_000, 90_000, 7_000, 5_000, undefined, undefined],
    )
  })

  test('a resource of which nothing is left binds, of several the one that takes longest', () => {
    const seen = (remaining: readonly [requests: string, tokens: string, output: string]): RateLimitReading => {
      const [requests, tokens, output] = remaining
      const { policies, ...numbers } = readRateLimit({
        'anthropic-ratelimit-requests-limit': '50',
        'anthropic-ratelimit-requests-remaining': requests,
        'anthropic-ratelimit-requests-reset': '30',
        'anthropic-ratelimit-tokens-remaining': tokens,
        'anthropic-ratelimit-tokens-reset': '60',
        'anthropic-ratelimit-output-tokens-remaining': output,
        'anthropic-ratelimit-output-tokens-reset': '90',
      })
      assert.equal(policies?.length, 3)
      return numbers
    }
    assert.deepEqual(seen(['49', '1', '1']), { limit: 50, remaining: 49, resetAfterMs: 30_000 })
    assert.deepEqual(seen(['49', '0', '1']), { remaining: 0, resetAfterMs: 60_000 })
    assert.deepEqual(seen(['0', '0', '0']), { remaining: 0, resetAfterMs: 90_000 })
    assert.deepEqual(seen(['0', '7', '7']), { limit: 50, remaining: 0, resetAfterMs: 30_000 })
  })

  test('of several policies of one name the first limit is that of the first policy', () => {
    const { policies, ...binding } = readRateLimit({
      'ratelimit-policy': '"a";q=10, "a";q=3',
      ratelimit: '"a";r=9;t=54, "a";r=2;t=12, "a";r=7',
    })
    assert.deepEqual(binding, { limit: 3, remaining: 2, resetAfterMs: 12_000 })
    assert.deepEqual(
      policies?.map(({ limit, remaining }) => [limit, remaining]),
      [
        [10, 9],
        [3, 2],
        [10, 7],
      ],
    )
  })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDictionary, parseList } from 'structured-headers'
import { allOf, concurrency, createLimiter, type Decision, fixedWindow, manualClock, PolicyError, tokenBucket } from '../index.js'
import { type HeaderOptions, type HeaderVersion, HeaderWriter } from './header-writer.js'

const minute = tokenBucket({ name: 'minute', limit: 100, window: '1m' })
const half: Decision = {
  allowed: true,
  limit: 100,
  remaining: 50,
  retryAfterMs: 0,
  resetAfterMs: 30_000,
  policy: 'minute',
  source: 'memory',
}
const denied: Decision = { ...half, allowed: false, remaining: 0, retryAfterMs: 300, resetAfterMs: 60_000 }
const out: Decision = { ...denied, source: 'outage' }

function seen(decision: Decision, options: HeaderOptions): Record<string, string> {
  return Object.fromEntries(new HeaderWriter(options).write(minute, decision))
}

test('draft 7 has a dictionary and policies without names', () => {
  assert.deepEqual(seen(half, { version: 'draft-7' }), {
    'RateLimit-Policy': '100;w=60',
    RateLimit: 'limit=100, remaining=50, reset=30',
  })
})

test('draft 6 has three fields and the policy', () => {
  assert.deepEqual(seen(half, { version: 'draft-6' }), {
    'RateLimit-Policy': '100;w=60',
    'RateLimit-Limit': '100',
    'RateLimit-Remaining': '50',
    'RateLimit-Reset': '30',
  })
})

test('X-RateLimit has three fields, with a reset in Unix time by default', () => {
  const nowMs = (): number => 1_700_000_000_250
  const reset = (options: HeaderOptions): string | undefined =>
    seen(half, { version: 'x-ratelimit', nowMs, ...options } as HeaderOptions)['X-RateLimit-Reset']
  assert.deepEqual(seen(half, { version: 'x-ratelimit', nowMs } as HeaderOptions), {
    'X-RateLimit-Limit': '100',
    'X-RateLimit-Remaining': '50',
    'X-RateLimit-Reset': '1700000031',
  })
  assert.equal(reset({ reset: 'epoch-milliseconds' }), '1700000030250')
  assert.equal(reset({ reset: 'delta-seconds' }), '30')
})

test('of a denial every version resets with retry-after, and has it', () => {
  assert.equal(seen(denied, { version: 'draft-7' }).RateLimit, 'limit=100, remaining=0, reset=1')
  assert.equal(seen(denied, { version: 'draft-6' })['RateLimit-Reset'], '1')
  assert.equal(seen(denied, { version: 'x-ratelimit', reset: 'delta-seconds' })['X-RateLimit-Reset'], '1')
  for (const version of ['draft-7', 'draft-6', 'x-ratelimit'] as const) assert.equal(seen(denied, { version })['Retry-After'], '1')
})

test('without a version only retry-after is written', () => {
  assert.deepEqual(seen(half, { version: 'none' }), {})
  assert.deepEqual(seen(denied, { version: 'none' }), { 'Retry-After': '1' })
})

test('drafts 8 to 10 are written as draft 11 is', () => {
  const [first, ...others] = (['draft-11', 'draft-10', 'draft-9', 'draft-8'] as const).map((version) => seen(half, { version }))
  for (const other of others) assert.deepEqual(other, first)
})

test('in an outage no version writes what is not known', () => {
  assert.deepEqual(seen(out, { version: 'draft-7' }), { 'RateLimit-Policy': '100;w=60', 'Retry-After': '1' })
  assert.deepEqual(seen(out, { version: 'draft-6' }), { 'RateLimit-Policy': '100;w=60', 'Retry-After': '1' })
  assert.deepEqual(seen(out, { version: 'x-ratelimit' }), { 'Retry-After': '1' })
})

test('for a key on a deny list no version writes what remains, nor when to come back', () => {
  using limiter = createLimiter(minute, { clock: manualClock(0), deny: ['bad'] })
  const headers = (version: HeaderVersion): Record<string, string> => seen(limiter.take('bad'), { version })
  assert.deepEqual(headers('draft-11'), { 'RateLimit-Policy': '"minute";q=100;w=60' })
  assert.deepEqual(headers('draft-7'), { 'RateLimit-Policy': '100;w=60' })
  assert.deepEqual(headers('draft-6'), { 'RateLimit-Policy': '100;w=60' })
  assert.deepEqual(headers('x-ratelimit'), {})
  const both = allOf([minute, fixedWindow({ name: 'day', limit: 9, window: 'day' })])
  using several = createLimiter(both, { clock: manualClock(0), deny: ['bad'] })
  assert.deepEqual(new HeaderWriter().write(both, several.take('bad')), [['RateLimit-Policy', '"minute";q=100;w=60, "day";q=9;w=86400']])
  const impossible = seen(limiter.take('good', 101), { version: 'draft-11' })
  assert.equal(impossible.RateLimit, '"minute";r=100;t=60', 'a cost that can never pass is no list')
})

test('of several policies the older versions list all, and write what remains of the binding one', () => {
  const policy = allOf([tokenBucket({ limit: 9, window: '9s' }), fixedWindow({ limit: 5, window: '1m' })])
  using limiter = createLimiter(policy, { clock: manualClock(0) })
  const decision = limiter.take('key', 2)
  const headers = (version: HeaderVersion): Map<string, string> => new Map(new HeaderWriter({ version }).write(policy, decision))
  assert.equal(headers('draft-7').get('RateLimit-Policy'), '9;w=9, 5;w=60')
  assert.equal(headers('draft-7').get('RateLimit'), 'limit=5, remaining=3, reset=60')
  assert.equal(headers('draft-6').get('RateLimit-Limit'), '5')
  assert.equal(headers('x-ratelimit').get('X-RateLimit-Remaining'), '3')
})

test('draft 7 never lists one number of tokens twice: the longer window stays', () => {
  const policy = allOf([
    tokenBucket({ name: 'a', limit: 10, window: '1s' }),
    tokenBucket({ name: 'b', limit: 10, window: '1m' }),
    tokenBucket({ name: 'c', limit: 20, window: '1m' }),
    tokenBucket({ name: 'd', limit: 10, window: '1m', burst: 10 }),
  ])
  using limiter = createLimiter(policy, { clock: manualClock(0) })
  const headers = new Map(new HeaderWriter({ version: 'draft-7' }).write(policy, limiter.take('key')))
  assert.equal(headers.get('RateLimit-Policy'), '10;w=60, 20;w=60')
})

test('the fields of draft 7 are structured ones', () => {
  const headers = new Map(new HeaderWriter({ version: 'draft-7' }).write(minute, half))
  const dictionary = parseDictionary(headers.get('RateLimit') ?? '')
  assert.deepEqual(
    ['limit', 'remaining', 'reset'].map((name) => dictionary.get(name)?.[0]),
    [100, 50, 30],
  )
  assert.deepEqual(
    parseList(headers.get('RateLimit-Policy') ?? '').map(([q, parameters]) => [q, parameters.get('w')]),
    [[100, 60]],
  )
})

test('for concurrency the older versions write the time to live', () => {
  const policy = concurrency({ limit: 2, ttl: '30s' })
  using limiter = createLimiter(policy, { clock: manualClock(0) })
  const headers = Object.fromEntries(new HeaderWriter({ version: 'draft-7' }).write(policy, limiter.take('key')))
  assert.deepEqual(headers, { 'RateLimit-Policy': '2;w=30', RateLimit: 'limit=2, remaining=1, reset=30' })
})

test('several answers with different policies alternate without mixing their fields', () => {
  const writer = new HeaderWriter()
  const day = fixedWindow({ name: 'day', limit: 9, window: 'day' })
  const both = [
    { policy: minute, decision: half },
    { policy: day, decision: { ...half, policy: 'day' } },
  ]
  const field = (answers: typeof both): string | undefined => new Map(writer.writeAll(answers)).get('RateLimit-Policy')
  const expected = '"minute";q=100;w=60, "day";q=9;w=86400'
  assert.deepEqual([field(both), field([...both].reverse()), field(both)], [expected, '"day";q=9;w=86400, "minute";q=100;w=60', expected])
  assert.deepEqual(writer.writeAll([]), [])
})

test('wrong options are refused by name, and a wrong secret is not repeated', () => {
  const refused = (options: object, code: string, message: RegExp): void =>
    assert.throws(
      () => new HeaderWriter(options),
      (error) => error instanceof PolicyError && error.code === code && message.test(error.message),
    )
  refused({ version: 'draft-5' }, 'OPTION_INVALID', /^version: must be one of 'draft-11'/)
  refused({ reset: 'seconds' }, 'OPTION_INVALID', /^reset/)
  refused({ unit: 'tokens' }, 'OPTION_INVALID', /^unit/)
  refused({ nowMs: 5 }, 'OPTION_INVALID', /^nowMs/)
  refused({ legacy: true }, 'OPTION_UNKNOWN', /^legacy: is not one of version/)
  refused({ partitionKey: 'hunter2' }, 'OPTION_INVALID', /^partitionKey: (?!.*hunter2)/)
})

test('a budget beyond the largest integer of a structured field is said as that integer, and read as such', () => {
  const policy = fixedWindow({ limit: Number.MAX_SAFE_INTEGER, window: 'month', name: 'budget' })
  const decision = createLimiter(policy, { clock: manualClock(0) }).take('ada', 7)
  for (const version of ['draft-11', 'draft-7', 'draft-6', 'x-ratelimit'] as const) {
    const headers = new HeaderWriter({ version }).write(policy, decision)
    const text = headers.map(([, value]) => value).join(' ')
    assert.match(text, /999999999999999/, version)
    assert.doesNotMatch(text, /\d{16}/, version)
  }
})

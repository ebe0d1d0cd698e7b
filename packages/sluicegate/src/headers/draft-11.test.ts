import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ParsedLimit, parsedLimit, parsedLimits } from 'sluicegate-testkit/keys/address-corpus.js'
import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision/decision.js'
import { allOf, concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import { manualClock } from '../time/clock.js'
import { type HeaderOptions, HeaderWriter, rateLimitHeaders } from './header-writer.js'

const FULL: Omit<Decision, 'policy' | 'limit'> = { allowed: true, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, source: 'memory' }

function headersOf(policy: Policy, decision: Partial<Decision>): Map<string, string> {
  return new Map(rateLimitHeaders(policy, { ...FULL, policy: policy.name, limit: policy.limit, ...decision }))
}

function fieldsOf(policy: Policy, decision: Partial<Decision>, options: HeaderOptions = {}, key?: string): ParsedLimit {
  const whole = { ...FULL, policy: policy.name, limit: policy.limit, ...decision }
  return parsedLimit(new HeaderWriter(options).write(policy, whole, key))
}

test('the draft’s own example comes out as written there', () => {
  const headers = headersOf(tokenBucket({ name: 'burst', limit: 100, window: '1m' }), { remaining: 50 })
  assert.deepEqual(Object.fromEntries(headers), { 'RateLimit-Policy': '"burst";q=100;w=60', RateLimit: '"burst";r=50;t=30' })
})

test('q is the burst and w the seconds that it takes to refill, rounded up', () => {
  const wide = fieldsOf(tokenBucket({ limit: 100, window: '1s', burst: 250 }), { remaining: 249 })
  assert.deepEqual([wide.q, wide.w], [250, 3])
  const narrow = fieldsOf(tokenBucket({ limit: 1000, window: '1h', burst: 10 }), { remaining: 9 })
  assert.deepEqual([narrow.q, narrow.w], [10, 36])
})

test('seven a minute refill in a minute, and not in a second more', () => {
  const { w, t } = fieldsOf(tokenBucket({ limit: 7, window: '1m' }), { remaining: 7 })
  assert.deepEqual([w, t], [60, 60])
})

test('a burst that refills within a second is scaled to w=1', () => {
  const { q, w, r } = fieldsOf(gcra({ limit: 5, window: '1s', burst: 1 }), { remaining: 1 })
  assert.deepEqual([q, w, r], [5, 1, 1])
  const fast = fieldsOf(tokenBucket({ limit: 30, window: '100ms', burst: 30 }), { remaining: 30 })
  assert.deepEqual([fast.q, fast.w, fast.r], [300, 1, 30])
})

test('a policy name is a string whatever printable characters it has', () => {
  const name = 'a "name", with \\ and ;q=9'
  assert.equal(fieldsOf(gcra({ name, limit: 5, window: '1s' }), { remaining: 1 }).name, name)
})

test('retry-after is whole seconds, rounded up, and never 0 on a denial', () => {
  const policy = tokenBucket({ limit: 100, window: '1m' })
  const retryAfter = (retryAfterMs: number): string | undefined => headersOf(policy, { allowed: false, retryAfterMs }).get('Retry-After')
  assert.deepEqual([1, 900, 1000, 1001, 86_400_000].map(retryAfter), ['1', '1', '1', '2', '86400'])
})

test('an allowed request has no retry-after, nor has one that passed only in the shadow', () => {
  const policy = tokenBucket({ limit: 5, window: '1s' })
  assert.equal(headersOf(policy, { remaining: 1 }).has('Retry-After'), false)
  assert.equal(headersOf(policy, { wouldDeny: true }).has('Retry-After'), false)
})

test('an impossible cost has no retry-after, since waiting does not help', () => {
  const impossible = { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY, resetAfterMs: 1_000 }
  const headers = headersOf(tokenBucket({ limit: 5, window: '1s' }), impossible)
  assert.equal(headers.has('Retry-After'), false)
  assert.equal(parsedLimit([...headers]).t, 1)
})

test('of a fixed window t is when it ends, and of one not begun its whole length', () => {
  const policy = fixedWindow({ name: 'quota', limit: 100, window: '1m' })
  const t = (decision: Partial<Decision>): number | undefined => fieldsOf(policy, decision).t
  assert.deepEqual([t({ remaining: 99, resetAfterMs: 400 }), t({ remaining: 0, resetAfterMs: 59_001 })], [1, 60])
  assert.equal(t({ remaining: 100, resetAfterMs: 0 }), 60)
  const denial = headersOf(policy, { allowed: false, resetAfterMs: 2_500, retryAfterMs: 2_500 })
  assert.deepEqual([parsedLimit([...denial]).t, denial.get('Retry-After')], [3, '3'])
})

test('of a window of the calendar w is the longest that it can be', () => {
  const policy = fixedWindow({ name: 'quota', limit: 100, window: 'month', timeZone: 'Europe/Rome' })
  const { q, w, t } = fieldsOf(policy, { remaining: 40, resetAfterMs: 3_600_000 })
  assert.deepEqual([q, w, t], [100, 31 * 86_400, 3_600])
})

for (const policy of [slidingWindow({ limit: 30, window: '1m' }), slidingLog({ limit: 30, window: '1m' })]) {
  test(`of a ${policy.algorithm} q is the limit, w the window, and a client that spreads r over t is never denied`, () => {
    const clock = manualClock(0)
    using limiter = createLimiter(policy, { clock })
    for (let i = 0; i < 200; i++) {
      const decision = limiter.take('key')
      assert.equal(decision.allowed, true)
      const { q, w, r = 0, t = 0 } = fieldsOf(policy, decision)
      assert.deepEqual([q, w], [30, 60])
      assert.ok(r / t <= 30 / 60)
      // With nothing left there is nothing to spread: what comes back when is for the denial to say.
      clock.advance(r > 0 ? (t * 1000) / r : limiter.peek('key').retryAfterMs)
    }
  })
}

test('of several policies at once both headers are lists, and retry-after is the longest', () => {
  const policy = allOf([tokenBucket({ name: 'a, "b"', limit: 2, window: '10s' }), fixedWindow({ name: 'day', limit: 9, window: 'day' })])
  const clock = manualClock(0)
  using limiter = createLimiter(policy, { clock })
  const lists = (cost: number): [[string, ...(number | undefined)[]][], string | undefined] => {
    const pairs = rateLimitHeaders(limiter.policy, limiter.take('key', cost))
    return [parsedLimits(pairs).map(({ name, q, w, r, t }) => [name, q, w, r, t]), new Map(pairs).get('Retry-After')]
  }
  const [first, no] = lists(2)
  assert.deepEqual(first, [
    ['a, "b"', 2, 10, 0, 5],
    ['day', 9, 86_400, 7, 86_400],
  ])
  assert.equal(no, undefined)
  clock.advance(4_000)
  const [denied, retryAfter] = lists(1)
  assert.deepEqual([denied[0]?.[4], denied[1]?.[3], retryAfter], [1, 7, '1'])
  assert.equal(lists(3)[1], undefined, 'one part can never pass it')
})

test('of concurrency the unit is known, and there is no window', () => {
  const policy = concurrency({ name: 'slots', limit: 2, ttl: '30s' })
  using limiter = createLimiter(policy, { clock: manualClock() })
  const headers = new Map(rateLimitHeaders(policy, limiter.take('key')))
  assert.deepEqual(Object.fromEntries(headers), {
    'RateLimit-Policy': '"slots";q=2;qu="concurrent-requests"',
    RateLimit: '"slots";r=1',
  })
  limiter.take('key')
  assert.equal(new Map(rateLimitHeaders(policy, limiter.take('key'))).get('Retry-After'), '30')
})

test('the unit is written where it is not the default one', () => {
  const policy = tokenBucket({ limit: 65_535, window: '10s' })
  assert.equal(fieldsOf(policy, {}, { unit: 'content-bytes' }).qu, 'content-bytes')
  assert.equal(fieldsOf(policy, {}, { unit: 'requests' }).qu, undefined)
})

test('one writer distinguishes two units of one policy', () => {
  const policy = tokenBucket({ name: 'both', limit: 5, window: '5s' })
  const decision: Decision = { ...FULL, policy: 'both', limit: 5 }
  const writer = new HeaderWriter()
  const fields = ['content-bytes', undefined, 'content-bytes'] as const
  const seen = fields.map((unit) => new Map(writer.writeAll([{ policy, decision, unit }])).get('RateLimit-Policy'))
  assert.deepEqual(seen, ['"both";q=5;qu="content-bytes";w=5', '"both";q=5;w=5', '"both";q=5;qu="content-bytes";w=5'])
})

test('the partition key differs by key, is stable, and does not reveal the key', () => {
  const policy = tokenBucket({ limit: 5, window: '1s' })
  const writer = new HeaderWriter({ partitionKey: true })
  const pk = (key: string): string | undefined => parsedLimit(writer.write(policy, { ...FULL, policy: policy.name, limit: 5 }, key)).pk
  assert.equal(pk('192.0.2.1'), pk('192.0.2.1'))
  assert.notEqual(pk('192.0.2.1'), pk('192.0.2.2'))
  assert.equal(Buffer.from(pk('192.0.2.1') ?? '', 'base64').length, 8)
  assert.equal(fieldsOf(policy, {}, {}, '192.0.2.1').pk, undefined, 'unless it is asked for, it is not seen')
})

test('processes with one secret write the same partition key, others another', () => {
  const policy = tokenBucket({ limit: 5, window: '1s' })
  const secret = '000102030405060708090a0b0c0d0e0f'
  const pk = (partitionKey: boolean | string): string | undefined => fieldsOf(policy, {}, { partitionKey }, 'key').pk
  assert.equal(pk(secret), pk(secret.toUpperCase()))
  assert.equal(new Set([pk(secret), pk(`f${secret.slice(1)}`), pk(true), pk(true)]).size, 4)
})

test('of several keys each part has its own partition key', () => {
  const policy = allOf([tokenBucket({ name: 'user', limit: 5, window: '1s' }), tokenBucket({ name: 'team', limit: 9, window: '1s' })])
  using limiter = createLimiter(policy, { clock: manualClock() })
  const writer = new HeaderWriter({ partitionKey: true })
  const keysOf = (keys: string[]): (string | undefined)[] =>
    parsedLimits(writer.write(policy, limiter.take(keys), keys)).map(({ pk }) => pk)
  const [ada, team] = keysOf(['ada', 'team'])
  const [bob, same] = keysOf(['bob', 'team'])
  assert.notEqual(ada, bob)
  assert.equal(team, same)
})

test('in an outage only the policy is written, and when to come back', () => {
  const policy = tokenBucket({ name: 'p', limit: 5, window: '1s' })
  const seen = (decision: Partial<Decision>): object => Object.fromEntries(headersOf(policy, { source: 'outage', ...decision }))
  assert.deepEqual(seen({}), { 'RateLimit-Policy': '"p";q=5;w=1' })
  assert.deepEqual(seen({ allowed: false, retryAfterMs: 1500 }), { 'RateLimit-Policy': '"p";q=5;w=1', 'Retry-After': '2' })
})

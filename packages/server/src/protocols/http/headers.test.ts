import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, type Duration, fixedWindow, gcra, manualClock, type Policy, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'
import type { Decision } from '../../engine.js'
import { Engine } from '../../engine.js'
import { type RateLimitFields, readRateLimitFields, readRateLimitLists } from '../../testing/rate-limit-fields.js'
import { rateLimitHeaders } from './headers.js'

const FULL: Omit<Decision, 'policy' | 'limit'> = { allowed: true, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, source: 'memory' }

function headersOf(policy: Policy, decision: Partial<Decision>): Map<string, string> {
  return new Map(rateLimitHeaders(policy, { ...FULL, policy: policy.name, limit: policy.limit, ...decision }))
}

function fieldsOf(policy: Policy, decision: Partial<Decision>): RateLimitFields {
  return readRateLimitFields(headersOf(policy, decision))
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

test('an allowed request has no retry-after', () => {
  assert.equal(headersOf(tokenBucket({ limit: 5, window: '1s' }), { remaining: 1 }).has('Retry-After'), false)
})

test('an impossible cost has no retry-after, since waiting does not help', () => {
  const headers = headersOf(tokenBucket({ limit: 5, window: '1s' }), { allowed: false, retryAfterMs: Number.POSITIVE_INFINITY })
  assert.equal(headers.has('Retry-After'), false)
  readRateLimitFields(headers)
})

const POLICIES: readonly [limit: number, window: Duration, burst: number][] = [
  [100, '1m', 100],
  [5, '1s', 1],
  [7, '60s', 20],
  [1, '30d', 3],
  [1_000_000_000, '1s', 1_000_000_000],
  [333, '700ms', 10],
  [1, '1ms', 4],
]

for (const [limit, window, burst] of POLICIES) {
  test(`no header promises more than ${limit} per ${window} with burst ${burst}, and t is never above retry-after`, () => {
    const policy = tokenBucket({ limit, window, burst })
    const perSecond = (limit / policy.windowMs) * 1000
    const engine = new Engine([{ policy, maxKeys: 10, onFull: 'evict' }], { clock: { nowMs: () => 0 } })
    const gate = engine.gate(policy.name) ?? assert.fail()
    let denials = 0
    for (let i = 0; i < 12; i++) {
      const decision = gate.take('key', Math.max(1, Math.floor(burst / 5)))
      const headers = new Map(rateLimitHeaders(policy, decision))
      const { q, w, r, t } = readRateLimitFields(headers)
      assert.ok(q / w <= perSecond * (1 + 1e-9), `q / w = ${q / w} above ${perSecond}`)
      assert.ok(t >= 1 && (r / t <= perSecond * (1 + 1e-9) || !decision.allowed), `r / t = ${r / t} above ${perSecond}`)
      if (decision.allowed) continue
      denials++
      assert.ok(t <= Number(headers.get('Retry-After')))
      assert.ok(Number(headers.get('Retry-After')) * 1000 >= decision.retryAfterMs)
    }
    assert.ok(denials > 0, 'some takes were denied')
  })
}

test('of a fixed window t is when it ends, and of one not begun its whole length', () => {
  const policy = fixedWindow({ name: 'quota', limit: 100, window: '1m' })
  const t = (decision: Partial<Decision>): number => fieldsOf(policy, decision).t
  assert.deepEqual([t({ remaining: 99, resetAfterMs: 400 }), t({ remaining: 0, resetAfterMs: 59_001 })], [1, 60])
  assert.equal(t({ remaining: 100, resetAfterMs: 0 }), 60)
  const denial = headersOf(policy, { allowed: false, resetAfterMs: 2_500, retryAfterMs: 2_500 })
  assert.deepEqual([readRateLimitFields(denial).t, denial.get('Retry-After')], [3, '3'])
})

test('of a window of the calendar w is the longest that it can be', () => {
  const policy = fixedWindow({ name: 'quota', limit: 100, window: 'month', timeZone: 'Europe/Rome' })
  const { q, w, t } = fieldsOf(policy, { remaining: 40, resetAfterMs: 3_600_000 })
  assert.deepEqual([q, w, t], [100, 31 * 86_400, 3_600])
})

for (const policy of [slidingWindow({ limit: 30, window: '1m' }), slidingLog({ limit: 30, window: '1m' })]) {
  test(`of a ${policy.algorithm} q is the limit, w the window, and a client that spreads r over t is never denied`, () => {
    const clock = manualClock(0)
    const engine = new Engine([{ policy, maxKeys: 10, onFull: 'evict' }], { clock })
    const gate = engine.gate(policy.name) ?? assert.fail()
    for (let i = 0; i < 200; i++) {
      const decision = gate.take('key', 1)
      assert.equal(decision.allowed, true)
      const { q, w, r, t } = readRateLimitFields(new Map(rateLimitHeaders(policy, decision)))
      assert.deepEqual([q, w], [30, 60])
      assert.ok(r / t <= 30 / 60)
      // With nothing left there is nothing to spread: what comes back when is for the denial to say.
      clock.advance(r > 0 ? (t * 1000) / r : gate.peek('key', 1).retryAfterMs)
    }
  })
}

test('of several policies at once both headers are lists, and retry-after is the longest', () => {
  const policy = allOf([tokenBucket({ name: 'a, "b"', limit: 2, window: '10s' }), fixedWindow({ name: 'day', limit: 9, window: 'day' })])
  const clock = manualClock(0)
  const gate = new Engine([{ policy, maxKeys: 10, onFull: 'evict' }], { clock }).gate(policy.name) ?? assert.fail()
  const lists = (cost: number): [RateLimitFields[], string | undefined] => {
    const headers = new Map(rateLimitHeaders(policy, gate.take('key', cost)))
    return [readRateLimitLists(headers), headers.get('Retry-After')]
  }
  const [first, no] = lists(2)
  assert.deepEqual(first, [
    { name: 'a, "b"', q: 2, w: 10, r: 0, t: 5 },
    { name: 'day', q: 9, w: 86_400, r: 7, t: 86_400 },
  ])
  assert.equal(no, undefined)
  clock.advance(4_000)
  const [denied, retryAfter] = lists(1)
  assert.deepEqual([denied[0]?.t, denied[1]?.r, retryAfter], [1, 7, '1'])
  assert.equal(lists(3)[1], undefined, 'one part can never pass it')
})

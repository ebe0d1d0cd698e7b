import assert from 'node:assert/strict'
import { performance } from 'node:perf_hooks'
import { test } from 'node:test'
import { attachLimiter, coarseClock, createLimiter, gcra, preciseClock } from '../index.js'

const NOW_MS = 1_789_000_000_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The finest units there are: a state word's time base lies an hour and a half back. */
const FINE = gcra({ limit: 833_999, window: '1s', burst: 5 })

test('I3: a step back of months and an update give a forgotten key nothing', () => {
  for (const days of [1, 100, 129, 200, 255, 300, 400, 3650]) {
    let nowMs = NOW_MS + days * DAY_MS
    const limiter = createLimiter(FINE, { clock: { nowMs: () => nowMs }, maxKeys: 1 })
    for (let i = 0; i < 50; i++, nowMs += 1000) limiter.take(`key ${i}`, 5)
    nowMs -= days * DAY_MS
    limiter.update(FINE)
    assert.equal(limiter.take('key 0', 5).allowed, false, `${days} days`)
    limiter.refund('key 0', 1)
    assert.equal(limiter.take('key 1', 5).allowed, false, `${days} days, after a refund`)
  }
})

test('I3: a block outlives a step back, an update and the step forth', () => {
  let nowMs = NOW_MS
  const limiter = createLimiter(FINE, { clock: { nowMs: () => nowMs } })
  limiter.block('k', '5h')
  nowMs -= 10 * HOUR_MS
  limiter.update(FINE)
  nowMs += 10 * HOUR_MS
  assert.equal(limiter.take('k').retryAfterMs, 5 * HOUR_MS)
})

test('a clock that moves at each reading is asked twice at most, also long after a step back', () => {
  let nowMs = NOW_MS
  const limiter = createLimiter(gcra({ limit: 10, window: '1s' }), { clock: { nowMs: () => nowMs++ }, maxKeys: 1 })
  for (let i = 0; i < 50; i++, nowMs += 10_000) limiter.take(`key ${i}`)
  nowMs -= HOUR_MS
  const before = nowMs
  assert.equal(limiter.take('new').allowed, false)
  assert.equal(nowMs, before + 2)
})

test('I1: an update by a thread whose coarse reading is old gives nothing', () => {
  const policy = gcra({ limit: 100, window: '1s', burst: 1 })
  const coarse = createLimiter(policy, { clock: coarseClock() })
  const precise = attachLimiter(coarse.handle(), { clock: preciseClock() })
  coarse.peek('k')
  const start = performance.now()
  while (performance.now() < start + 25);
  const first = performance.now()
  let passed = Number(precise.take('k').allowed)
  coarse.update(policy)
  passed += Number(precise.take('k').allowed)
  assert.ok(passed <= 1 + (performance.now() - first) / 10, `${passed} passed`)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, tokenBucket } from '../index.js'
import { preciseFrom } from './clock.js'

const HOUR_MS = 3_600_000

function machine(hasUptime = true) {
  const at = { awakeMs: 5_000, wallMs: 1_760_000_000_000, bootMs: 90_000 }
  const time = { awakeMs: () => at.awakeMs, wallMs: () => at.wallMs, sinceBootMs: () => (hasUptime ? at.bootMs : undefined) }
  const pass = (ms: number): void => {
    for (const clock of ['awakeMs', 'wallMs', 'bootMs'] as const) at[clock] += ms
  }
  const sleep = (ms: number): void => {
    at.wallMs += ms
    at.bootMs += ms
  }
  return { at, pass, sleep, clock: preciseFrom(at.wallMs - at.awakeMs, time) }
}

test('a bucket has refilled on a machine that slept', () => {
  const { pass, sleep, clock } = machine()
  const limiter = createLimiter(tokenBucket({ limit: 10, window: '1h' }), { clock })
  for (let i = 0; i < 2; i++) {
    assert.equal(limiter.take('k', 10).allowed, true)
    assert.equal(limiter.take('k').allowed, false)
    pass(1_000)
    sleep(8 * HOUR_MS)
  }
  limiter.close()
})

test('a wall clock that is set moves nothing, and the next sleep is seen', () => {
  const { at, pass, sleep, clock } = machine()
  const fromMs = clock.nowMs()
  for (const ms of [HOUR_MS, -2 * HOUR_MS, 400]) {
    at.wallMs += ms
    pass(1_000)
    clock.nowMs()
  }
  assert.equal(clock.nowMs() - fromMs, 3_000)
  sleep(HOUR_MS + 300)
  pass(1_000)
  assert.equal(clock.nowMs() - fromMs, 4_000 + HOUR_MS)
})

test('without a clock that cannot be set no sleep is believed', () => {
  const { pass, sleep, clock } = machine(false)
  const fromMs = clock.nowMs()
  sleep(HOUR_MS)
  pass(1_000)
  assert.equal(clock.nowMs() - fromMs, 1_000)
})

import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { everyNth, Random, shortOrLong } from 'sluicegate-testkit'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { exactLimiter, type TimedLimiter } from 'sluicegate-testkit/twins/fleet-replay.js'
import type { Decision } from '../decision/decision.js'
import { concurrency, fixedWindow, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'

const START_MS = 1_789_000_000_000
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365.25 * DAY_MS
const STEPS_MS = [0.001, 1, 99, 300, 1000, 1001, 2500, 10_000, HOUR_MS, DAY_MS, 10 * YEAR_MS]
/** A server's wall clock is set by hand, or by what keeps it right. */
const FORMS: readonly { readonly policy: Policy; readonly longestMs: number }[] = [
  { policy: tokenBucket({ limit: 10, window: '1s' }), longestMs: 1000 },
  { policy: tokenBucket({ limit: 10, window: '1s', burst: 40 }), longestMs: 4000 },
  { policy: fixedWindow({ limit: 10, window: '1s' }), longestMs: 2000 },
  { policy: fixedWindow({ limit: 10, window: 'day' }), longestMs: 2 * DAY_MS },
  { policy: slidingWindow({ limit: 10, window: '1s' }), longestMs: 3000 },
  { policy: slidingLog({ limit: 10, window: '1s' }), longestMs: 2000 },
  { policy: concurrency({ limit: 10, ttl: '1s' }), longestMs: 1000 },
]

const redis = await ownRedis()
after(() => redis.stop())
let limiters = 0

function limiterOf(policy: Policy): TimedLimiter {
  return exactLimiter(redis.runner, `steps ${++limiters}`, policy, START_MS)
}

for (const [i, { policy, longestMs }] of FORMS.entries()) {
  const { algorithm, burst } = policy
  const name = `${algorithm}, ${burst} at once`

  // In a short run each form has a sixth of the steps, by turns.
  for (const [j, stepMs] of STEPS_MS.entries()) {
    everyNth(i + j, 6)(
      `${name}: a step back of ${stepMs} ms grants nothing, holds for the step at most, and for a full budget's time when it is long`,
      async () => {
        const { limiter, set } = limiterOf(policy)
        await limiter.take('spent', burst)
        const before = (await limiter.take('spent')).retryAfterMs
        await limiter.take('half', burst / 2)
        const nowMs = START_MS - stepMs
        set(nowMs)
        const { allowed, retryAfterMs } = await limiter.peek('spent')
        assert.equal(allowed, false)
        assert.equal((await limiter.take('spent')).allowed, false)
        assert.equal((await limiter.take('half', burst / 2 + 1)).allowed, false)
        assert.ok(retryAfterMs <= before + Math.ceil(stepMs), `${retryAfterMs}, before ${before}`)
        assert.ok(retryAfterMs <= longestMs, `${retryAfterMs} of ${longestMs}`)
        set(nowMs + retryAfterMs - 1)
        assert.equal((await limiter.take('spent')).allowed, false)
        set(nowMs + retryAfterMs)
        assert.equal((await limiter.take('spent')).allowed, true)
      },
    )
  }

  test(`${name}: the state of a clock far ahead denies a key no longer than a full budget takes to refill, nor does its ban`, async () => {
    for (const verb of ['take', 'penalize', 'block', 'reserve'] as const) {
      const { limiter, set } = limiterOf(policy)
      set(START_MS + 10 * YEAR_MS)
      if (verb === 'block') await limiter.block('k', 5000)
      else await limiter[verb]('k', burst)
      set(START_MS)
      const { retryAfterMs } = await limiter.peek('k')
      const most = verb === 'take' ? longestMs : Math.max(longestMs, HOUR_MS, 12 * longestMs)
      assert.ok(retryAfterMs <= most, `${verb}: ${retryAfterMs} of ${most}`)
      set(START_MS + retryAfterMs)
      assert.equal((await limiter.take('k')).allowed, true, verb)
    }
  })

  test(`${name}: a jump ahead and back again and again lets pass no more than a budget for each`, async () => {
    const { limiter, set } = limiterOf(policy)
    let passed = 0
    for (let jump = 0; jump < 10; jump++) {
      for (const ms of [START_MS, START_MS + 10 * YEAR_MS]) {
        set(ms + jump)
        for (let i = 0; i < 3; i++) if ((await limiter.take('k', burst)).allowed) passed += burst
      }
    }
    // Each jump ahead may find a full key, each step back finds it spent.
    assert.ok(passed <= burst * 11, `${passed}`)
  })

  test(`${name}: whatever the clock does, every answer is whole and finite, and no script fails`, async () => {
    for (let seed = 1; seed <= shortOrLong(4, 8); seed++) {
      const random = new Random(seed)
      const { limiter, set } = limiterOf(policy)
      let ms = START_MS
      for (let i = 0; i < 80; i++) {
        const stepMs = random.pick([0, 0, 0.001, 1, 100, 999, 1000, random.fraction() * 3000, random.pick(STEPS_MS)])
        ms = Math.max(DAY_MS, ms + (random.chance(0.4) ? -stepMs : stepMs))
        set(ms)
        const answer = await anyVerb(limiter, random, burst)
        assert.ok(Number.isInteger(answer.remaining) && answer.remaining >= 0 && answer.remaining <= burst)
        assert.ok(answer.allowed ? answer.retryAfterMs === 0 : answer.retryAfterMs > 0, JSON.stringify(answer))
        assert.ok(Number.isInteger(answer.resetAfterMs) && answer.resetAfterMs >= 0)
      }
    }
  })
}

test('a penalty and a booking outlast a step back of up to an hour', async () => {
  for (const { policy } of FORMS) {
    if (policy.algorithm === 'concurrency') continue
    for (const stepMs of [1, 1000, 60_000]) {
      const { limiter, set } = limiterOf(policy)
      await limiter.take('k', policy.burst)
      for (let i = 0; i < 4; i++) await limiter.reserve('k', policy.burst)
      const { retryAfterMs } = await limiter.peek('k')
      set(START_MS - stepMs)
      const after = await limiter.peek('k')
      assert.ok(after.retryAfterMs >= retryAfterMs, `${policy.algorithm}: ${after.retryAfterMs} after ${retryAfterMs}`)
      assert.ok(after.retryAfterMs <= retryAfterMs + stepMs)
    }
  }
})

async function anyVerb(limiter: SharedLimiter, random: Random, burst: number): Promise<Decision> {
  const cost = random.pick([1, 1, 2, burst])
  switch (random.integer(0, 9)) {
    case 0:
      return limiter.refund('k', cost)
    case 1:
      return limiter.penalize('k', cost)
    case 2:
      return limiter.peek('k', cost)
    case 3: {
      const booking = await limiter.reserve('k', cost)
      return random.chance(0.5) ? booking.cancel() : limiter.peek('k')
    }
    case 4:
      return random.chance(0.1) ? limiter.reset('k') : limiter.block('k', random.pick([0, 5]))
    default:
      return limiter.take('k', cost)
  }
}

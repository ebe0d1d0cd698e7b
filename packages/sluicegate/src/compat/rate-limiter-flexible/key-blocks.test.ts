import assert from 'node:assert/strict'
import { test } from 'node:test'
import { denied } from 'sluicegate-testkit/adapters/flexible-denial.js'
import { createLimiter, fixedWindow, gcra, manualClock, slidingLog, slidingWindow, tokenBucket } from '../../index.js'
import { RateLimiterMemory, type RateLimiterMemoryOptions, RateLimiterRes, RateLimiterSluicegate } from './index.js'

const clock = manualClock(600_000)

const limiterOf = (options: Partial<RateLimiterMemoryOptions>): RateLimiterMemory =>
  new RateLimiterMemory({ points: 5, duration: 60, clock, ...options })

test('a key is blocked when it is first denied, and not longer for asking again', async () => {
  const limiter = limiterOf({ blockDuration: 300 })
  clock.set(Math.ceil(clock.nowMs() / 60_000) * 60_000)
  await limiter.consume('ada', 5)
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 300_000)
  for (let i = 0; i < 29; i++) {
    clock.advance(10_000)
    await denied(limiter, 'ada')
  }
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 10_000)
  clock.advance(10_000)
  assert.equal((await limiter.consume('ada')).remainingPoints, 4)
})

test('a block by hand is no first denial for as long as it lasts, and for no longer', async () => {
  const limiter = limiterOf({ points: 2, duration: 10, blockDuration: 600 })
  clock.set(Math.ceil(clock.nowMs() / 10_000) * 10_000)
  await limiter.block('ada', 5)
  clock.advance(10_000)
  await limiter.consume('ada', 2)
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 600_000)
  await limiter.block('ada', 5)
  clock.advance(599_999)
  await limiter.penalty('ada', 2)
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 1, 'a shorter block takes nothing from a longer one')
  await limiter.block('bob', 0)
  await limiter.penalty('bob', 2)
  clock.advance(40 * 365 * 86_400_000)
  assert.equal((await denied(limiter, 'bob')).msBeforeNext, -1)
})

test('a long block by hand does not last longer for asking', async () => {
  for (const blockDuration of [20, 1_000_000]) {
    const limiter = limiterOf({ points: 2, duration: 10, blockDuration })
    await limiter.block('ada', 200 * blockDuration)
    clock.advance(200 * blockDuration * 1000 - 1)
    await limiter.penalty('ada', 2)
    assert.equal((await denied(limiter, 'ada')).msBeforeNext, 1)
    clock.advance(1)
    assert.equal((await limiter.consume('ada')).remainingPoints, 1)
  }
})

test('a block shorter than the window ends in time, and all points are new', async () => {
  const limiter = limiterOf({ duration: 90 * 86_400, blockDuration: 3_600 })
  for (const block of [() => denied(limiter, 'ada'), () => limiter.block('ada', 3_600)]) {
    await limiter.penalty('ada', 9)
    assert.equal((await block()).msBeforeNext, 3_600_000)
    clock.advance(3_599_999)
    assert.equal((await denied(limiter, 'ada')).msBeforeNext, 1)
    clock.advance(1)
    assert.equal(await limiter.get('ada'), null)
    assert.equal((await limiter.consume('ada')).remainingPoints, 4)
  }
})

test('with any policy a denial blocks for its time, however often the key is tried', async () => {
  const day = { limit: 5, window: '1d' } as const
  const policies = [fixedWindow(day), slidingWindow(day), slidingLog(day), tokenBucket(day), gcra({ ...day, burst: 3 })]
  for (const [policy, intoDayMs] of policies.flatMap(
    (each) =>
      [
        [each, 0],
        [each, 50_000_000],
      ] as const,
  )) {
    const limiter = new RateLimiterSluicegate({ limiter: createLimiter(policy, { clock }), blockDuration: 600 })
    // Of a sliding window all that counts is then in the window before.
    await limiter.consume('ada', limiter.points)
    clock.set(Math.ceil((clock.nowMs() + 1) / 86_400_000) * 86_400_000 + intoDayMs)
    await limiter.penalty('ada', limiter.points)
    for (let ms = 600_000; ms > 0; ms -= 60_000) {
      for (const points of [99, 3]) await denied(limiter, 'ada', points)
      assert.equal((await denied(limiter, 'ada')).msBeforeNext, ms, policy.name)
      clock.advance(60_000)
    }
    if (policy.algorithm !== 'sliding-window') assert.equal(await limiter.get('ada'), null, policy.name)
  }
})

test('a block may be as long as a window ever is', async () => {
  const limiter = limiterOf({ points: 1, blockDuration: 366 * 86_400 })
  clock.set(Math.ceil(clock.nowMs() / 60_000) * 60_000)
  await limiter.consume('ada')
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 366 * 86_400_000)
  clock.advance(366 * 86_400_000 - 1)
  await limiter.penalty('ada')
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 1)
})

test('of several concurrent denials all get the block', async () => {
  const limiter = limiterOf({ points: 1, blockDuration: 300 })
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => limiter.consume('ada')))
  const seen = results.map((result) => (result.status === 'rejected' ? (result.reason as RateLimiterRes).msBeforeNext : 'passed'))
  assert.deepEqual(seen, ['passed', ...Array(4).fill(300_000)])
})

test('a deleted key, or one denied again after a block, is blocked again', async () => {
  const limiter = limiterOf({ blockDuration: 300 })
  await limiter.consume('ada', 5)
  await denied(limiter, 'ada')
  await limiter.delete('ada')
  await limiter.consume('ada', 5)
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 300_000)
  clock.advance(300_000)
  await limiter.consume('ada', 5)
  assert.equal((await denied(limiter, 'ada')).msBeforeNext, 300_000)
})

test('a key on a deny list is not blocked besides', async () => {
  const limiter = createLimiter(fixedWindow({ limit: 5, window: '1m' }), { clock, deny: ['mallory'] })
  const named = new RateLimiterSluicegate({ limiter, blockDuration: 300 })
  assert.deepEqual(await denied(named, 'mallory'), new RateLimiterRes(0, 60_000, 6, false))
  assert.deepEqual(await named.get('mallory'), new RateLimiterRes(0, 60_000, 6, false))
})

test('a request for more than is left, or than there ever is, is blocked, too', async () => {
  const limiter = limiterOf({ blockDuration: 300 })
  await limiter.consume('ada', 3)
  assert.equal((await denied(limiter, 'ada', 3)).msBeforeNext, 300_000)
  assert.equal((await denied(limiter, 'ada', 1)).remainingPoints, 0)
  await denied(limiter, 'bob', 6)
  assert.equal((await limiter.get('bob'))?.msBeforeNext, 300_000)
  clock.advance(10_000)
  assert.equal((await denied(limiter, 'bob', 6)).msBeforeNext, 290_000)
})

test('blocks at a denial last also when more keys are blocked than are remembered', async () => {
  const limiter = limiterOf({ points: 1, blockDuration: 300, maxKeys: 64 })
  let blocked = 0
  for (let i = 0; i < 2_000; i++) {
    // A new key may find no room, and is denied or cannot be blocked then: never let through untracked.
    const known = await limiter.consume(`key ${i}`).then(
      () => true,
      () => false,
    )
    if (!known) continue
    const denial = await limiter.consume(`key ${i}`).then(
      () => assert.fail('it passed'),
      (reason) => reason,
    )
    if (denial instanceof RateLimiterRes && denial.msBeforeNext === 300_000) blocked++
  }
  assert.ok(blocked >= 32, `${blocked} were blocked`)
})

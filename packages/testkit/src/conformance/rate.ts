import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { tokenBucket } from 'sluicegate'
import { shareOfBudget } from '../history/excess.js'
import { shortOrLong } from '../run-length.js'
import { budget } from './budget.js'
import { admitted, type Fixtures } from './fixture.js'

/** Makes a policy of a rate, which may have its own burst. */
type MakeRate = typeof tokenBucket

/** What is true of rates alone: bursts, and tokens that flow in continuously. */
export function ratesOf(policyOf: MakeRate): (name: string, fixture: Fixtures) => void {
  return (name, fixture) => {
    for (const part of [rateVerbs, rateBlocks, rateBudget, rateTime, rateUpdates]) part(name, fixture, policyOf)
    if (fixture.store.source === 'memory') rateCrowd(name, fixture, policyOf)
  }
}

/** What the verbs do to tokens that flow in continuously. */
function rateVerbs(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const tenASecond = policyOf({ limit: 10, window: '1s', name: 'ten' })

  test(`${name}: take answers with a plain decision of all fields`, async () => {
    const { limiter } = await fixture(tenASecond)
    const answer = {
      allowed: true,
      limit: 10,
      remaining: 7,
      retryAfterMs: 0,
      resetAfterMs: 300,
      policy: 'ten',
      source: fixture.store.source,
    }
    assert.deepEqual(await limiter.take('k', 3), answer)
    assert.deepEqual(await limiter.take('k', 8), { ...answer, allowed: false, retryAfterMs: 100 })
  })

  test(`${name}: the limit in an answer is the policy's, and remaining may be larger`, async () => {
    const { limiter } = await fixture(policyOf({ limit: 10, window: '1s', burst: 50 }))
    const { limit, remaining } = await limiter.take('k')
    assert.deepEqual({ limit, remaining }, { limit: 10, remaining: 49 })
  })

  test(`${name}: penalize goes into debt, down to ten bursts below empty`, async () => {
    const { limiter, clock } = await fixture(tenASecond)
    assert.equal((await limiter.penalize('k', 15)).retryAfterMs, 600)
    for (let i = 0; i < 5; i++) await limiter.penalize('k', Number.MAX_SAFE_INTEGER)
    const { remaining, retryAfterMs, resetAfterMs } = await limiter.peek('k')
    assert.deepEqual([remaining, retryAfterMs, resetAfterMs], [0, 10_100, 11_000])
    clock.advance(10_099)
    assert.equal((await limiter.take('k')).allowed, false)
    clock.advance(1)
    assert.equal((await limiter.take('k')).allowed, true)
  })
}

/** `block`, with tokens that flow in continuously. */
function rateBlocks(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const tenASecond = policyOf({ limit: 10, window: '1s' })

  test(`${name}: a blocked key keeps its tokens and shows them, and tokens flow in meanwhile`, async () => {
    const { limiter, clock } = await fixture(tenASecond)
    await limiter.take('k', 10)
    await limiter.block('k', 500)
    assert.equal((await limiter.take('k')).remaining, 0)
    clock.advance(300)
    const { allowed, remaining } = await limiter.take('k')
    assert.deepEqual([allowed, remaining], [false, 3])
    clock.advance(200)
    assert.equal(await admitted(limiter, 'k', 20), 5)
  })
}

const POLICIES = [
  { limit: 10, window: '1s', burst: 10 },
  { limit: 7, window: '1m', burst: 7 },
  { limit: 1000, window: '1s', burst: 5 },
  { limit: 999_983, window: '1s', burst: 5000 },
  { limit: 3, window: '30d', burst: 2 },
] as const

/** The invariants of a budget whose burst is not its limit. */
function rateBudget(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  budget(name, fixture, POLICIES.map(policyOf))
  for (const options of POLICIES) {
    const policy = policyOf(options)
    const label = `${name}, ${options.limit} per ${options.window}, burst ${options.burst}`
    const spec = { limit: policy.limit, windowMs: policy.windowMs, burst: policy.burst }
    const intervalMs = policy.windowMs / policy.limit

    // The part that is lost at the ends has to stay below a thousandth.
    const polled = fixture.store.source === 'memory' ? 5000 : 1200
    test(`I2 ${label}: a caller that always asks gets at least 99.9 % of the budget, at any call rate`, async () => {
      for (const polls of [1, 97, 3, 10].slice(0, shortOrLong(2, 4))) {
        const { limiter, clock } = await fixture(policy)
        const everyMs = Math.max(0.001, Math.floor((intervalMs / polls) * 1000) / 1000)
        const startMs = clock.nowMs()
        let passed = await admitted(limiter, 'k', policy.burst)
        for (let i = 0; i < polled; i++) {
          clock.advance(everyMs)
          // Empties the bucket each time: never more than two tokens come between two polls.
          passed += await admitted(limiter, 'k', 3)
        }
        const lengthUs = Math.round((clock.nowMs() - startMs) * 1000)
        assert.ok(shareOfBudget(spec, passed, lengthUs) >= 999_000, `${passed} in ${lengthUs} us`)
      }
    })
  }
}

const YEAR_MS = 365.25 * 86_400_000

/** Faults in time and arithmetic that other limiters of rates have had. */
function rateTime(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const tenASecond = policyOf({ limit: 10, window: '1s' })

  test(`${name}: polled every microsecond, a bucket still refills`, async () => {
    const { limiter, clock } = await fixture(policyOf({ limit: 1000, window: '1s', burst: 2 }))
    await limiter.take('k', 2)
    let passed = 0
    const startMs = clock.nowMs()
    const inMs = fixture.store.source === 'memory' ? 20 : 3
    for (let us = 1; us <= inMs * 1000; us++) {
      clock.set(startMs + us / 1000)
      if ((await limiter.take('k')).allowed) passed++
    }
    assert.equal(passed, inMs)
  })

  test(`${name}: 7 per 60 s does not drift in ten years`, async () => {
    const { limiter, clock } = await fixture(policyOf({ limit: 7, window: '60s' }))
    const startMs = clock.nowMs()
    const longest = fixture.store.source === 'memory' ? 1999 : 19_993
    for (let minute = 0; minute < 5_259_600; minute += 1 + (minute % longest)) {
      clock.set(startMs + minute * 60_000)
      assert.equal((await limiter.take('k', 7)).allowed, true)
      assert.deepEqual([(await limiter.peek('k')).retryAfterMs, (await limiter.peek('k')).resetAfterMs], [8572, 60_000])
    }
  })

  test(`${name}: a burst of one spaces requests evenly, also after a long idle time`, async () => {
    const { limiter, clock } = await fixture(policyOf({ limit: 100, window: '1s', burst: 1 }))
    assert.equal(await admitted(limiter, 'k', 1000), 1)
    clock.advance(YEAR_MS)
    assert.equal(await admitted(limiter, 'k', 1000), 1)
    clock.advance(9.999)
    assert.equal(await admitted(limiter, 'k', 1000), 0)
    clock.advance(0.001)
    assert.equal(await admitted(limiter, 'k', 1000), 1)
  })

  test(`${name}: retry-after is never 0 on a denial, at any rate`, async () => {
    for (const limit of [1, 999, 1001, 10_000, 1_000_000, 1_000_000_000]) {
      const { limiter } = await fixture(policyOf({ limit, window: '1s', burst: 3 }))
      await limiter.take('k', 3)
      const { allowed, retryAfterMs } = await limiter.take('k')
      assert.equal(allowed, false)
      assert.ok(retryAfterMs >= 1, `${limit} per second: ${retryAfterMs}`)
    }
  })

  test(`${name}: a wait of 900 ms reads as 900, not as 0 s or 1 s`, async () => {
    const { limiter } = await fixture(policyOf({ limit: 1, window: '900ms' }))
    await limiter.take('k')
    assert.equal((await limiter.take('k')).retryAfterMs, 900)
  })

  test(`${name}: fractions of a token are not lost: 0.35 a poll at 10/s admit 40 in 3 s from a burst of 10`, async () => {
    const { limiter, clock } = await fixture(tenASecond)
    let passed = await admitted(limiter, 'k', 10)
    for (let ms = 0; ms < 3000; ms += 35) {
      clock.advance(Math.min(35, 3000 - ms))
      if ((await limiter.take('k')).allowed) passed++
    }
    assert.equal(passed, 40)
  })

  test(`${name}: a key's first call sets no window of its own: budgets flow in continuously`, async () => {
    const { limiter, clock } = await fixture(tenASecond)
    clock.advance(777.7)
    await limiter.take('k', 10)
    clock.advance(500)
    assert.equal(await admitted(limiter, 'k', 20), 5)
  })
}

/** `update`, with bursts and tokens that flow in continuously. */
function rateUpdates(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const hundred = policyOf({ limit: 100, window: '1s', burst: 200 })

  test(`${name}: after an update no key has a fresh burst: what was spent stays spent`, async () => {
    const { limiter } = await fixture(hundred)
    await limiter.take('k', 150)
    limiter.update(policyOf({ limit: 50, window: '1s', burst: 200 }))
    assert.equal((await limiter.peek('k')).remaining, 50)
    limiter.update(policyOf({ limit: 50, window: '1s', burst: 1000 }))
    assert.equal((await limiter.peek('k')).remaining, 850)
  })

  test(`${name}: after an update no key is locked out for years: at most the new burst is owed`, async () => {
    const { limiter } = await fixture(policyOf({ limit: 1_000_000, window: '1s' }))
    await limiter.take('k', 1_000_000)
    await limiter.penalize('deep', 10_000_000)
    limiter.update(policyOf({ limit: 1, window: '1h', burst: 3 }))
    for (const key of ['k', 'deep']) assert.equal((await limiter.peek(key)).resetAfterMs, 3 * 3_600_000)
  })

  test(`${name}: tokens that came back before the update count as come back`, async () => {
    const { limiter, clock } = await fixture(hundred)
    await limiter.take('k', 200)
    clock.advance(500)
    limiter.update(policyOf({ limit: 1, window: '1d', burst: 200 }))
    assert.equal(await admitted(limiter, 'k', 100), 50)
  })

  test(`I12 ${name}: a policy that is not one is refused and changes nothing`, async () => {
    const { limiter } = await fixture(hundred)
    await limiter.take('k', 20)
    await assert.rejects(async () => limiter.update({ ...hundred, limit: 0 } as typeof hundred), { code: 'LIMIT_INVALID' })
    assert.deepEqual(limiter.policy, hundred)
    assert.equal((await limiter.peek('k')).remaining, 180)
  })
}

/** The table, with words of 8 bytes whose debt wears off continuously. */
function rateCrowd(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const five = policyOf({ limit: 5, window: '1h' })

  test(`${name}: a limiter for 100,000 keys takes 16 to 26 bytes a key`, async () => {
    const { memoryBytes } = (await fixture(five)).table()
    assert.ok(memoryBytes > 100_000 * 16 && memoryBytes < 100_000 * 26)
  })

  test(`${name}: in a crowd within maxKeys every key goes on at its rate`, async () => {
    const { limiter, clock } = await fixture(five, { maxKeys: 300 })
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 300; i++) assert.equal(await admitted(limiter, `key ${i}`, 7), round === 0 ? 5 : 1)
      clock.advance(720_000)
    }
  })

  test(`I7 ${name}: a newcomer without room waits until the first token of a key near it comes back`, async () => {
    for (const [onFull, cost] of [
      ['evict', 5],
      ['deny', 1],
    ] as const) {
      const { limiter } = await fixture(five, { maxKeys: 1, onFull })
      for (let held = 0; (await limiter.take(`held ${held}`, cost)).allowed && held < 1000; held++);
      assert.equal((await limiter.take('newcomer')).retryAfterMs, 720_000)
    }
  })
}

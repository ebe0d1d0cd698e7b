import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ALGORITHM_NAMES, type AlgorithmName, policyOf, Random, randomPolicyOf, seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { parsedLimits } from 'sluicegate-testkit/keys/address-corpus.js'
import { createLimiter, type Decision, manualClock, type Policy } from '../index.js'
import type { ResetMeaning } from './header-formats.js'
import { type HeaderOptions, HeaderWriter } from './header-writer.js'
import { readRateLimit } from './read-rate-limit.js'

const SEEDS = [...seedsFrom(1, shortOrLong(5, 15))]
const NOW_MS = Date.UTC(2026, 10, 21, 12, 0, 0, 500)
const nowMs = (): number => NOW_MS

interface Answer {
  readonly policy: Policy
  readonly decision: Decision
}

/** Decisions of a random policy, allowed, denied and impossible, at random times. */
function* answersOf(algorithm: AlgorithmName, seed: number): Iterable<Answer> {
  const random = new Random(seed)
  const policy = policyOf(randomPolicyOf(random, algorithm, true))
  const clock = manualClock(NOW_MS)
  using limiter = createLimiter(policy, { clock, maxKeys: 10 })
  for (let i = 0; i < 20; i++) {
    const cost = random.pick([1, 1, random.magnitude(1, policy.burst), policy.burst, Math.min(policy.burst + 1, 1e9)])
    yield { policy, decision: limiter.take('key', cost) }
    if (random.chance(0.4)) clock.advance(random.magnitude(1, Math.min(policy.windowMs, 1e9)))
  }
}

function failing(seed: number, { policy, decision }: Answer): string {
  return `seed ${seed}: ${JSON.stringify({ policy, decision })}`
}

for (const algorithm of ALGORITHM_NAMES) {
  test(`no field about ${algorithm} promises more than the policy, and t is never above retry-after`, () => {
    const writer = new HeaderWriter()
    let denials = 0
    for (const seed of SEEDS) {
      for (const answer of answersOf(algorithm, seed)) {
        const { policy, decision } = answer
        const pairs = writer.write(policy, decision)
        const retryAfterS = Number(new Map(pairs).get('Retry-After') ?? Number.POSITIVE_INFINITY)
        const parts = decision.parts ?? [decision]
        const singles = policy.policies ?? [policy]
        const limits = parsedLimits(pairs.filter(([name]) => name !== 'Retry-After'))
        assert.equal(limits.length, singles.length, failing(seed, answer))
        for (const [i, { q, w, r, t }] of limits.entries()) {
          const single = singles[i] as Policy
          const part = parts[i] as Decision
          assert.equal(r, part.remaining)
          if (single.algorithm === 'concurrency') continue
          const perSecond = (single.limit / single.windowMs) * 1000 * (1 + 1e-9)
          assert.ok(w !== undefined && q / w <= perSecond, failing(seed, answer))
          assert.ok(r !== undefined && t !== undefined && t >= 1, failing(seed, answer))
          if (part.allowed && single.algorithm !== 'fixed-window') assert.ok(r / t <= perSecond, failing(seed, answer))
          if (!part.allowed) assert.ok(t <= retryAfterS, failing(seed, answer))
        }
        if (decision.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY) assert.equal(retryAfterS, Number.POSITIVE_INFINITY)
        else assert.equal(retryAfterS, Math.ceil(decision.retryAfterMs / 1000))
        if (!decision.allowed) denials++
      }
    }
    assert.ok(denials > SEEDS.length, 'many takes were denied')
  })

  test(`what is written about ${algorithm} is read back in every version`, () => {
    const draft11 = new HeaderWriter({ partitionKey: true })
    const older = (['draft-7', 'draft-6'] as const).map((version) => new HeaderWriter({ version }))
    const resets = (['epoch-seconds', 'epoch-milliseconds', 'delta-seconds'] as const).map(
      (reset): readonly [ResetMeaning, HeaderWriter] => [
        reset,
        new HeaderWriter({ version: 'x-ratelimit', reset, nowMs } as HeaderOptions),
      ],
    )
    for (const seed of SEEDS) {
      for (const answer of answersOf(algorithm, seed)) {
        const { policy, decision } = answer
        const waits = decision.allowed || decision.retryAfterMs === Number.POSITIVE_INFINITY
        const retryAfterMs = waits ? undefined : Math.ceil(decision.retryAfterMs / 1000) * 1000
        const pairs = draft11.write(policy, decision, 'key')
        const reading = readRateLimit(new Headers(pairs.map(([name, value]) => [name, value])), { nowMs: NOW_MS })
        const limits = parsedLimits(pairs.filter(([name]) => name !== 'Retry-After'))
        assert.deepEqual(
          reading.policies?.map(({ name, limit, windowMs, remaining, resetAfterMs, unit, partitionKey }) => {
            return [name, limit, windowMs, unit, remaining, resetAfterMs, partitionKey]
          }),
          limits.map(({ name, q, w, qu, r, t, pk }) => [name, q, w && w * 1000, qu, r, t && t * 1000, pk]),
          failing(seed, answer),
        )
        assert.equal(reading.remaining, Math.min(...limits.map(({ r = Number.NaN }) => r)))
        assert.equal(reading.retryAfterMs, retryAfterMs)
        for (const writer of older) {
          const headers = Object.fromEntries(writer.write(policy, decision))
          const seen = readRateLimit(headers)
          assert.equal(seen.remaining, decision.remaining, failing(seed, answer))
          assert.ok(
            limits.some(({ q }) => q === seen.limit),
            failing(seed, answer),
          )
          assert.equal(seen.retryAfterMs, retryAfterMs)
          assert.ok((seen.resetAfterMs ?? -1) >= 1 || policy.algorithm === 'concurrency', failing(seed, answer))
        }
        const [seconds, milliseconds, delta] = resets.map(([, writer]) => {
          return readRateLimit(Object.fromEntries(writer.write(policy, decision)), { nowMs: NOW_MS })
        })
        assert.equal(seconds?.remaining, decision.remaining)
        // A moment is rounded up to the next second, a span to a whole one: neither tells less than the exact one.
        const exactMs = milliseconds?.resetAfterMs ?? Number.NaN
        assert.ok((seconds?.resetAfterMs ?? 0) >= exactMs && (seconds?.resetAfterMs ?? 0) < exactMs + 1001, failing(seed, answer))
        assert.ok((delta?.resetAfterMs ?? 0) >= exactMs && (delta?.resetAfterMs ?? 0) <= exactMs + 1000, failing(seed, answer))
      }
    }
  })

  test(`of ${algorithm} a client that waits exactly Retry-After is admitted`, () => {
    const writer = new HeaderWriter()
    let waits = 0
    for (const seed of SEEDS) {
      const random = new Random(seed)
      const policy = policyOf(randomPolicyOf(random, algorithm, true))
      const clock = manualClock(NOW_MS + random.integer(0, 5_000))
      using limiter = createLimiter(policy, { clock, maxKeys: 10 })
      for (let i = 0; i < 40 && waits < 20 * SEEDS.length; i++) {
        const cost = random.magnitude(1, policy.burst)
        const decision = limiter.take('key', cost)
        if (decision.allowed) continue
        const retryAfter = new Map(writer.write(policy, decision)).get('Retry-After')
        assert.ok(retryAfter !== undefined, 'this cost is possible')
        clock.advance(Number(retryAfter) * 1000)
        assert.equal(limiter.take('key', cost).allowed, true, failing(seed, { policy, decision }))
        waits++
      }
    }
    assert.ok(waits > shortOrLong(10, 20), `only ${waits} clients had to wait`)
  })
}

describe('header values', () => {
  const NOW_MS = Date.UTC(2026, 10, 21, 12, 0, 0)

  test('a reset as a date has fractions and offsets, and is never read too early', () => {
    const resets = [
      '2026-11-21T12:00:30.900Z',
      '2026-11-21T12:00:30.9005Z',
      '2026-11-21T13:30:30+01:30',
      '2026-11-21T11:30:30-00:30',
      '2026-11-21 12:00:30-00:00',
      'Sat Nov 21 2026 12:00:30 GMT+0000 (Coordinated Universal Time)',
      'Sat Nov 21 2026 07:00:30 GMT-0500',
      'Sat, 21 Nov 2026 12:00:30 GMT',
    ]
    assert.deepEqual(
      resets.map((text) => readRateLimit({ 'x-ratelimit-reset': text }, { nowMs: NOW_MS }).resetAfterMs),
      [30_900, 30_901, 30_000, 30_000, 30_000, 30_000, 30_000, 30_000],
    )
    const now = String(new Date(NOW_MS + 5_000))
    assert.equal(readRateLimit({ 'x-ratelimit-reset': now }, { nowMs: NOW_MS }).resetAfterMs, 5_000, now)
  })

  test('Retry-After and resets may be a moment in Unix time, a date or a duration', () => {
    const nowS = NOW_MS / 1_000
    const forms: readonly (readonly [text: string, ms: number | undefined])[] = [
      ['40', 40_000],
      ['1.5', 1_500],
      [`${nowS + 40}`, 40_000],
      [`${nowS + 40}.250`, 40_250],
      [`${NOW_MS + 40_000}`, 40_000],
      [`${NOW_MS + 40_000}000`, 40_000],
      [`${NOW_MS + 40_000}000000`, 40_000],
      [`${nowS - 5}`, 0],
      ['2026-11-21T12:00:40Z', 40_000],
      ['2026-11-21T13:00:40.5+01:00', 40_500],
      ['Sat, 21 Nov 2026 12:00:40 GMT', 40_000],
      ['6m0s', 360_000],
      ['1h2m3.5s', 3_723_500],
      ['1m30.951s', 90_951],
      ['1d2h', 93_600_000],
      ['20ms', 20],
      ['1.5ms', 2],
      ['850µs', 1],
      ['850μs', 1],
      ['850us', 1],
      [Buffer.from('850µs').toString('latin1'), 1],
      [Buffer.from('850μs').toString('latin1'), 1],
      ['17ns', 1],
      ['0s', 0],
      [`30, ${nowS + 40}`, 40_000],
      ['soon', undefined],
      ['-5', undefined],
      ['5 minutes', undefined],
    ]
    for (const [text, ms] of forms) {
      assert.equal(readRateLimit({ 'retry-after': text }, { nowMs: NOW_MS }).retryAfterMs, ms, text)
      assert.equal(readRateLimit({ 'x-ratelimit-reset': text }, { nowMs: NOW_MS }).resetAfterMs, ms, text)
    }
  })

  test('milliseconds come before Retry-After, if they are a number', () => {
    const read = (headers: Record<string, string>) => readRateLimit({ 'retry-after': '7', ...headers }, { nowMs: NOW_MS }).retryAfterMs
    assert.equal(read({ 'retry-after-ms': '250' }), 250)
    assert.equal(read({ 'x-ms-retry-after-ms': '300' }), 300)
    assert.equal(read({ 'retry-after-ms': 'soon', 'x-ms-retry-after-ms': '300' }), 300)
    assert.equal(read({ 'retry-after-ms': 'soon' }), 7_000)
  })

  test('a resource and its window may be in the name of the header', () => {
    const cerebras = readRateLimit({
      'x-ratelimit-limit-requests-day': '14400',
      'x-ratelimit-remaining-requests-day': '14000',
      'x-ratelimit-reset-requests-day': '3600.5',
      'x-ratelimit-limit-tokens-minute': '60000',
      'x-ratelimit-remaining-tokens-minute': '0',
      'x-ratelimit-reset-tokens-minute': '12.5',
    })
    assert.deepEqual(cerebras.policies, [
      { name: 'tokens-minute', windowMs: 60_000, limit: 60_000, remaining: 0, resetAfterMs: 12_500 },
      { name: 'requests-day', windowMs: 86_400_000, limit: 14_400, remaining: 14_000, resetAfterMs: 3_600_500 },
    ])
    assert.deepEqual([cerebras.remaining, cerebras.resetAfterMs], [0, 12_500])
    const kong = readRateLimit({ 'x-ratelimit-limit-minute': '60', 'x-ratelimit-remaining-minute': '7' })
    assert.deepEqual(kong, {
      limit: 60,
      remaining: 7,
      policies: [{ name: 'requests-minute', windowMs: 60_000, limit: 60, remaining: 7 }],
    })
  })
})

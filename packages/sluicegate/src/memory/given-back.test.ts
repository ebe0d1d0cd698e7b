import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BookingBucket, firstExcess, type GiveBackRule, giveBackRule, Random, type RateSpec } from 'sluicegate-testkit'
import { RESERVED_SPECS, reservedHistory } from 'sluicegate-testkit/history/reserved-history.js'
import { concurrency, createLimiter, fixedWindow, type Limiter, manualClock, type Policy, slidingLog, slidingWindow } from '../index.js'
import { type ReservationService, reserve } from '../waiting/reserving.js'

const DAY_MS = 86_400_000
const START_MS = 1_789_000_000_000 - (1_789_000_000_000 % 60_000)
const POLICIES: readonly Policy[] = [
  fixedWindow({ limit: 3, window: '1m' }),
  fixedWindow({ limit: 3, window: 'day', name: 'a day' }),
  slidingWindow({ limit: 3, window: '1m' }),
  slidingWindow({ limit: 3, window: 200, name: 'short' }),
  slidingLog({ limit: 3, window: '1m' }),
]
const WAYS: Readonly<Record<string, (limiter: Limiter) => unknown>> = {
  refund: (limiter) => [limiter.take('k'), limiter.refund('k', 1)],
  cancel: (limiter) => limiter.reserve('k', 1).cancel(),
  settle: (limiter) => limiter.reserve('k', 1).settle(0),
  'penalize and refund': (limiter) => [limiter.penalize('k', 2), limiter.refund('k', 2)],
}

for (const policy of POLICIES) {
  for (const [way, giveBack] of Object.entries(WAYS)) {
    test(`I3 ${policy.name}, ${way}: what is given back later gives a clock that is set back nothing twice`, () => {
      const clock = manualClock(START_MS)
      const limiter = createLimiter(policy, { clock })
      const { windowMs } = policy
      clock.set(START_MS + windowMs * 3 - (START_MS % windowMs))
      assert.equal(limiter.take('k', 3).allowed, true)
      clock.advance(windowMs * 1.5)
      giveBack(limiter)
      clock.advance(-windowMs)
      assert.equal(limiter.take('k').allowed, false)
      clock.advance(windowMs * 3)
      assert.equal(limiter.take('k', 3).allowed, true)
    })
  }
}

test('a slot that lay idle for years holds the next permit at once', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(concurrency({ limit: 2, ttl: '366d' }), { clock })
  const kept = limiter.take('k')
  limiter.take('k')
  for (let i = 0; i < 5; i++) {
    clock.advance(200 * DAY_MS)
    assert.equal(kept.heartbeat(), true)
  }
  assert.equal(limiter.take('k').allowed, true)
  assert.equal(limiter.take('k').allowed, false)
})

const [SPEC = { limit: 1000, windowMs: 1000, burst: 10 }] = RESERVED_SPECS
const SEEDS = Array.from({ length: 6000 }, (_, i) => 20_261_121 + i)

/** Everything that was asked back. */
const everything: GiveBackRule = ({ back }) => back
/** As far as the debt that the booking left has not worn off, less what came after it: right for one booking, not for two. */
const ofTheDebtItLeft: GiveBackRule = ({ back, booked, debt, wornSinceBooked, capacity }) => {
  const expected = Math.max(0, booked - wornSinceBooked)
  return Math.max(0, Math.min(back, expected) - Math.max(0, debt - Math.max(capacity, expected)))
}
/** One unit more than the rule. */
const oneMore: GiveBackRule = (claim) => Math.min(claim.back, giveBackRule(claim) + 1)
/** What came after a booking is taken for left behind where it is more than that can be. */
const oneMoreBehind: GiveBackRule = (claim) => giveBackRule({ ...claim, rest: claim.rest + 1 })

/** The first excess of a history, and how much came back in it. */
function played(seed: number, rule: GiveBackRule) {
  const spec = RESERVED_SPECS[seed % RESERVED_SPECS.length] as RateSpec
  const clock = manualClock(1_790_000_000_000)
  const bucket = new BookingBucket(spec, clock, rule)
  let came = 0
  const history = reservedHistory(new Random(seed), spec, {
    advance: (ms) => clock.advance(ms),
    nowUs: () => bucket.nowUs(),
    take: (cost) => bucket.take(cost).allowed,
    book(cost) {
      let atUs = 0
      const service: ReservationService = {
        book(key, cost, mostMs) {
          const booking = bucket.book(key, cost, mostMs)
          atUs = booking.atUs
          return booking
        },
        giveBack: (booking, tokens) => bucket.giveBack(booking, tokens),
        peek: (key, cost = 1) => bucket.peek(key, cost),
        penalize: (key, tokens) => bucket.penalize(key, tokens),
      }
      const reservation = reserve(service, 'k', cost)
      const settle = (actual: number): void => {
        const before = bucket.debt
        reservation.settle(actual)
        came += before - bucket.debt
      }
      return { atUs, settle }
    },
  })
  return { excess: firstExcess(spec, history), came }
}

test(`no history of ${SEEDS.length} exceeds burst + rate * length, whatever is reserved, settled and cancelled`, () => {
  let came = 0
  for (const seed of SEEDS) {
    const result = played(seed, giveBackRule)
    assert.equal(result.excess, undefined, `seed ${seed}`)
    came += result.came
  }
  assert.ok(came > 0)
})

for (const [name, rule] of Object.entries({ everything, ofTheDebtItLeft, oneMore, oneMoreBehind })) {
  test(`a rule that gives back too much is found out: ${name}`, () => {
    assert.ok(SEEDS.some((seed) => played(seed, rule).excess !== undefined))
  })
}

test('two cancels in a row gain nothing that one would not', () => {
  for (const [rule, most] of [
    [giveBackRule, 10],
    [ofTheDebtItLeft, 15],
  ] as const) {
    const clock = manualClock()
    const bucket = new BookingBucket(SPEC, clock, rule)
    const [first, second] = [reserve(bucket, 'k', 5), reserve(bucket, 'k', 5)]
    first.cancel()
    clock.advance(5)
    let taken = 0
    while (bucket.take(1).allowed) taken++
    second.cancel()
    while (bucket.take(1).allowed) taken++
    assert.equal(taken, most)
  }
})

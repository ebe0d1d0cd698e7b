import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BookingBucket, firstExcess, type GiveBackRule, giveBackRule, Random, type RateSpec } from 'sluicegate-testkit'
import { RESERVED_SPECS, reservedHistory } from 'sluicegate-testkit/history/reserved-history.js'
import { manualClock } from '../time/clock.js'
import { type ReservationService, reserve } from '../waiting/reserving.js'

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

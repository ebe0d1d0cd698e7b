import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BookingBucket, firstExcess, type GiveBackRule, giveBackRule, Random, type RateSpec } from 'sluicegate-testkit'
import type { Reservation } from '../decision/reservation.js'
import { manualClock } from '../time/clock.js'
import { type ReservationService, reserve } from '../waiting/reserving.js'

// Ten tokens, one a millisecond.
const SPEC = { limit: 1000, windowMs: 1000, burst: 10 }
const SPECS: readonly RateSpec[] = [
  SPEC,
  { limit: 7, windowMs: 60_000, burst: 3 },
  { limit: 3, windowMs: 1000, burst: 20 },
  { limit: 3, windowMs: 1000, burst: 1 },
  // In a microsecond nearly a token flows back, and more than one.
  { limit: 999, windowMs: 1, burst: 2 },
  { limit: 7000, windowMs: 3, burst: 5 },
]
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

/** Takes, reservations and how they end, in a random order, then all that can be taken: the history, and how much came back. */
function played(seed: number, rule: GiveBackRule) {
  const random = new Random(seed)
  const spec = SPECS[seed % SPECS.length] as RateSpec
  const clock = manualClock(1_790_000_000_000)
  const bucket = new BookingBucket(spec, clock, rule)
  const history: { atUs: number; cost: number }[] = []
  const open: { reservation: Reservation; admission: { atUs: number; cost: number } }[] = []
  let came = 0
  const pass = (bursts: number): void => {
    const refillUs = (spec.windowMs * 1000 * spec.burst) / spec.limit
    clock.advance(Math.floor(random.fraction() * bursts * refillUs) / 1000)
  }
  const take = (cost: number): boolean => {
    const { allowed } = bucket.take(cost)
    if (allowed) history.push({ atUs: bucket.nowUs(), cost })
    return allowed
  }
  const takeAll = (): void => {
    for (let cost = spec.burst; cost >= 1; cost--) while (take(cost));
  }
  const book = (): void => {
    const admission = { atUs: 0, cost: random.integer(1, spec.burst) }
    const service: ReservationService = {
      book(key, cost, mostMs) {
        const booking = bucket.book(key, cost, mostMs)
        admission.atUs = booking.atUs
        return booking
      },
      giveBack: (booking, tokens) => bucket.giveBack(booking, tokens),
      peek: (key, cost = 1) => bucket.peek(key, cost),
      penalize: (key, tokens) => bucket.penalize(key, tokens),
    }
    open.push({ reservation: reserve(service, 'k', admission.cost), admission })
    history.push(admission)
  }
  const end = (): void => {
    const [ended] = open.splice(random.integer(0, open.length - 1), 1)
    if (ended === undefined) return
    const actual = random.chance(0.6) ? 0 : random.integer(0, ended.admission.cost)
    const before = bucket.debt
    ended.reservation.settle(actual)
    came += before - bucket.debt
    ended.admission.cost = actual
  }
  for (let step = random.integer(4, 14); step > 0; step--) {
    random.pick([() => pass(1.2), () => pass(0.2), () => take(random.integer(1, spec.burst)), book, book, end, end])()
  }
  for (let i = 0; i < 3; i++) {
    pass(2)
    takeAll()
    while (open.length > 0 && random.chance(0.6)) end()
    takeAll()
  }
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

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BookingBucket, firstExcess, type GiveBackRule, giveBackRule, Random, type RateSpec } from 'sluicegate-testkit'
import { manualClock } from './clock.js'
import { StoreError } from './errors.js'
import type { Reservation } from './reservation.js'
import { type ReservationDesk, reserve } from './reserving.js'

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

function fixture(rule?: GiveBackRule) {
  const clock = manualClock()
  const bucket = new BookingBucket(SPEC, clock, rule)
  return { clock, bucket, tokens: () => bucket.debt / 1000 }
}

test('a reservation charges at once what may be spent later', () => {
  const { bucket, clock } = fixture()
  bucket.take(8)
  clock.advance(0.25)
  const reservation = reserve(bucket, 'k', 5)
  assert.deepEqual([reservation.allowed, reservation.waitMs], [true, 3])
  assert.deepEqual(reservation.decision, bucket.peek('k', 1))
  clock.advance(2.75)
  assert.equal(bucket.take(1).allowed, false)
  clock.advance(1)
  assert.equal(bucket.take(1).allowed, true)
})

test('what is there may be spent at once', () => {
  const { bucket } = fixture()
  assert.deepEqual([reserve(bucket, 'k', 10).waitMs, reserve(bucket, 'k', 1).waitMs], [0, 1])
})

test('what can never pass is not reserved, and has nothing to give back', () => {
  const { bucket, tokens } = fixture()
  const reservation = reserve(bucket, 'k', 11)
  assert.deepEqual([reservation.allowed, reservation.waitMs, reservation.decision.allowed], [false, Number.POSITIVE_INFINITY, false])
  bucket.take(5)
  for (const call of [() => reservation.cancel(), () => reservation.settle(3), () => reservation.settle(50)]) {
    assert.deepEqual(call(), bucket.peek('k', 1))
  }
  assert.equal(tokens(), 5)
})

test('settling gives back what was too much, and charges what was too little', () => {
  for (const [actual, owed] of [
    [8, 8],
    [3, 3],
    [0, 0],
    [9, 9],
    [25, 25],
  ] as const) {
    const { bucket, tokens } = fixture()
    const reservation = reserve(bucket, 'k', 8)
    assert.deepEqual(reservation.settle(actual), bucket.peek('k', 1))
    assert.equal(tokens(), owed)
  }
})

test('a reservation is settled or cancelled once', () => {
  const first = [(r: Reservation) => r.cancel(), (r: Reservation) => r.settle(2)]
  for (const end of first) {
    const { bucket, tokens } = fixture()
    bucket.take(1)
    const reservation = reserve(bucket, 'k', 8)
    end(reservation)
    const owed = tokens()
    for (const again of [() => reservation.cancel(), () => reservation.settle(0), () => reservation.settle(100)]) {
      assert.deepEqual(again(), bucket.peek('k', 1))
    }
    assert.equal(tokens(), owed)
  }
})

test('what was really spent is a whole number, or the reservation stays open', () => {
  const { bucket, tokens } = fixture()
  const reservation = reserve(bucket, 'k', 8)
  for (const wrong of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '3']) {
    assert.throws(() => reservation.settle(wrong as number), { name: 'PolicyError', code: 'COST_INVALID', option: 'actualCost' })
  }
  reservation.settle(3)
  assert.equal(tokens(), 3)
})

test('a settlement that the store could not make may be tried again', () => {
  const { bucket, tokens } = fixture()
  const reservation = reserve(bucket, 'k', 8)
  const { giveBack } = bucket
  bucket.giveBack = () => {
    bucket.giveBack = giveBack
    throw new StoreError('CONTENTION', 'too many')
  }
  assert.throws(() => reservation.cancel(), { code: 'CONTENTION' })
  reservation.cancel()
  assert.equal(tokens(), 0)
})

test('a caller may change its array of keys after the call', () => {
  const { bucket } = fixture()
  const asked: unknown[] = []
  const { peek } = bucket
  bucket.peek = (key, cost) => {
    asked.push(key)
    return peek.call(bucket, key, cost)
  }
  const key = ['a', 'b']
  const reservation = reserve(bucket, key, 2)
  key[0] = 'c'
  reservation.settle(2)
  assert.deepEqual(asked.at(-1), ['a', 'b'])
})

test('before its time the latest reservation comes back whole, an earlier one not at all, and no part of one', () => {
  const { bucket, tokens } = fixture()
  bucket.take(10)
  const [first, second, third] = [reserve(bucket, 'k', 2), reserve(bucket, 'k', 3), reserve(bucket, 'k', 4)]
  first?.cancel()
  assert.equal(tokens(), 19)
  third?.cancel()
  assert.equal(tokens(), 15)
  second?.settle(1)
  assert.equal(tokens(), 15)
})

test('from its time on a reservation comes back as far as its charge has not worn off', () => {
  const { bucket, clock, tokens } = fixture()
  const reservation = reserve(bucket, 'k', 6)
  clock.advance(2)
  bucket.take(6)
  reservation.settle(1)
  // Of the six two have worn off; of the other four five were asked back.
  assert.equal(tokens(), 6)
})

test('nothing comes back while others wait for their time', () => {
  const { bucket, clock, tokens } = fixture()
  const spent = reserve(bucket, 'k', 10)
  reserve(bucket, 'k', 2)
  spent.settle(1)
  assert.equal(tokens(), 12)
  clock.advance(2)
  spent.settle(1)
  assert.equal(tokens(), 10)
})

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
    const desk: ReservationDesk = {
      book(key, cost, mostMs) {
        const booking = bucket.book(key, cost, mostMs)
        admission.atUs = booking.atUs
        return booking
      },
      giveBack: (booking, tokens) => bucket.giveBack(booking, tokens),
      peek: (key, cost = 1) => bucket.peek(key, cost),
      penalize: (key, tokens) => bucket.penalize(key, tokens),
    }
    open.push({ reservation: reserve(desk, 'k', admission.cost), admission })
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
    const { bucket, clock } = fixture(rule)
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

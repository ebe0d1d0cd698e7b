import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstExcess, Random, type RateSpec, shortOrLong } from 'sluicegate-testkit'
import { RESERVED_SPECS, reservedHistory } from 'sluicegate-testkit/history/reserved-history.js'
import { createLimiter, gcra, manualClock, tokenBucket } from '../index.js'
import { type ReservationService, reservationOf } from './reserving.js'

const SEEDS = Array.from({ length: shortOrLong(250, 500) }, (_, i) => 20_261_121 + i)

/** The first excess of a history. */
function played(seed: number, policyOf: typeof tokenBucket | typeof gcra) {
  const spec = RESERVED_SPECS[seed % RESERVED_SPECS.length] as RateSpec
  const clock = manualClock(1_790_000_000_000)
  using limiter = createLimiter(policyOf({ limit: spec.limit, window: spec.windowMs, burst: spec.burst }), { clock, maxKeys: 1 })
  const history = reservedHistory(new Random(seed), spec, {
    advance: (ms) => clock.advance(ms),
    nowUs: () => Math.round(clock.nowMs() * 1000),
    take: (cost) => limiter.take('k', cost).allowed,
    book(cost) {
      const service = limiter as unknown as ReservationService
      // A caller that returns at the end of `waitMs` comes at its microsecond or up to a millisecond later: the earliest is the time booked for.
      const booking = service.book('k', cost, Number.POSITIVE_INFINITY)
      const reservation = reservationOf(service, booking)
      return { atUs: booking.atUs, settle: (actual) => void reservation.settle(actual) }
    },
  })
  return firstExcess(spec, history)
}

for (const policyOf of [tokenBucket, gcra]) {
  test(`${policyOf.name}: in ${SEEDS.length} histories nothing exceeds burst + rate * length, whatever is reserved, settled and cancelled`, () => {
    for (const seed of SEEDS) assert.equal(played(seed, policyOf), undefined, `seed ${seed}`)
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstExcess, Random, type RateSpec, shortOrLong } from 'sluicegate-testkit'
import { createLimiter, gcra, manualClock, type Reservation, tokenBucket } from '../index.js'

const SPECS: readonly RateSpec[] = [
  { limit: 1000, windowMs: 1000, burst: 10 },
  { limit: 7, windowMs: 60_000, burst: 3 },
  { limit: 3, windowMs: 1000, burst: 20 },
  { limit: 3, windowMs: 1000, burst: 1 },
  // In a microsecond nearly a token flows back, and more than one.
  { limit: 999, windowMs: 1, burst: 2 },
  { limit: 7000, windowMs: 3, burst: 5 },
]
const SEEDS = Array.from({ length: shortOrLong(250, 3000) }, (_, i) => 20_261_121 + i)

/** Takes, reservations and how they end, in a random order, then all that can be taken: what was admitted, and when. */
function played(seed: number, policyOf: typeof tokenBucket | typeof gcra) {
  const random = new Random(seed)
  const spec = SPECS[seed % SPECS.length] as RateSpec
  const clock = manualClock(1_790_000_000_000)
  using limiter = createLimiter(policyOf({ limit: spec.limit, window: spec.windowMs, burst: spec.burst }), { clock, maxKeys: 1 })
  const history: { atUs: number; cost: number }[] = []
  const open: { reservation: Reservation; admission: { atUs: number; cost: number } }[] = []
  const nowUs = (): number => Math.round(clock.nowMs() * 1000)
  const pass = (bursts: number): void => {
    const refillUs = (spec.windowMs * 1000 * spec.burst) / spec.limit
    clock.advance(Math.floor(random.fraction() * bursts * refillUs) / 1000)
  }
  const take = (cost: number): boolean => {
    const { allowed } = limiter.take('k', cost)
    if (allowed) history.push({ atUs: nowUs(), cost })
    return allowed
  }
  const takeAll = (): void => {
    for (let cost = spec.burst; cost >= 1; cost--) while (take(cost));
  }
  const book = (): void => {
    const cost = random.integer(1, spec.burst)
    const reservation = limiter.reserve('k', cost)
    // A caller that returns at the end of `waitMs` comes at its microsecond or up to a millisecond later: the earliest is the time booked for.
    const { booking } = reservation as unknown as { booking: { atUs: number } }
    const admission = { atUs: booking.atUs, cost }
    open.push({ reservation, admission })
    history.push(admission)
  }
  const end = (): void => {
    const [ended] = open.splice(random.integer(0, open.length - 1), 1)
    if (ended === undefined) return
    ended.admission.cost = random.chance(0.6) ? 0 : random.integer(0, ended.admission.cost)
    ended.reservation.settle(ended.admission.cost)
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
  return firstExcess(spec, history)
}

for (const policyOf of [tokenBucket, gcra]) {
  test(`${policyOf.name}: in ${SEEDS.length} histories nothing exceeds burst + rate * length, whatever is reserved, settled and cancelled`, () => {
    for (const seed of SEEDS) assert.equal(played(seed, policyOf), undefined, `seed ${seed}`)
  })
}

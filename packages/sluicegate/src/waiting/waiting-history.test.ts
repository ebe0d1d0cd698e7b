import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BookingBucket, firstExcess, Random, type RateSpec, shortOrLong } from 'sluicegate-testkit'
import type { Decision } from '../decision/decision.js'
import { manualClock } from '../time/clock.js'
import type { Booking, BookingService } from './reserving.js'
import { Waiting } from './waiting.js'

const SPECS: readonly RateSpec[] = [
  { limit: 1000, windowMs: 1000, burst: 10 },
  { limit: 7, windowMs: 60_000, burst: 3 },
  { limit: 3, windowMs: 1000, burst: 20 },
]
const SEEDS = Array.from({ length: shortOrLong(50, 200) }, (_, i) => 20_261_122 + i)
const KEYS = ['a', 'b']

interface Admission {
  readonly atUs: number
  readonly cost: number
}

/** Arrivals, aborts and takes on two keys in a random order, and then as much time as it takes. */
async function played(seed: number) {
  const random = new Random(seed)
  const spec = SPECS[seed % SPECS.length] as RateSpec
  const refillMs = (spec.windowMs * spec.burst) / spec.limit
  const clock = manualClock(1_790_000_000_000)
  const buckets = new Map(KEYS.map((key) => [key, new BookingBucket(spec, clock)]))
  const admitted = new Map(KEYS.map((key) => [key, new Set<Admission>()]))
  const of = (key: unknown): BookingBucket => buckets.get(key as string) as BookingBucket
  const histories = (key: unknown): Set<Admission> => admitted.get(key as string) as Set<Admission>
  const late: Booking[] = []
  const service: BookingService = {
    book(key, cost, mostMs) {
      const booking = of(key).book(key, cost, mostMs)
      if (booking.allowed) histories(key).add(booking)
      return booking
    },
    redeem(booking) {
      if (booking.atUs !== of(booking.key).nowUs()) late.push(booking)
      return of(booking.key).redeem(booking)
    },
    giveBack(booking, tokens) {
      histories(booking.key).delete(booking)
      return of(booking.key).giveBack(booking, tokens)
    },
    refuse: (key, cost) => of(key).refuse(key as string, cost),
  }
  const waiting = new Waiting<Decision>({ service, clock, maxWaiters: 30 })
  const ends: Promise<void>[] = []
  const controllers: AbortController[] = []
  const passed = new Map<string, number[]>(KEYS.map((key) => [key, []]))
  let aborted = 0
  for (let arrival = 0; arrival < 80; arrival++) {
    const key = random.pick(KEYS)
    const cost = random.chance(0.7) ? 1 : random.integer(1, spec.burst)
    const step = random.integer(0, 9)
    if (step < 2) clock.advance(Math.floor(random.fraction() * refillMs * 500) / 1000)
    else if (step < 4) {
      const { allowed } = of(key).take(cost)
      if (allowed) histories(key).add({ atUs: of(key).nowUs(), cost })
    } else if (step < 5) random.pick([...controllers, new AbortController()]).abort()
    else {
      const controller = new AbortController()
      controllers.push(controller)
      const end = waiting.wait(key, {
        cost,
        signal: controller.signal,
        ...(random.chance(0.2) ? { maxWait: random.fraction() * refillMs } : {}),
      })
      ends.push(
        end.then(
          ({ allowed }) => void (allowed && passed.get(key)?.push(arrival)),
          () => void aborted++,
        ),
      )
    }
    for (let i = 0; i < 4; i++) await Promise.resolve()
  }
  clock.advance(40 * refillMs)
  await Promise.all(ends)
  const inOrder = [...passed.values()].every((arrivals) => arrivals.every((arrival, i) => i === 0 || arrival > (arrivals[i - 1] as number)))
  const excess = KEYS.map((key) => firstExcess(spec, [...histories(key)]))
  return { excess, inOrder, late, aborted, left: waiting.size, passed: [...passed.values()].flat().length }
}

test(`in ${SEEDS.length} histories no wait starves, is overtaken or late, and no key exceeds burst + rate * length`, async () => {
  let [aborted, passed] = [0, 0]
  for (const seed of SEEDS) {
    const result = await played(seed)
    assert.deepEqual([result.excess, result.inOrder, result.late, result.left], [[undefined, undefined], true, [], 0], `seed ${seed}`)
    aborted += result.aborted
    passed += result.passed
  }
  assert.ok(aborted > SEEDS.length && passed > 10 * SEEDS.length)
})

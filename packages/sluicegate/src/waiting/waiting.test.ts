import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BookingBucket, firstExcess, loggedWaiting, Random, type RateSpec, settled, shortOrLong } from 'sluicegate-testkit'
import type { Decision } from '../decision/decision.js'
import { manualClock, preciseClock } from '../time/clock.js'
import type { Booking, BookingService } from './reserving.js'
import { Waiting } from './waiting.js'

test('a call does not wait if the tokens are available', async () => {
  const { bucket, waiting } = loggedWaiting()
  const twin = loggedWaiting().bucket
  assert.deepEqual(await waiting.wait('k', { cost: 4 }), twin.take(4))
  assert.equal(waiting.size, 0)
  assert.equal(bucket.take(6).allowed, true)
})

test('waits pass at their time, in the order of arrival', async () => {
  const { bucket, log } = loggedWaiting()
  bucket.take(10)
  for (const [name, cost] of [
    ['a', 2],
    ['b', 1],
    ['c', 1],
    ['d', 3],
    ['e', 1],
  ] as const)
    void log.wait(name, { cost })
  await log.pass(20)
  assert.deepEqual(log.lines, ['a passed at 2', 'b passed at 3', 'c passed at 4', 'd passed at 7', 'e passed at 8'])
})

test('an answer that was waited for is that of a take at that moment', async () => {
  const { bucket, clock, waiting } = loggedWaiting()
  bucket.take(10)
  const answer = waiting.wait('k', { cost: 3 })
  clock.advance(3)
  const twin = loggedWaiting().bucket
  twin.take(7)
  assert.deepEqual(await answer, twin.take(3))
})

test('a take does not overtake waits', async () => {
  const { bucket, log } = loggedWaiting()
  bucket.take(10)
  for (const name of ['a', 'b', 'c']) void log.wait(name, { cost: 4 })
  await log.pass(11)
  assert.equal(bucket.take(1).allowed, false)
  await log.pass(2)
  assert.deepEqual(log.lines, ['a passed at 4', 'b passed at 8', 'c passed at 12'])
  assert.equal(bucket.take(1).allowed, true)
})

test('waiters of several keys that fall due together pass in the order of arrival', async () => {
  const clock = manualClock()
  const buckets = new Map(['x', 'y', 'z'].map((key) => [key, new BookingBucket({ limit: 1000, windowMs: 1000, burst: 10 }, clock)]))
  const of = (key: unknown): BookingBucket => buckets.get(key as string) as BookingBucket
  const waiting = new Waiting<Decision>({
    clock,
    maxWaiting: 10,
    service: {
      book: (key, cost, mostMs) => of(key).book(key, cost, mostMs),
      redeem: (booking) => of(booking.key).redeem(booking),
      giveBack: (booking, tokens) => of(booking.key).giveBack(booking, tokens),
      refuse: (key, cost) => of(key).refuse(key as string, cost),
    },
  })
  for (const bucket of buckets.values()) bucket.take(10)
  const passed: string[] = []
  for (const key of ['z', 'x', 'y', 'x', 'z', 'y']) void waiting.wait(key).then(() => passed.push(key))
  clock.advance(10)
  await settled()
  assert.equal(passed.join(''), 'zxyxzy')
})

test('a step back of the clock delays waits by the step, and loses none', async () => {
  const { bucket, clock, log } = loggedWaiting()
  bucket.take(10)
  void log.wait('a', { cost: 5 })
  void log.wait('b', { cost: 5 })
  await log.pass(4)
  clock.advance(-100)
  await log.pass(100)
  assert.deepEqual(log.lines, [])
  await log.pass(10)
  assert.deepEqual(log.lines, ['a passed at 5', 'b passed at 10'])
})

test('who finds the key blocked waits for the end of the block, with all who come later behind', async () => {
  const { bucket, waiting, log } = loggedWaiting()
  bucket.blockedUntilUs = bucket.nowUs() + 50_000
  await log.wait('impatient', { maxWait: 49.999 })
  void log.wait('a', { cost: 8 })
  void log.wait('b', { cost: 5 })
  void log.wait('c')
  assert.deepEqual([waiting.queued, waiting.isQueued('k'), waiting.isQueued('other')], [3, true, false])
  await log.pass(60)
  assert.deepEqual(log.lines, ['impatient denied for 50 at 0', 'a passed at 50', 'b passed at 53', 'c passed at 54'])
  assert.deepEqual([waiting.queued, waiting.isQueued('k'), waiting.size], [0, false, 0])
})

test('after a refund a new caller of the same cost does not overtake: the waits move up', async () => {
  const { bucket, log } = loggedWaiting()
  bucket.take(10)
  void log.wait('a', { cost: 3 })
  void log.wait('b', { cost: 3 })
  bucket.refund(9)
  void log.wait('c', { cost: 3 })
  await settled()
  assert.deepEqual(log.lines, ['a passed at 0'])
  // One that cannot wait as long as the last has to takes what it booked itself.
  void log.wait('d', { cost: 3, maxWait: 5 })
  await log.pass(10)
  assert.deepEqual(log.lines, ['a passed at 0', 'b passed at 3', 'd passed at 3', 'c passed at 6'])
})

test('a pending wait keeps the process alive by one timer, and nothing else does', async () => {
  const clock = preciseClock()
  const bucket = new BookingBucket({ limit: 1, windowMs: 3_600_000, burst: 1 }, clock)
  const waiting = new Waiting<Decision>({ service: bucket, clock, maxWaiting: 1000 })
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const idle = timers()
  await waiting.wait('k')
  assert.equal(timers(), idle)
  const controller = new AbortController()
  const all = Array.from({ length: 1000 }, () => waiting.wait('k', { signal: controller.signal }))
  assert.equal(timers(), idle + 1)
  controller.abort('over')
  const ends = await Promise.allSettled(all)
  assert.equal(
    ends.every(({ status }) => status === 'rejected'),
    true,
  )
  assert.equal(timers(), idle)
})

test('with real timers no wait passes early, and all pass in order', async () => {
  const clock = preciseClock()
  const bucket = new BookingBucket({ limit: 1000, windowMs: 1000, burst: 1 }, clock)
  const waiting = new Waiting<Decision>({ service: bucket, clock, maxWaiting: 100 })
  const early: unknown[] = []
  const { redeem } = bucket
  bucket.redeem = (booking) => {
    if (clock.nowMs() * 1000 < booking.atUs - 0.5) early.push(booking)
    return redeem.call(bucket, booking)
  }
  const passed: number[] = []
  await Promise.all(Array.from({ length: 20 }, (_, i) => waiting.wait('k').then(() => passed.push(i))))
  assert.deepEqual([early, passed], [[], Array.from({ length: 20 }, (_, i) => i)])
})

const SPECS: readonly RateSpec[] = [
  { limit: 1000, windowMs: 1000, burst: 10 },
  { limit: 7, windowMs: 60_000, burst: 3 },
  { limit: 3, windowMs: 1000, burst: 20 },
]
const SEEDS = Array.from({ length: shortOrLong(50, 100) }, (_, i) => 20_261_122 + i)
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
  const waiting = new Waiting<Decision>({ service, clock, maxWaiting: 30 })
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

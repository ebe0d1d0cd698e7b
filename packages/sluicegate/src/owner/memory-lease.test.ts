import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Admission, firstOver, Random, shortOrLong, specOf } from 'sluicegate-testkit'
import { createLimiter } from '../create-limiter.js'
import type { Grant } from '../lease/grant.js'
import { Batch } from '../lease/held-tokens.js'
import { leaseUsOf, whyNotLeased } from '../lease/leasing.js'
import type { Limiter } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from '../policy/single-policy.js'
import { type ManualClock, manualClock } from '../time/clock.js'
import type { Booking, BookingService } from '../waiting/reserving.js'
import { Holdings } from './holdings.js'
import { keepRoomForLeases, leasedFrom, policyUnderLease } from './memory-lease.js'
import { grantIn, numbersOfLease } from './message.js'

const START_MS = 1_789_000_000_000
const HORIZON_MS = 50
const LEASE_US = leaseUsOf(HORIZON_MS)
const HISTORIES = shortOrLong(15, 30)
const STEPS = 80

/** What a history goes by: the policy as it is kept, for how long a lease leaves room, and a grant as a process takes it in. */
interface Rules {
  kept(policy: Policy): Policy
  readonly leaseUs: number
  taken(grant: Grant): Grant
}

const SOUND: Rules = { kept: (policy) => policyUnderLease(policy, LEASE_US), leaseUs: LEASE_US, taken: (grant) => grant }

const POLICIES: Readonly<Record<string, (random: Random) => Policy>> = {
  'token-bucket': (random) => tokenBucket({ limit: random.integer(20, 2000), window: '1s', burst: random.integer(210, 300) }),
  gcra: (random) => gcra({ limit: random.integer(200, 30_000), window: '10s', burst: random.integer(310, 400) }),
  'fixed-window': (random) => fixedWindow({ limit: random.integer(20, 200), window: random.integer(2000, 2500) }),
  'sliding-window': (random) => slidingWindow({ limit: random.integer(20, 200), window: random.integer(2000, 2500) }),
  'sliding-log': (random) => slidingLog({ limit: random.integer(20, 100), window: random.integer(2000, 2500) }),
}

for (const [algorithm, policyFrom] of Object.entries(POLICIES)) {
  test(`I1 ${algorithm}: processes that hold what they were lent until the last moment are never over the policy, in ${HISTORIES} histories`, () => {
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const policy = policyFrom(new Random(seed))
      assert.equal(whyNotLeased(policy, HORIZON_MS), undefined)
      assert.equal(firstOver(specOf(policy), history(policy, new Random(seed), SOUND)), undefined, `seed ${seed}`)
    }
  })
}

const FAULTY: readonly (readonly [fault: string, algorithms: readonly string[], rules: Rules])[] = [
  ['the whole burst is lent', ['token-bucket', 'gcra'], { ...SOUND, leaseUs: 0, taken: goodForALease }],
  ['a lease leaves room for half of it', ['token-bucket', 'gcra'], { ...SOUND, leaseUs: LEASE_US / 2, taken: goodForALease }],
  ['a log counts from the leasing', ['sliding-log'], { ...SOUND, kept: (policy) => policy }],
  ['tokens have no end', Object.keys(POLICIES), { ...SOUND, taken: (grant) => ({ ...grant, endUs: () => 1e12 }) }],
]

function goodForALease(grant: Grant): Grant {
  return { ...grant, endUs: () => LEASE_US }
}

for (const [fault, algorithms, rules] of FAULTY) {
  test(`it is noticed when ${fault}`, () => {
    for (const algorithm of algorithms) {
      const isNoticed = Array.from({ length: HISTORIES }, (_, i) => i + 1).some((seed) => {
        const policy = (POLICIES[algorithm] as (random: Random) => Policy)(new Random(seed))
        return firstOver(specOf(policy), history(policy, new Random(seed), rules)) !== undefined
      })
      assert.ok(isNoticed, algorithm)
    }
  })
}

test('none is handed out where there are fewer than the least that is of use, nor of a blocked key', () => {
  const clock = manualClock(START_MS)
  const desk = createLimiter(fixedWindow({ limit: 10, window: '1h' }), { clock }) as Limiter & BookingService
  const policy = desk.policy
  const asked = (want: number, least: number) => leasedFrom(desk, policy, { key: 'a', want, least }, LEASE_US, START_MS * 1000)
  assert.equal(asked(7, 1).tokens, 7)
  const short = asked(7, 4)
  assert.equal(short.tokens, 0)
  assert.ok(short.untilFreeUs > 0 && short.remaining === 3)
  desk.block('a', '1m')
  const blocked = asked(1, 1)
  assert.deepEqual([blocked.tokens, blocked.blockedUs], [0, 60_000_000])
  assert.equal(desk.peek('a').remaining, 3)
})

test('where the least that is of use was granted, and not all that was wanted, the answer says when as much is there again', () => {
  const clock = manualClock(START_MS)
  const desk = createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 10 }), { clock }) as Limiter & BookingService
  const lease = leasedFrom(desk, desk.policy, { key: 'a', want: 12, least: 8 }, LEASE_US, START_MS * 1000)
  const grant = grantIn(numbersOfLease(lease), desk.policy, 8)
  assert.equal(lease.tokens, 9)
  assert.deepEqual([grant.untilFreeFor(8), grant.untilFreeFor(10)], [800_000, 1_000_000])
})

test('the rest of the burst flows back during the lease', () => {
  const clock = manualClock(START_MS)
  const policy = tokenBucket({ limit: 100_000, window: '1s', burst: 20_000 })
  const desk = createLimiter(policyUnderLease(policy, LEASE_US), { clock }) as Limiter & BookingService
  const lease = leasedFrom(desk, policy, { key: 'a', want: 1e6, least: 1 }, LEASE_US, START_MS * 1000)
  assert.deepEqual([lease.tokens, lease.endUs, lease.untilFreeUs], [10_000, LEASE_US, 10])
})

const SMALL = tokenBucket({ limit: 100, window: '1s', burst: 20 })

test('takes get the whole burst until something is leased, and again when nothing leased can be spent', () => {
  const clock = manualClock(START_MS)
  const desk = createLimiter(SMALL, { clock }) as Limiter & BookingService
  const lease = () => leasedFrom(desk, SMALL, { key: 'a', want: 3, least: 1 }, LEASE_US, Math.round(clock.nowMs() * 1000)).tokens
  const takes = (): number => {
    let passed = 0
    while (desk.take('a').allowed) passed++
    return passed
  }
  assert.equal(takes(), 20)
  clock.advance(200)
  assert.equal(lease(), 3)
  assert.equal(takes(), 7, 'ten flow back during the lease')
  clock.advance(200)
  assert.equal(takes(), 20)
  clock.advance(200)
  assert.equal(lease(), 3)
  clock.advance(130)
  assert.equal(takes(), 20)
})

test('what is refunded or cancelled leaves room for leased tokens', () => {
  for (const isBooked of [false, true]) {
    const clock = manualClock(START_MS)
    const desk = createLimiter(SMALL, { clock }) as Limiter & BookingService
    keepRoomForLeases(desk, () => ({ policy: SMALL, leaseUs: LEASE_US }))
    const booking = desk.reserve('a', 15)
    leasedFrom(desk, SMALL, { key: 'a', want: 5, least: 1 }, LEASE_US, START_MS * 1000)
    assert.equal(desk.peek('a').remaining, 0)
    if (isBooked) booking.cancel()
    else desk.refund('a', 15)
    // What it owes is known to the token.
    assert.equal(desk.peek('a').remaining, 9)
    desk.refund('a', 5)
    clock.advance(50)
    assert.equal(desk.peek('a').remaining, 14, 'five may still be spent')
  }
})

/** A few processes on one key: questions and answers take their time, and what is held is spent at its last moment, or all at once. */
function history(policy: Policy, random: Random, rules: Rules): Admission[] {
  const clock: ManualClock = manualClock(START_MS + random.integer(0, 5000))
  const desk = createLimiter(rules.kept(policy), { clock, maxKeys: 1 }) as Limiter & BookingService
  const admissions: Admission[] = []
  const held: Batch[] = []
  let due: { readonly atUs: number; run(): void }[] = []
  let nowUs = Math.round(clock.nowMs() * 1000)
  const after = (us: number, run: () => void): void => void due.push({ atUs: nowUs + Math.max(0, Math.floor(us)), run })
  const spend = (): void => {
    for (const batch of held) {
      const cost = batch.leftAt(nowUs)
      if (cost > 0) admissions.push({ atUs: nowUs, cost })
      batch.drop(cost)
    }
  }
  const delayUs = (): number => (random.chance(0.5) ? 0 : random.integer(0, 2 * LEASE_US))
  const ask = (): void => {
    const sentUs = nowUs
    after(delayUs(), () => {
      const least = random.pick([1, 1, 1, 3])
      const want = least + random.integer(0, 200)
      const lease = leasedFrom(desk, policy, { key: 'a', want, least }, rules.leaseUs, nowUs)
      const answer = JSON.parse(JSON.stringify(numbersOfLease(lease))) as number[]
      after(delayUs(), () => {
        const grant = rules.taken(grantIn(answer, policy, least))
        if (grant.tokens === 0) return
        held.push(new Batch(grant, sentUs))
        const endUs = grant.endUs(0)
        after(sentUs + endUs - endUs / 1000 - 1 - nowUs, spend)
        after(grant.endUs(0) + random.integer(0, LEASE_US), spend)
      })
    })
  }
  const take = (): void => {
    while (desk.take('a').allowed) admissions.push({ atUs: nowUs, cost: 1 })
  }
  for (let step = 0; step < STEPS; step++) {
    after(random.integer(0, 4_000_000), random.pick([ask, ask, ask, take, spend]))
    if (random.chance(0.3)) ask()
  }
  while (due.length > 0) {
    const next = due.reduce((first, other) => (other.atUs < first.atUs ? other : first))
    due = due.filter((other) => other !== next)
    nowUs = next.atUs
    clock.set(nowUs / 1000)
    next.run()
  }
  desk.close()
  return admissions
}

const MOST_HELD = 100_000
const POLICY = gcra({ limit: 10, window: '1s', burst: 20 })

function booking(atUs: number): Booking {
  const decision = { allowed: true, limit: 10, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, policy: 'x', source: 'memory' } as const
  return { key: 'a', cost: 1, allowed: true, bookedUs: atUs, atUs, maybeSooner: false, decision }
}

test('a booking is held until nothing of it could come back, and those that are over make room', () => {
  const holdings = new Holdings(() => POLICY)
  for (let id = 0; id < shortOrLong(2, 10) * MOST_HELD; id++) {
    // A bucket is full again after 2 s; so 20 are ever of use.
    const nowUs = id * 100_000
    holdings.addBooking(id, booking(nowUs), nowUs)
    assert.ok(holdings.booking(id) !== undefined && (id < 19 || holdings.booking(id - 19) !== undefined))
  }
  const held = holdings.takeLatestFirst()
  assert.ok(held.length <= 40, `${held.length}`)
  assert.deepEqual(holdings.takeLatestFirst(), [])
})

test('one worker holds so much at once, and no more', () => {
  const holdings = new Holdings(() => slidingWindow({ limit: 10, window: '1h' }))
  for (let id = 0; id <= MOST_HELD; id++) holdings.addBooking(id, booking(0), 0)
  assert.equal(holdings.booking(0), undefined)
  assert.notEqual(holdings.booking(MOST_HELD), undefined)
  assert.equal(holdings.takeLatestFirst().length, MOST_HELD)
})

test('what is held comes back the latest first, whatever came between', () => {
  const holdings = new Holdings(() => slidingWindow({ limit: 10, window: '1h' }))
  const times = Array.from({ length: 20 }, (_, i) => i)
  for (const us of times) holdings.addBooking(us, booking(us), 0)
  assert.deepEqual(
    holdings.takeLatestFirst().map((holding) => holding.booking?.atUs),
    times.reverse(),
  )
})

describe('granted leases', () => {
  const POLICY = fixedWindow({ limit: 100, window: '1h' })

  function lentFrom(tokens: number) {
    const clock = manualClock(3_600_000)
    const desk = createLimiter(POLICY, { clock }) as Limiter & BookingService
    const granted = new Holdings(() => POLICY)
    granted.addLease(1, desk.book('k', tokens, 0), { policy: POLICY, part: 0, flowsBack: false }, clock.nowMs() * 1000)
    const giveBack = (id: number, back: number, policy = POLICY): void => {
      const booked = granted.takeBack(id, back, back, policy)
      if (booked !== undefined) desk.giveBack(booked.booking, booked.tokens)
    }
    return { clock, desk, giveBack, left: () => desk.peek('k').remaining }
  }

  test('a worker gives back what it was granted, and no more than that', () => {
    const { giveBack, left } = lentFrom(10)
    giveBack(1, 4)
    assert.equal(left(), 94)
    giveBack(1, 40)
    assert.equal(left(), 100)
    giveBack(1, 10)
    giveBack(2, 10)
    assert.equal(left(), 100)
  })

  test('nothing comes back into another window, nor of what was granted under another policy', () => {
    const { clock, desk, giveBack, left } = lentFrom(10)
    giveBack(1, 1, { ...POLICY } as typeof POLICY)
    assert.equal(left(), 90)
    clock.advance(3_600_000)
    desk.take('k', 50)
    giveBack(1, 10)
    assert.equal(left(), 50)
  })
})

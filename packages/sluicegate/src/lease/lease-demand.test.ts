import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { grantOf, HORIZON_US, MS, OF_A_WINDOW } from 'sluicegate-testkit/leases/lease-records.js'
import { KeyLease } from './key-lease.js'

const BUDGET = 1_000_000

interface Run {
  readonly takes: number
  /** Calls of either kind, and those that were leases of several tokens. */
  readonly calls: number
  readonly leases: number
  /** Leased tokens, and the part of all charged ones that expired. */
  readonly leased: number
  readonly waste: number
}

/** Takes of one token at given times, against a backend that has `left` of its budget and gives all that is wanted at once. */
function run(timesUs: readonly number[], left = 0, lease = new KeyLease(0, HORIZON_US, BUDGET)): Run {
  let [calls, leases, leased, alone] = [0, 0, 0, 0]
  const refill = (us: number): void => {
    const request = lease.want(us)
    if (!request.isLease) {
      if (lease.demand.isWaitedFor) alone++
      if (lease.demand.isWaitedFor) lease.passed(1, left * BUDGET)
      calls++
      return
    }
    calls++
    leases++
    leased += request.want
    lease.addGrant(grantOf({ tokens: request.want, remaining: left * BUDGET }), request, us)
  }
  for (const us of timesUs) {
    lease.demand.request(1)
    if (!lease.spend(us, 1)) {
      lease.demand.join(1, us)
      refill(us)
      lease.demand.leave(1)
      lease.spend(us, 1)
    } else if (lease.isLow(us)) refill(us)
  }
  return { takes: timesUs.length, calls, leases, leased, waste: 1 - timesUs.length / (leased + alone) }
}

/** Poisson arrivals with that number of requests a lease, while `isOn`. */
function arrivals(perLease: number, leases: number, isOn: (us: number) => boolean = () => true, seed = 1): number[] {
  const random = new Random(seed)
  const times: number[] = []
  const untilUs = leases * 2 * HORIZON_US
  for (let us = 0; us < untilUs; us += (-Math.log(1 - random.fraction()) * 2 * HORIZON_US) / perLease) if (isOn(us)) times.push(us)
  return times
}

test('the first request of a key is a call alone, also after a long time', () => {
  for (const us of [0, 1, 3_600_000 * MS]) {
    const lease = new KeyLease(0, HORIZON_US, BUDGET)
    lease.demand.request(1)
    lease.demand.join(1, us)
    assert.deepEqual([lease.want(us).isLease, lease.want(us).want], [false, 1])
  }
})

test('takes that wait together are one lease, of exactly as many tokens', () => {
  const lease = new KeyLease(0, HORIZON_US, BUDGET)
  for (let i = 0; i < 100; i++) {
    lease.demand.request(1)
    lease.demand.join(1, 0)
  }
  const { want, least, isLease } = lease.want(0)
  assert.deepEqual([want, least, isLease], [100, 1, true])
})

test('sparse demand is never leased: each take is a call, and nothing expires', () => {
  const { takes, calls, leases } = run(arrivals(0.5, 4000))
  assert.ok(takes > 1900 && leases < 0.05 * takes && calls <= takes, `${calls} calls, ${leases} leases of ${takes} takes`)
})

test('dense demand is leased: at 10 requests a lease at most 0.3 calls a request, at 50 at most 0.05', () => {
  for (const [perLease, most] of [
    [10, 0.3],
    [50, 0.05],
  ] as const) {
    const { takes, calls } = run(arrivals(perLease, 400))
    assert.ok(calls <= most * takes, `${calls} calls of ${takes} takes at ${perLease} requests a lease`)
  }
})

test('of a scarce budget 3 % expire at most, at any pace, also where demand comes in bursts', () => {
  const bursts = (us: number): boolean => Math.floor(us / (250 * MS)) % 4 === 0
  for (const perLease of [1, 2, 5, 10, 20, 50]) {
    for (const isOn of [undefined, bursts]) {
      const { waste, takes, calls } = run(arrivals(isOn ? 4 * perLease : perLease, 1500, isOn))
      assert.ok(waste <= 0.03, `${waste} at ${perLease} requests a lease${isOn ? ' in bursts' : ''}, ${calls} calls of ${takes} takes`)
    }
  }
})

test('of a full budget more may expire, and fewer calls are needed', () => {
  const times = arrivals(5, 1500)
  const [full, scarce] = [run(times, 1), run(times, 0)]
  assert.ok(full.calls < 0.9 * scarce.calls, `${full.calls} and ${scarce.calls} calls`)
  assert.ok(full.waste <= 0.1, `${full.waste}`)
})

test('when demand grows a hundredfold leases follow within one lease', () => {
  const lease = new KeyLease(0, HORIZON_US, BUDGET)
  run(arrivals(1, 200), 0, lease)
  const fromUs = 200 * 2 * HORIZON_US
  const { calls, takes } = run(
    arrivals(100, 1).map((us) => fromUs + us),
    0,
    lease,
  )
  assert.ok(calls < 0.5 * takes, `${calls} calls of ${takes} takes`)
})

test('callers that wait for each answer count as the takes they make meanwhile: a closed loop is leased', () => {
  const lease = new KeyLease(0, HORIZON_US, BUDGET)
  let [us, waits] = [0, 0]
  for (let spent = 0; spent < 4000; spent++) {
    lease.demand.request(1)
    if (!lease.spend(us, 1)) {
      lease.demand.join(1, us)
      const asked = lease.want(us)
      us += MS
      waits++
      if (asked.isLease) lease.addGrant(grantOf({ tokens: asked.want }), asked, us)
      else lease.passed(1, 0)
      lease.demand.leave(1)
      if (asked.isLease) assert.ok(lease.spend(us, 1))
    }
    us += MS / 100
  }
  assert.ok(waits < 100, `${waits} calls of 4,000 tokens`)
})

test('a large lease is renewed ahead of need, when a quarter is left, and a small one when it is spent', () => {
  for (const [tokens, lowAt] of [
    [100, 25],
    [20, 0],
  ] as const) {
    const lease = new KeyLease(0, HORIZON_US, BUDGET)
    lease.demand.join(tokens, 0)
    lease.addGrant(grantOf({ tokens }), { ...lease.want(0), want: tokens }, 0)
    lease.demand.leave(tokens)
    for (let left = tokens - 1; left > 0; left--) {
      lease.demand.request(1)
      assert.ok(lease.spend(0, 1))
      assert.equal(lease.isLow(0), left <= lowAt, `${left} of ${tokens}`)
    }
  }
})

test('no refill ahead of need while the backend is short of tokens', () => {
  const lease = new KeyLease(0, HORIZON_US, BUDGET)
  lease.demand.join(200, 0)
  const asked = lease.want(0)
  lease.addGrant(grantOf({ tokens: 100, untilFreeFor: () => 40 * MS, untilFreeUs: 40 * MS }), asked, 0)
  lease.demand.leave(200)
  assert.ok(lease.spend(0, 90))
  lease.demand.request(1)
  assert.equal(lease.isLow(40 * MS - 1), false)
  assert.equal(lease.isLow(200 * MS), true)
})

test('at most an eighth of what is left of a window is leased ahead, also after a return', () => {
  for (const happens of [() => undefined, (lease: KeyLease) => lease.reopen(50 * MS)]) {
    const lease = new KeyLease(0, HORIZON_US, BUDGET)
    run(arrivals(100, 100), 0, lease)
    const atUs = 100 * 2 * HORIZON_US
    lease.demand.request(1)
    lease.addGrant(grantOf({ ...OF_A_WINDOW, tokens: 1, remaining: 16 }), lease.want(atUs), atUs)
    assert.ok(lease.spend(atUs, lease.readyAt(atUs)))
    happens(lease)
    for (let i = 0; i < 1000; i++) lease.demand.request(1)
    assert.equal(lease.want(atUs + 50 * MS).want, 2)
  }
})

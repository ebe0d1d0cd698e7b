import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshLease, givenAll, grantOf, HORIZON_US, MS, OF_A_WINDOW } from 'sluicegate-testkit/leases/lease-records.js'
import type { KeyLease } from './key-lease.js'

test('a cached denial decides until it expires, and not for smaller costs', () => {
  const lease = freshLease()
  lease.demand.request(3)
  const asked = lease.want(0)
  assert.equal(asked.least, 3)
  lease.addGrant(grantOf({ untilFreeUs: 30 * MS, untilFreeFor: (tokens) => (tokens === 3 ? 30 * MS : undefined) }), asked, 0)
  assert.equal(lease.deniedUntil(MS, 3), 30 * MS)
  assert.equal(lease.deniedUntil(MS, 1), undefined)
  assert.equal(lease.deniedUntil(30 * MS, 3), undefined)
})

test('a denial of a single cost by the backend covers that cost and larger ones, until tokens are returned', () => {
  const lease = freshLease()
  lease.demand.request(1)
  lease.addGrant(grantOf({ untilFreeUs: 5 * MS, untilFreeFor: (tokens) => (tokens === 1 ? 5 * MS : undefined) }), lease.want(0), 0)
  lease.refuse(4, 20 * MS, 20 * MS, 0)
  assert.deepEqual([lease.deniedUntil(MS, 4), lease.deniedUntil(MS, 5), lease.deniedUntil(MS, 3)], [20 * MS, 20 * MS, undefined])
  assert.equal(lease.deniedUntil(20 * MS, 4), undefined)
  lease.refunded({ remaining: 1, resetAfterMs: 30 }, MS)
  assert.equal(lease.deniedUntil(MS, 4), undefined)
})

test('what passed by itself since the last answer has to flow back first, before any other cost', () => {
  const lease = freshLease()
  lease.demand.request(20)
  lease.addGrant(grantOf({ untilFreeUs: 5 * MS, untilFreeFor: (tokens) => Math.max(0, tokens - 15) * MS }), lease.want(0), 0)
  assert.equal(lease.deniedUntil(MS, 22), 7 * MS)
  lease.refuse(30, 15 * MS, 60 * MS, MS)
  lease.passed(16, 0)
  assert.equal(lease.deniedUntil(2 * MS, 22), 23 * MS)
  assert.equal(lease.deniedUntil(2 * MS, 30), 31 * MS, 'what was denied before it has to wait for it, too')
})

test('a larger cost asks for what is missing, and takes nothing when that is not there', () => {
  const lease = freshLease()
  givenAll(lease, 0)
  lease.demand.request(5)
  lease.demand.join(5, 0)
  const asked = lease.want(0)
  assert.deepEqual([asked.want >= 4, asked.least], [true, 4], 'one is here')
  lease.addGrant(grantOf({ untilFreeUs: 8 * MS, untilFreeFor: (tokens) => tokens * 2 * MS }), asked, 0)
  assert.equal(lease.spend(0, 5), false)
  assert.equal(lease.deniedUntil(0, 5), 8 * MS, 'four more, and the one that is here')
  assert.equal(lease.deniedUntil(0, 1000), 2000 * MS, 'the one that is here is void by then')
})

test('tokens of two leases are spent the older first, and together', () => {
  const lease = freshLease()
  lease.demand.request(3)
  lease.addGrant(grantOf({ tokens: 3, endUs: 100 * MS }), lease.want(0), 0)
  lease.demand.request(3)
  lease.addGrant(grantOf({ tokens: 3, endUs: 100 * MS }), lease.want(50 * MS), 50 * MS)
  assert.ok(lease.spend(60 * MS, 2))
  assert.equal(lease.readyAt(99 * MS), 4)
  assert.equal(lease.readyAt(100 * MS), 3, 'one of the first lease was left, and is void')
  assert.ok(!lease.spend(100 * MS, 4))
  assert.ok(lease.spend(100 * MS, 3))
})

test('when the key was changed by hand nothing in hand or on its way is spent', () => {
  const lease = freshLease()
  lease.demand.request(4)
  givenAll(lease, 0)
  const asked = lease.want(1)
  lease.forget(2)
  assert.equal(lease.readyAt(2), 0)
  lease.addGrant(grantOf({ tokens: 4 }), asked, 3)
  assert.equal(lease.readyAt(3), 0)
  lease.demand.request(1)
  givenAll(lease, 4)
  assert.ok(lease.spend(4, 1))
})

test('after a return denials are forgotten, also those in flight, and tokens are kept', () => {
  const lease = freshLease()
  lease.demand.request(4)
  givenAll(lease, 0)
  const asked = lease.want(1)
  lease.refunded({ remaining: 1, resetAfterMs: 30 }, 2)
  lease.addGrant(grantOf({ untilFreeUs: MS, untilFreeFor: () => MS }), asked, 3)
  assert.equal(lease.deniedUntil(3, 5), undefined)
  assert.equal(lease.readyAt(3), 4)
})

test('a block that the authority tells of voids what is held, and is looked at again within twenty horizons', () => {
  const lease = freshLease()
  lease.demand.request(4)
  givenAll(lease, 0)
  lease.demand.request(1)
  lease.addGrant(grantOf({ blockedUs: 86_400_000 * MS, untilFreeFor: () => 0 }), lease.want(1), 1)
  assert.equal(lease.readyAt(1), 0)
  assert.equal(lease.deniedUntil(2, 1), 1 + 86_400_000 * MS)
  assert.equal(lease.deniedUntil(20 * HORIZON_US, 1), 1 + 86_400_000 * MS)
  assert.equal(lease.deniedUntil(20 * HORIZON_US + 1, 1), undefined)
})

test('I5: what is held does not deny a cost of which what is missing may be there', () => {
  const lease = freshLease()
  lease.demand.request(3)
  lease.addGrant(grantOf({ ...OF_A_WINDOW, tokens: 3, endUs: 100 * MS, remaining: 3 }), { ...lease.want(0), want: 3 }, 0)
  lease.demand.request(7)
  const asked = lease.want(0)
  assert.equal(asked.least, 4)
  const untilFreeFor = (tokens: number): number | undefined => (tokens >= 4 ? 800 * MS : undefined)
  lease.addGrant(grantOf({ ...OF_A_WINDOW, remaining: 3, untilFreeUs: 800 * MS, untilFreeFor }), asked, 0)
  assert.ok((lease.deniedUntil(0, 7) as number) >= 800 * MS, 'four are not there')
  assert.equal(lease.deniedUntil(0, 6), undefined, 'three may be')
  assert.ok(lease.spend(0, 3))
  assert.ok((lease.deniedUntil(0, 6) as number) >= 800 * MS, 'of six nothing is held any more')
})

/** What each change of a key leaves: tokens here, on their way, ended already; what was denied, and what was left there. */
const LEFT: Readonly<Record<'reopen' | 'refunded' | 'forget' | 'drain' | 'end', readonly unknown[]>> = {
  reopen: [4, 4, [], true, 9],
  refunded: [4, 4, [], true, 7],
  forget: [0, 0, [4, 4], true, 0],
  drain: [0, 0, [], true, 0],
  end: [0, 4, [4], false, 9],
}
const CHANGES: Readonly<Record<keyof typeof LEFT, (lease: KeyLease, nowUs: number) => void>> = {
  reopen: (lease, nowUs) => lease.reopen(nowUs),
  refunded: (lease, nowUs) => lease.refunded({ remaining: 7, resetAfterMs: 30 }, nowUs),
  forget: (lease, nowUs) => lease.forget(nowUs),
  drain: (lease, nowUs) => lease.drain(nowUs),
  end: (lease) => lease.end(),
}

for (const [change, [here, onTheirWay, back, isForgotten, remaining]] of Object.entries(LEFT)) {
  test(`${change} leaves of a key what is said of it`, () => {
    const lease = freshLease()
    lease.demand.request(4)
    lease.addGrant(grantOf({ ...OF_A_WINDOW, tokens: 4, remaining: 9 }), lease.want(0), 0)
    lease.refuse(50, 500 * MS, 500 * MS, 0)
    assert.equal(lease.deniedUntil(1, 60), 500 * MS)
    lease.demand.request(4)
    const asked = lease.want(1)
    CHANGES[change as keyof typeof LEFT](lease, 2)
    assert.equal(lease.readyAt(2), here)
    assert.equal(lease.remainingAt(2), (remaining as number) + (here as number))
    assert.equal(lease.deniedUntil(2, 60) === undefined, isForgotten)
    lease.addGrant(grantOf({ ...OF_A_WINDOW, tokens: 4, remaining: 9 }), asked, 3)
    assert.equal(lease.readyAt(3), (here as number) + (onTheirWay as number))
    assert.deepEqual(
      lease.unspentAt(3).map(({ cost }) => cost),
      back,
    )
  })
}

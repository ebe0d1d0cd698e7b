import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshLease, givenAll, grantOf, MS, OF_A_WINDOW } from 'sluicegate-testkit/leases/grant-of.js'
import type { KeyLease } from './key-lease.js'

/** Callers that take a token each, evenly over a time, and the lease that is fetched whenever it is low. */
function paced(lease: KeyLease, fromUs: number, untilUs: number, everyUs: number): { spent: number; wants: number[] } {
  const wants: number[] = []
  let spent = 0
  for (let us = fromUs; us < untilUs; us += everyUs) {
    lease.demand.ask(1)
    if (!lease.spend(us, 1)) {
      lease.demand.join(1, us)
      wants.push(givenAll(lease, us).want)
      lease.demand.leave(1)
      assert.ok(lease.spend(us, 1))
    }
    spent++
    if (lease.isLow(us)) wants.push(givenAll(lease, us).want)
  }
  return { spent, wants }
}

test('requests start with the waiting takes, and double up to the demand of one horizon', () => {
  const lease = freshLease()
  const { spent, wants } = paced(lease, 0, 2000 * MS, MS / 10)
  assert.equal(wants[0], 1)
  for (let i = 1; i < wants.length; i++) assert.ok((wants[i] as number) <= 2 * (wants[i - 1] as number) + 1, `${wants}`)
  const settled = wants.at(-1) as number
  assert.ok(settled >= 500 && settled <= 700, `${settled} for 500 a horizon`)
  assert.ok(wants.length < 0.01 * spent, `${wants.length} leases of ${spent} tokens`)
})

test('callers that wait for each lease count as the takes they make during a lease: slow answers do not keep it small', () => {
  const lease = freshLease()
  let us = 0
  let waits = 0
  for (let spent = 0; spent < 4000; spent++) {
    lease.demand.ask(1)
    if (!lease.spend(us, 1)) {
      lease.demand.join(1, us)
      const asked = lease.want(us)
      us += 80 * MS
      waits++
      lease.addGrant(grantOf({ ready: asked.want }), asked, us)
      assert.ok(lease.spend(us, 1))
      lease.demand.leave(1)
    }
    us += MS / 100
  }
  assert.ok(waits < 16, `${waits} leases of 4,000 tokens`)
})

test('when demand shrinks so does what is wanted, and of what was fetched little is lost', () => {
  const lease = freshLease()
  paced(lease, 0, 1000 * MS, MS / 10)
  const { spent, wants } = paced(lease, 1000 * MS, 5000 * MS, 10 * MS)
  assert.ok((wants.at(-1) as number) <= 8, `${wants}`)
  const fetched = wants.reduce((sum, want) => sum + want, 0)
  assert.ok(fetched < 2 * spent + 700, `${fetched} fetched of which ${spent} were spent`)
})

test('a single burst does not raise later requests above it', () => {
  const lease = freshLease()
  for (let i = 0; i < 100; i++) {
    lease.demand.ask(1)
    lease.demand.join(1, 0)
  }
  assert.equal(givenAll(lease, 0).want, 100)
  for (let i = 0; i < 100; i++) {
    lease.demand.leave(1)
    assert.ok(lease.spend(0, 1))
  }
  assert.equal(lease.isLow(1), false, 'no takes since')
  lease.demand.ask(1)
  lease.demand.join(1, 10_000 * MS)
  assert.equal(lease.want(10_000 * MS).want, 1, 'what was wanted long ago says nothing')
})

test('takes served while others waited are not counted again', () => {
  const lease = freshLease()
  for (let i = 0; i < 256; i++) {
    lease.demand.ask(1)
    lease.demand.join(1, 0)
  }
  const asked = lease.want(0)
  for (let i = 0; i < 256; i++) {
    lease.demand.ask(1)
    lease.demand.join(1, 0)
  }
  lease.addGrant(grantOf({ ready: 512 }), asked, 100)
  for (let i = 0; i < 512; i++) {
    lease.demand.leave(1)
    assert.ok(lease.spend(100, 1))
  }
  lease.demand.ask(1)
  lease.demand.join(1, 0)
  lease.demand.leave(1)
  lease.addGrant(grantOf({}), lease.want(200), 200)
  lease.demand.ask(1)
  assert.ok(lease.want(300).want <= 1024)
})

test('being given nothing, or too little, is no reason to want less', () => {
  const lease = freshLease()
  paced(lease, 0, 500 * MS, MS / 2)
  const before = givenAll(lease, 500 * MS).want
  for (let i = 0; i < before; i++) assert.ok(lease.spend(500 * MS, 1))
  for (let i = 1; i <= 10; i++) {
    for (let n = 0; n < 20; n++) lease.demand.ask(1)
    const atUs = (500 + 10 * i) * MS
    const asked = lease.want(atUs)
    assert.ok(asked.want >= 50, `${asked.want} after ${i} times nothing`)
    lease.addGrant(grantOf({ ready: i % 2 }), asked, atUs)
    lease.spend(atUs, 1)
  }
})

test('of what is given and not spent less is wanted the next time', () => {
  const lease = freshLease()
  paced(lease, 0, 500 * MS, MS / 2)
  const wants: number[] = []
  for (let i = 0; i < 6; i++) {
    const atUs = (600 + 200 * i) * MS
    for (let n = 0; n < 1000; n++) lease.demand.ask(1)
    wants.push(givenAll(lease, atUs).want)
    assert.ok(lease.spend(atUs, 1))
  }
  assert.ok((wants.at(-1) as number) <= 8, `${wants}`)
})

test('a refill is due only when few tokens are left, after a take, and not during a pause', () => {
  const lease = freshLease()
  lease.demand.ask(20)
  lease.demand.join(20, 0)
  const asked = lease.want(0)
  lease.addGrant(grantOf({ ready: 10, untilFreeFor: () => 50 * MS, untilFreeUs: 50 * MS, askAfterUs: 40 * MS }), asked, 0)
  lease.demand.leave(20)
  assert.ok(lease.spend(0, 8))
  lease.demand.ask(1)
  assert.equal(lease.isLow(40 * MS - 1), false)
  assert.equal(lease.isLow(40 * MS), true)
})

test('at most an eighth of what is left of a window is leased ahead, also after a return', () => {
  for (const happens of [() => undefined, (lease: KeyLease) => lease.reopen(50 * MS)]) {
    const lease = freshLease()
    lease.demand.ask(100)
    lease.demand.join(100, 0)
    lease.addGrant(grantOf({ ...OF_A_WINDOW, ready: 100, remaining: 16 }), lease.want(0), 0)
    lease.demand.leave(100)
    assert.ok(lease.spend(0, 20))
    happens(lease)
    for (let i = 0; i < 1000; i++) lease.demand.ask(1)
    assert.equal(lease.want(50 * MS).want, 22)
  }
})

test('where nothing is left who was given nothing does not want less', () => {
  const lease = freshLease()
  for (let i = 0; i < 10; i++) {
    for (let n = 0; n < 40; n++) lease.demand.ask(1)
    const asked = lease.want(i * 50 * MS)
    if (i > 1) assert.ok(asked.want >= 10, `${asked.want}`)
    lease.addGrant(grantOf({ ...OF_A_WINDOW, ready: i === 0 ? 40 : 0 }), asked, i * 50 * MS)
    if (i === 0) assert.ok(lease.spend(0, 40))
  }
})

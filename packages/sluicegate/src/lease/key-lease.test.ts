import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grantOf } from '../testing/grant-of.js'
import { type Asked, KeyLease } from './key-lease.js'

const MS = 1000
const HORIZON_US = 50 * MS

function fresh(): KeyLease {
  return new KeyLease(0, HORIZON_US)
}

/** Asks for a lease and is given all of it at once, ready. */
function given(lease: KeyLease, nowUs: number): Asked {
  const asked = lease.want(nowUs)
  lease.take(grantOf({ ready: asked.want }), asked, nowUs)
  return asked
}

/** Callers that take a token each, evenly over a time, and the lease that is fetched whenever it is low. */
function paced(lease: KeyLease, fromUs: number, untilUs: number, everyUs: number): { spent: number; wants: number[] } {
  const wants: number[] = []
  let spent = 0
  for (let us = fromUs; us < untilUs; us += everyUs) {
    lease.demand.ask(1)
    if (!lease.spend(us, 1)) {
      lease.demand.join(1, us)
      wants.push(given(lease, us).want)
      lease.demand.leave(1)
      assert.ok(lease.spend(us, 1))
    }
    spent++
    if (lease.isLow(us)) wants.push(given(lease, us).want)
  }
  return { spent, wants }
}

test('what is wanted starts with those who wait, and doubles until it is the demand of a horizon', () => {
  const lease = fresh()
  const { spent, wants } = paced(lease, 0, 2000 * MS, MS / 10)
  assert.equal(wants[0], 1)
  for (let i = 1; i < wants.length; i++) assert.ok((wants[i] as number) <= 2 * (wants[i - 1] as number) + 1, `${wants}`)
  const settled = wants.at(-1) as number
  assert.ok(settled >= 500 && settled <= 700, `${settled} for 500 a horizon`)
  assert.ok(wants.length < 0.01 * spent, `${wants.length} leases of ${spent} tokens`)
})

test('callers who wait for each lease are as many takes as they make while one lasts: slow answers do not keep it small', () => {
  const lease = fresh()
  let us = 0
  let waits = 0
  for (let spent = 0; spent < 4000; spent++) {
    lease.demand.ask(1)
    if (!lease.spend(us, 1)) {
      lease.demand.join(1, us)
      const asked = lease.want(us)
      us += 80 * MS
      waits++
      lease.take(grantOf({ ready: asked.want }), asked, us)
      assert.ok(lease.spend(us, 1))
      lease.demand.leave(1)
    }
    us += MS / 100
  }
  assert.ok(waits < 16, `${waits} leases of 4,000 tokens`)
})

test('when demand shrinks so does what is wanted, and of what was fetched little is lost', () => {
  const lease = fresh()
  paced(lease, 0, 1000 * MS, MS / 10)
  const { spent, wants } = paced(lease, 1000 * MS, 5000 * MS, 10 * MS)
  assert.ok((wants.at(-1) as number) <= 8, `${wants}`)
  const fetched = wants.reduce((sum, want) => sum + want, 0)
  assert.ok(fetched < 2 * spent + 700, `${fetched} fetched of which ${spent} were spent`)
})

test('a burst after which nobody comes makes nobody want more than came', () => {
  const lease = fresh()
  for (let i = 0; i < 100; i++) {
    lease.demand.ask(1)
    lease.demand.join(1, 0)
  }
  assert.equal(given(lease, 0).want, 100)
  for (let i = 0; i < 100; i++) {
    lease.demand.leave(1)
    assert.ok(lease.spend(0, 1))
  }
  assert.equal(lease.isLow(1), false, 'nobody has asked since')
  lease.demand.ask(1)
  lease.demand.join(1, 10_000 * MS)
  assert.equal(lease.want(10_000 * MS).want, 1, 'what was wanted long ago says nothing')
})

test('those who were served while others waited are not counted again', () => {
  const lease = fresh()
  for (let i = 0; i < 256; i++) {
    lease.demand.ask(1)
    lease.demand.join(1, 0)
  }
  const asked = lease.want(0)
  for (let i = 0; i < 256; i++) {
    lease.demand.ask(1)
    lease.demand.join(1, 0)
  }
  lease.take(grantOf({ ready: 512 }), asked, 100)
  for (let i = 0; i < 512; i++) {
    lease.demand.leave(1)
    assert.ok(lease.spend(100, 1))
  }
  lease.demand.ask(1)
  lease.demand.join(1, 0)
  lease.demand.leave(1)
  lease.take(grantOf({}), lease.want(200), 200)
  lease.demand.ask(1)
  assert.ok(lease.want(300).want <= 1024)
})

test('being given nothing, or too little, is no reason to want less', () => {
  const lease = fresh()
  paced(lease, 0, 500 * MS, MS / 2)
  const before = given(lease, 500 * MS).want
  for (let i = 0; i < before; i++) assert.ok(lease.spend(500 * MS, 1))
  for (let i = 1; i <= 10; i++) {
    for (let n = 0; n < 20; n++) lease.demand.ask(1)
    const atUs = (500 + 10 * i) * MS
    const asked = lease.want(atUs)
    assert.ok(asked.want >= 50, `${asked.want} after ${i} times nothing`)
    lease.take(grantOf({ ready: i % 2 }), asked, atUs)
    lease.spend(atUs, 1)
  }
})

test('of what is given and not spent less is wanted the next time', () => {
  const lease = fresh()
  paced(lease, 0, 500 * MS, MS / 2)
  const wants: number[] = []
  for (let i = 0; i < 6; i++) {
    const atUs = (600 + 200 * i) * MS
    for (let n = 0; n < 1000; n++) lease.demand.ask(1)
    wants.push(given(lease, atUs).want)
    assert.ok(lease.spend(atUs, 1))
  }
  assert.ok((wants.at(-1) as number) <= 8, `${wants}`)
})

test('more is fetched late in what is there, only when somebody asked, and not before that makes sense', () => {
  const lease = fresh()
  lease.demand.ask(20)
  lease.demand.join(20, 0)
  const asked = lease.want(0)
  lease.take(grantOf({ ready: 10, untilFreeFor: () => 50 * MS, untilFreeUs: 50 * MS, askAfterUs: 40 * MS }), asked, 0)
  lease.demand.leave(20)
  assert.ok(lease.spend(0, 8))
  lease.demand.ask(1)
  assert.equal(lease.isLow(40 * MS - 1), false)
  assert.equal(lease.isLow(40 * MS), true)
})

test('a denial that is known answers as long as it holds, and not who asks for less', () => {
  const lease = fresh()
  lease.demand.ask(3)
  const asked = lease.want(0)
  assert.equal(asked.least, 3)
  lease.take(grantOf({ untilFreeUs: 30 * MS, untilFreeFor: (tokens) => (tokens === 3 ? 30 * MS : undefined) }), asked, 0)
  assert.equal(lease.deniedUntil(MS, 3), 30 * MS + 30)
  assert.equal(lease.deniedUntil(MS, 1), undefined)
  assert.equal(lease.deniedUntil(30 * MS + 30, 3), undefined)
})

test('what the authority refused by itself is known for that cost and for larger ones, until something is given back', () => {
  const lease = fresh()
  lease.demand.ask(1)
  lease.take(grantOf({ untilFreeUs: 5 * MS, untilFreeFor: (tokens) => (tokens === 1 ? 5 * MS : undefined) }), lease.want(0), 0)
  lease.refuse(4, 20 * MS, 0)
  assert.deepEqual([lease.deniedUntil(MS, 4), lease.deniedUntil(MS, 5), lease.deniedUntil(MS, 3)], [20 * MS, 20 * MS, undefined])
  assert.equal(lease.deniedUntil(20 * MS, 4), undefined)
  lease.forgetDenial(MS)
  assert.equal(lease.deniedUntil(MS, 4), undefined)
})

test('a larger cost asks for what is missing, and takes nothing when that is not there', () => {
  const lease = fresh()
  given(lease, 0)
  lease.demand.ask(5)
  lease.demand.join(5, 0)
  const asked = lease.want(0)
  assert.deepEqual([asked.want >= 4, asked.least], [true, 4], 'one is here')
  lease.take(grantOf({ untilFreeUs: 8 * MS, untilFreeFor: (tokens) => tokens * 2 * MS }), asked, 0)
  assert.equal(lease.spend(0, 5), false)
  assert.equal(lease.deniedUntil(0, 5), 8 * MS + 8, 'four more, and the one that is here')
  assert.equal(lease.deniedUntil(0, 1000), 2000 * MS + 50, 'the one that is here is void by then')
})

test('tokens of two leases are spent the older first, and together', () => {
  const lease = fresh()
  lease.demand.ask(3)
  lease.take(grantOf({ ready: 3, endUs: 100 * MS }), lease.want(0), 0)
  lease.demand.ask(3)
  lease.take(grantOf({ ready: 3, endUs: 100 * MS }), lease.want(50 * MS), 50 * MS)
  assert.ok(lease.spend(60 * MS, 2))
  assert.equal(lease.readyAt(99 * MS), 4)
  assert.equal(lease.readyAt(100 * MS), 3, 'one of the first lease was left, and is void')
  assert.ok(!lease.spend(100 * MS, 4))
  assert.ok(lease.spend(100 * MS, 3))
})

test('a denial of more than is ready says when what is held is enough, without what is void by then', () => {
  const lease = fresh()
  lease.demand.ask(1)
  lease.take(grantOf({ ready: 1, endUs: 30 * MS }), lease.want(0), 0)
  lease.demand.ask(4)
  lease.take(grantOf({ later: [20 * MS, 40 * MS, 60 * MS] }), lease.want(0), 0)
  assert.equal(lease.deniedUntil(0, 2), 20 * MS + 20)
  assert.equal(lease.deniedUntil(0, 3), 60 * MS + 60, 'the first is void when the third begins')
})

test('I5: what is void before a whole millisecond is over does not count as what is held by then', () => {
  const lease = fresh()
  lease.demand.ask(1)
  lease.take(grantOf({ ready: 1, endUs: 40.6 * MS }), lease.want(0), 0)
  lease.demand.ask(4)
  lease.take(grantOf({ later: [20 * MS, 40 * MS, 60 * MS] }), lease.want(0), 0)
  const untilUs = lease.deniedUntil(0, 3) as number
  assert.ok(lease.readyAt(Math.ceil(untilUs / MS) * MS) >= 3, `${untilUs}`)
})

test('when the key was changed by hand nothing in hand or on its way is spent', () => {
  const lease = fresh()
  lease.demand.ask(4)
  given(lease, 0)
  const asked = lease.want(1)
  lease.forget(2)
  assert.equal(lease.readyAt(2), 0)
  lease.take(grantOf({ ready: 4 }), asked, 3)
  assert.equal(lease.readyAt(3), 0)
  lease.demand.ask(1)
  given(lease, 4)
  assert.ok(lease.spend(4, 1))
})

test('when something was given back denials are forgotten, those on their way too, and tokens are kept', () => {
  const lease = fresh()
  lease.demand.ask(4)
  given(lease, 0)
  const asked = lease.want(1)
  lease.forgetDenial(2)
  lease.take(grantOf({ untilFreeUs: MS, untilFreeFor: () => MS }), asked, 3)
  assert.equal(lease.deniedUntil(3, 5), undefined)
  assert.equal(lease.readyAt(3), 4)
})

test('a block that the authority tells of voids what is held, and is looked at again within twenty horizons', () => {
  const lease = fresh()
  lease.demand.ask(4)
  given(lease, 0)
  lease.demand.ask(1)
  lease.take(grantOf({ blockedUs: 86_400_000 * MS, untilFreeFor: () => 0 }), lease.want(1), 1)
  assert.equal(lease.readyAt(1), 0)
  assert.equal(lease.deniedUntil(2, 1), 1 + 86_400_000 * MS)
  lease.demand.ask(1)
  assert.equal(lease.isLow(20 * HORIZON_US), false)
  assert.equal(lease.isLow(20 * HORIZON_US + 1), true)
})

/** As a window answers: nobody knows of other numbers of tokens, and what is left is all that there is. */
const OF_A_WINDOW = { flowsBack: false, id: 1 } as const

test('I5: what is held does not deny a cost of which what is missing may be there', () => {
  const lease = fresh()
  lease.demand.ask(3)
  lease.take(grantOf({ ...OF_A_WINDOW, ready: 3, endUs: 100 * MS, remaining: 3 }), { ...lease.want(0), want: 3 }, 0)
  lease.demand.ask(7)
  const asked = lease.want(0)
  assert.equal(asked.least, 4)
  const untilFreeFor = (tokens: number): number | undefined => (tokens >= 4 ? 800 * MS : undefined)
  lease.take(grantOf({ ...OF_A_WINDOW, remaining: 3, untilFreeUs: 800 * MS, untilFreeFor }), asked, 0)
  assert.ok((lease.deniedUntil(0, 7) as number) >= 800 * MS, 'four are not there')
  assert.equal(lease.deniedUntil(0, 6), undefined, 'three may be')
  assert.ok(lease.spend(0, 3))
  assert.ok((lease.deniedUntil(0, 6) as number) >= 800 * MS, 'of six nothing is held any more')
})

test('of a window no more than an eighth of what is left is fetched ahead, also after something was given back', () => {
  for (const happens of [() => undefined, (lease: KeyLease) => lease.reopen(50 * MS)]) {
    const lease = fresh()
    lease.demand.ask(100)
    lease.demand.join(100, 0)
    lease.take(grantOf({ ...OF_A_WINDOW, ready: 100, remaining: 16 }), lease.want(0), 0)
    lease.demand.leave(100)
    assert.ok(lease.spend(0, 20))
    happens(lease)
    for (let i = 0; i < 1000; i++) lease.demand.ask(1)
    assert.equal(lease.want(50 * MS).want, 22)
  }
})

test('where nothing is left who was given nothing does not want less', () => {
  const lease = fresh()
  for (let i = 0; i < 10; i++) {
    for (let n = 0; n < 40; n++) lease.demand.ask(1)
    const asked = lease.want(i * 50 * MS)
    if (i > 1) assert.ok(asked.want >= 10, `${asked.want}`)
    lease.take(grantOf({ ...OF_A_WINDOW, ready: i === 0 ? 40 : 0 }), asked, i * 50 * MS)
    if (i === 0) assert.ok(lease.spend(0, 40))
  }
})

/** What each change of a key leaves: tokens here, on their way, ended already; what was denied, and what was left there. */
const LEFT: Readonly<Record<'reopen' | 'forgetDenial' | 'forget' | 'drain' | 'end', readonly unknown[]>> = {
  reopen: [4, 4, [], true, 9],
  forgetDenial: [4, 4, [], true, 0],
  forget: [0, 0, [4, 4], true, 0],
  drain: [0, 0, [], true, 0],
  end: [0, 4, [4], false, 9],
}

for (const [change, [here, onTheirWay, back, isForgotten, remaining]] of Object.entries(LEFT)) {
  test(`${change} leaves of a key what is said of it`, () => {
    const lease = fresh()
    lease.demand.ask(4)
    lease.take(grantOf({ ...OF_A_WINDOW, ready: 4, remaining: 9 }), lease.want(0), 0)
    lease.refuse(50, 500 * MS, 0)
    assert.equal(lease.deniedUntil(1, 60), 500 * MS)
    lease.demand.ask(4)
    const asked = lease.want(1)
    lease[change as keyof typeof LEFT](2)
    assert.equal(lease.readyAt(2), here)
    assert.equal(lease.remainingAt(2), (remaining as number) + (here as number))
    assert.equal(lease.deniedUntil(2, 60) === undefined, isForgotten)
    lease.take(grantOf({ ...OF_A_WINDOW, ready: 4, remaining: 9 }), asked, 3)
    assert.equal(lease.readyAt(3), (here as number) + (onTheirWay as number))
    assert.deepEqual(
      lease.unspentAt(3).map(({ tokens }) => tokens),
      back,
    )
  })
}

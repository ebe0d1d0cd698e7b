import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { concurrency, type Limiter, type Permit } from 'sluicegate'
import { type Flight, firstCrowding } from '../history/flight-history.js'
import { Random } from '../random.js'
import type { Fixture, Fixtures } from './fixture.js'

/** What is true of permits alone. */
export function permits(name: string, fixture: Fixtures): void {
  const threeAtOnce = concurrency({ limit: 3, ttl: '1s' })

  const inFlight = (policy = threeAtOnce, options = {}): Omit<Fixture, 'limiter'> & { readonly limiter: Limiter<Permit> } => {
    const { limiter, ...rest } = fixture(policy, options)
    return { ...rest, limiter: limiter as Limiter<Permit> }
  }

  test(`${name}: what a permit holds comes back when it is released, once`, () => {
    const { limiter } = inFlight()
    const [first, second] = [limiter.take('k', 2), limiter.take('k')]
    assert.equal(limiter.take('k').allowed, false)
    assert.deepEqual([first.release(), first.release(), limiter.peek('k').remaining], [true, false, 2])
    second[Symbol.dispose]()
    assert.deepEqual([second.release(), limiter.peek('k').remaining], [false, 3])
  })

  test(`${name}: of a denied permit all verbs do nothing`, () => {
    const { limiter } = inFlight()
    limiter.take('k', 3)
    for (const denied of [limiter.take('k'), limiter.take('k', 4)]) {
      assert.deepEqual([denied.allowed, denied.release(), denied.heartbeat()], [false, false, false])
      denied[Symbol.dispose]()
    }
    assert.equal(limiter.peek('k').remaining, 0)
  })

  test(`${name}: a permit whose holder died comes back after its time, to the millisecond`, () => {
    const { limiter, clock } = inFlight()
    const lost = limiter.take('k', 3)
    clock.advance(400)
    assert.equal(limiter.take('k').retryAfterMs, 600)
    clock.advance(599)
    assert.equal(limiter.take('k').allowed, false)
    clock.advance(1)
    assert.equal(limiter.take('k', 3).allowed, true)
    assert.deepEqual([lost.release(), lost.heartbeat(), limiter.peek('k').remaining], [false, false, 0])
  })

  test(`${name}: a heartbeat renews a permit as often as it comes in time`, () => {
    const { limiter, clock } = inFlight()
    const permit = limiter.take('k', 3)
    for (let beat = 0; beat < 20; beat++) {
      clock.advance(999)
      assert.equal(permit.heartbeat(), true)
      assert.equal(limiter.take('k').retryAfterMs, 1000)
    }
    clock.advance(1000)
    assert.equal(permit.heartbeat(), false)
    assert.equal(limiter.take('k', 3).allowed, true)
  })

  test(`${name}: a permit from before a reset releases nothing that came later`, () => {
    const { limiter } = inFlight()
    const before = limiter.take('k', 3)
    limiter.reset('k')
    limiter.take('k', 3)
    assert.deepEqual([before.release(), before.heartbeat(), limiter.peek('k').remaining], [false, false, 0])
  })

  test(`${name}: a bound key and other keys hold permits of their own`, () => {
    const { limiter } = inFlight()
    const bound = limiter.key('k')
    const permit = bound.take(2)
    limiter.take('other', 3)
    assert.equal(limiter.peek('k').remaining, 1)
    permit.release()
    assert.deepEqual([bound.peek().remaining, limiter.peek('other').remaining], [3, 0])
  })

  test(`${name}: a step back of the clock ends no permit and gives none away`, () => {
    const { limiter, clock } = inFlight()
    const permit = limiter.take('k', 2)
    clock.advance(-10_000)
    assert.equal(limiter.take('k', 2).allowed, false)
    assert.equal(limiter.take('k').allowed, true)
    assert.deepEqual([permit.release(), limiter.peek('k').remaining], [true, 2])
  })

  test(`I1 ${name}: never more in flight than the limit, with releases, renewals and deaths`, () => {
    for (let seed = 1; seed <= 30; seed++) {
      const random = new Random(seed)
      const limit = random.pick([1, 2, 7, 100])
      const { limiter, clock } = inFlight(concurrency({ limit, ttl: 100 }), { maxKeys: 4 })
      const flights: (Flight & { readonly permit: Permit })[] = []
      for (let i = 0; i < 300; i++) {
        clock.advance(random.pick([0, 0.001, 1, random.integer(0, 60)]))
        const nowUs = Math.round(clock.nowMs() * 1000)
        const some = random.integer(0, flights.length)
        const held = flights[some]
        if (held === undefined || random.chance(0.6)) {
          const cost = random.magnitude(1, limit)
          const permit = limiter.take('k', cost)
          if (permit.allowed) flights.push({ permit, cost, fromUs: nowUs, untilUs: nowUs + 100_000 })
        } else if (random.chance(0.7)) {
          assert.equal(held.permit.release(), nowUs < held.untilUs)
          flights[some] = { ...held, untilUs: Math.min(held.untilUs, nowUs) }
        } else {
          const isHeld = nowUs < held.untilUs
          assert.equal(held.permit.heartbeat(), isHeld)
          if (isHeld) flights[some] = { ...held, untilUs: nowUs + 100_000 }
        }
      }
      assert.ok(flights.length > 20)
      assert.equal(firstCrowding(limit, flights), undefined, `seed ${seed}`)
    }
  })

  test(`${name}: who waits gets the permit that is released, in the order of arrival`, async () => {
    const { limiter, clock } = inFlight()
    const held = [limiter.take('k'), limiter.take('k'), limiter.take('k')]
    const order: number[] = []
    const waits = [0, 1, 2].map(async (i) => {
      const permit = await limiter.wait('k')
      order.push(i)
      return permit
    })
    await nextTurn()
    assert.deepEqual(order, [])
    for (const [i, permit] of held.entries()) {
      permit.release()
      await nextTurn()
      assert.equal(order.length, i + 1)
    }
    const given = await Promise.all(waits)
    assert.deepEqual([order, given.every(({ allowed }) => allowed)], [[0, 1, 2], true])
    assert.deepEqual([limiter.peek('k').remaining, given[1]?.release(), limiter.peek('k').remaining], [0, true, 1])
    clock.advance(1000)
    assert.equal(given[0]?.release(), false)
  })

  test(`${name}: one who needs more holds up those behind it, and takes do not slip by`, async () => {
    const { limiter } = inFlight()
    const [first, second] = [limiter.take('k'), limiter.take('k', 2)]
    let large = false
    const waiting = limiter.wait('k', { cost: 3 }).then(() => {
      large = true
    })
    second.release()
    await nextTurn()
    assert.deepEqual([large, limiter.take('k').allowed], [false, false])
    first.release()
    await waiting
    assert.equal(limiter.peek('k').remaining, 0)
  })

  test(`${name}: who waits for a holder that died is let through after its time`, async () => {
    const { limiter, clock } = inFlight()
    limiter.take('k', 3)
    const waiting = limiter.wait('k')
    clock.advance(999)
    await nextTurn()
    clock.advance(1)
    assert.equal((await waiting).allowed, true)
  })

  test(`${name}: an aborted wait for a permit holds none`, async () => {
    const { limiter } = inFlight()
    const held = limiter.take('k', 3)
    const controller = new AbortController()
    const waiting = limiter.wait('k', { signal: controller.signal })
    controller.abort(new Error('gone'))
    await assert.rejects(waiting, { message: 'gone' })
    held.release()
    await nextTurn()
    assert.equal(limiter.peek('k').remaining, 3)
  })
}

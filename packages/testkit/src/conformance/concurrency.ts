import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { concurrency } from 'sluicegate'
import { type Flight, firstCrowding } from '../history/excess.js'
import { Random } from '../random.js'
import type { AnyLimiter, AnyPermit, Fixture, Fixtures } from './fixture.js'

/** What is true of permits alone. */
export function permits(name: string, fixture: Fixtures): void {
  const threeAtOnce = concurrency({ limit: 3, ttl: '1s' })

  const inFlight = async (
    policy = threeAtOnce,
    options = {},
  ): Promise<Omit<Fixture, 'limiter'> & { readonly limiter: AnyLimiter<AnyPermit> }> => {
    const { limiter, ...rest } = await fixture(policy, options)
    return { ...rest, limiter: limiter as AnyLimiter<AnyPermit> }
  }

  test(`${name}: what a permit holds comes back when it is released, once`, async () => {
    const { limiter } = await inFlight()
    const [first, second] = [await limiter.take('k', 2), await limiter.take('k')]
    assert.equal((await limiter.take('k')).allowed, false)
    assert.deepEqual([await first.release(), await first.release(), (await limiter.peek('k')).remaining], [true, false, 2])
    second[Symbol.dispose]()
    assert.deepEqual([await second.release(), (await limiter.peek('k')).remaining], [false, 3])
  })

  test(`${name}: of a denied permit all verbs do nothing`, async () => {
    const { limiter } = await inFlight()
    await limiter.take('k', 3)
    for (const denied of [await limiter.take('k'), await limiter.take('k', 4)]) {
      assert.deepEqual([denied.allowed, await denied.release(), await denied.heartbeat()], [false, false, false])
      denied[Symbol.dispose]()
    }
    assert.equal((await limiter.peek('k')).remaining, 0)
  })

  test(`${name}: a permit whose holder died comes back after its time, to the millisecond`, async () => {
    const { limiter, clock } = await inFlight()
    const lost = await limiter.take('k', 3)
    clock.advance(400)
    assert.equal((await limiter.take('k')).retryAfterMs, 600)
    clock.advance(599)
    assert.equal((await limiter.take('k')).allowed, false)
    clock.advance(1)
    assert.equal((await limiter.take('k', 3)).allowed, true)
    assert.deepEqual([await lost.release(), await lost.heartbeat(), (await limiter.peek('k')).remaining], [false, false, 0])
  })

  test(`${name}: a heartbeat renews a permit as often as it comes in time`, async () => {
    const { limiter, clock } = await inFlight()
    const permit = await limiter.take('k', 3)
    for (let beat = 0; beat < 20; beat++) {
      clock.advance(999)
      assert.equal(await permit.heartbeat(), true)
      assert.equal((await limiter.take('k')).retryAfterMs, 1000)
    }
    clock.advance(1000)
    assert.equal(await permit.heartbeat(), false)
    assert.equal((await limiter.take('k', 3)).allowed, true)
  })

  test(`${name}: a permit from before a reset releases nothing that came later`, async () => {
    const { limiter } = await inFlight()
    const before = await limiter.take('k', 3)
    await limiter.reset('k')
    await limiter.take('k', 3)
    assert.deepEqual([await before.release(), await before.heartbeat(), (await limiter.peek('k')).remaining], [false, false, 0])
  })

  test(`${name}: a bound key and other keys hold permits of their own`, async () => {
    const { limiter } = await inFlight()
    const bound = limiter.key('k')
    const permit = await bound.take(2)
    await limiter.take('other', 3)
    assert.equal((await limiter.peek('k')).remaining, 1)
    await permit.release()
    assert.deepEqual([(await bound.peek()).remaining, (await limiter.peek('other')).remaining], [3, 0])
  })

  test(`${name}: a step back of the clock ends no permit and gives none away`, async () => {
    const { limiter, clock } = await inFlight()
    const permit = await limiter.take('k', 2)
    clock.advance(-10_000)
    assert.equal((await limiter.take('k', 2)).allowed, false)
    assert.equal((await limiter.take('k')).allowed, true)
    assert.deepEqual([await permit.release(), (await limiter.peek('k')).remaining], [true, 2])
  })

  test(`I1 ${name}: never more in flight than the limit, with releases, renewals and deaths`, async () => {
    for (let seed = 1; seed <= 30; seed++) {
      const random = new Random(seed)
      const limit = random.pick([1, 2, 7, 100])
      const { limiter, clock } = await inFlight(concurrency({ limit, ttl: 100 }), { maxKeys: 4 })
      const flights: (Flight & { readonly permit: AnyPermit })[] = []
      for (let i = 0; i < 300; i++) {
        clock.advance(random.pick([0, 0.001, 1, random.integer(0, 60)]))
        const nowUs = Math.round(clock.nowMs() * 1000)
        const some = random.integer(0, flights.length)
        const held = flights[some]
        if (held === undefined || random.chance(0.6)) {
          const cost = random.magnitude(1, limit)
          const permit = await limiter.take('k', cost)
          if (permit.allowed) flights.push({ permit, cost, fromUs: nowUs, untilUs: nowUs + 100_000 })
        } else if (random.chance(0.7)) {
          assert.equal(await held.permit.release(), nowUs < held.untilUs)
          flights[some] = { ...held, untilUs: Math.min(held.untilUs, nowUs) }
        } else {
          const isHeld = nowUs < held.untilUs
          assert.equal(await held.permit.heartbeat(), isHeld)
          if (isHeld) flights[some] = { ...held, untilUs: nowUs + 100_000 }
        }
      }
      assert.ok(flights.length > 20)
      assert.equal(firstCrowding(limit, flights), undefined, `seed ${seed}`)
    }
  })

  test(`${name}: who waits gets the permit that is released, in the order of arrival`, async () => {
    const { limiter, clock } = await inFlight()
    const held = [await limiter.take('k'), await limiter.take('k'), await limiter.take('k')]
    const order: number[] = []
    const waits = [0, 1, 2].map(async (i) => {
      const permit = await limiter.wait('k')
      order.push(i)
      return permit
    })
    await nextTurn()
    assert.deepEqual(order, [])
    for (const [i, permit] of held.entries()) {
      await permit.release()
      await nextTurn()
      assert.equal(order.length, i + 1)
    }
    const given = await Promise.all(waits)
    assert.deepEqual([order, given.every(({ allowed }) => allowed)], [[0, 1, 2], true])
    assert.deepEqual([(await limiter.peek('k')).remaining, await given[1]?.release(), (await limiter.peek('k')).remaining], [0, true, 1])
    clock.advance(1000)
    assert.equal(await given[0]?.release(), false)
  })

  test(`${name}: one who needs more holds up those behind it, and takes do not slip by`, async () => {
    const { limiter } = await inFlight()
    const [first, second] = [await limiter.take('k'), await limiter.take('k', 2)]
    let large = false
    const waiting = limiter.wait('k', { cost: 3 }).then(() => {
      large = true
    })
    await second.release()
    await nextTurn()
    assert.deepEqual([large, (await limiter.take('k')).allowed], [false, false])
    await first.release()
    await waiting
    assert.equal((await limiter.peek('k')).remaining, 0)
  })

  test(`${name}: who waits for a holder that died is let through after its time`, async () => {
    const { limiter, clock } = await inFlight()
    await limiter.take('k', 3)
    const waiting = limiter.wait('k')
    clock.advance(999)
    await nextTurn()
    clock.advance(1)
    assert.equal((await waiting).allowed, true)
  })

  test(`${name}: an aborted wait for a permit holds none`, async () => {
    const { limiter } = await inFlight()
    const held = await limiter.take('k', 3)
    const controller = new AbortController()
    const waiting = limiter.wait('k', { signal: controller.signal })
    controller.abort(new Error('gone'))
    await assert.rejects(waiting, { message: 'gone' })
    await held.release()
    await nextTurn()
    assert.equal((await limiter.peek('k')).remaining, 3)
  })
}

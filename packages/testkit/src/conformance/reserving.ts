import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Policy } from 'sluicegate'
import { type Admission, firstOver } from '../history/excess.js'
import { specOf } from '../kit.js'
import { Random } from '../random.js'
import { type Fixtures, inTurn, type MakePolicy, times } from './fixture.js'

/** When something comes back is unknown for these, or when all of it does: only what passes now is booked. */
const NOT_AHEAD: readonly Policy['algorithm'][] = ['concurrency', 'all-of']

/** `reserve`, with every algorithm. */
export function reserving(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const tenASecond = policyOf({ limit: 10, window: '1s' })
  const isAhead = !NOT_AHEAD.includes(tenASecond.algorithm)

  test(`${name}: what is there is reserved at once, and charged`, async () => {
    const { checked } = await fixture(tenASecond)
    const { allowed, waitMs, decision } = (await checked.reserve('k', 4)).reservation
    assert.deepEqual([allowed, waitMs, decision.remaining], [true, 0, 6])
    assert.equal((await checked.peek('k')).remaining, 6)
  })

  test(`${name}: an impossible cost is never reserved and charges nothing`, async () => {
    const { checked } = await fixture(tenASecond)
    const impossible = await checked.reserve('k', 11)
    assert.deepEqual([impossible.reservation.allowed, impossible.reservation.waitMs], [false, Number.POSITIVE_INFINITY])
    await checked.cancel(impossible)
    await checked.settle(impossible, 5)
    assert.equal((await checked.peek('k')).remaining, 10)
  })

  test(`${name}: a blocked key reserves nothing`, async () => {
    const { checked } = await fixture(tenASecond)
    await checked.block('k', 5000)
    const { allowed, waitMs } = (await checked.reserve('k', 1)).reservation
    assert.deepEqual([allowed, waitMs], [false, 5000])
    assert.equal((await checked.peek('k')).remaining, 10)
  })

  test(`${name}: what is settled below the estimate comes back, above it is charged on top`, async () => {
    const { checked } = await fixture(tenASecond)
    const [less, more, same, none] = await inTurn([3, 2, 1, 2], (cost) => checked.reserve('k', cost))
    assert.ok(less && more && same && none)
    assert.equal((await checked.settle(none, 0)).remaining, 4)
    assert.equal((await checked.settle(same, 1)).remaining, 4)
    assert.equal((await checked.settle(more, 4)).remaining, 2)
    await checked.settle(less, 1)
  })

  test(`${name}: a reservation is settled or cancelled once`, async () => {
    const { checked, limiter } = await fixture(tenASecond)
    const booking = await checked.reserve('k', 5)
    assert.equal((await checked.cancel(booking)).remaining, 10)
    await checked.take('k', 8)
    const before = await limiter.peek('k')
    for (const again of [await booking.reservation.cancel(), await booking.reservation.settle(1), await booking.reservation.settle(50)]) {
      assert.deepEqual(again, before)
    }
    assert.deepEqual(await limiter.peek('k'), before)
  })

  test(`${name}: what was reserved before a reset gives back nothing of what was spent since`, async () => {
    const { limiter, clock } = await fixture(tenASecond)
    const [cancelled, settled] = [await limiter.reserve('k', 4), await limiter.reserve('k', 5)]
    clock.advance(1)
    await limiter.reset('k')
    assert.equal((await limiter.take('k', 10)).allowed, true)
    await cancelled.cancel()
    await settled.settle(1)
    assert.equal((await limiter.peek('k')).remaining, 0)
  })

  test(`${name}: an actual cost that is no integer >= 0 is misuse, and the reservation stays open`, async () => {
    const { checked } = await fixture(tenASecond)
    const booking = await checked.reserve('k', 5)
    for (const actual of [-1, 0.5, Number.NaN, '1', null]) {
      await assert.rejects(async () => booking.reservation.settle(actual as number), { name: 'PolicyError', code: 'COST_INVALID' })
    }
    assert.equal((await checked.cancel(booking)).remaining, 10)
  })

  test(`${name}: never settled, a reservation stays charged`, async () => {
    const { checked, clock } = await fixture(tenASecond)
    await checked.reserve('k', 10)
    assert.equal((await checked.take('k')).allowed, false)
    clock.advance((await checked.peek('k')).resetAfterMs)
    assert.equal((await checked.take('k', 10)).allowed, true)
  })

  if (!isAhead) {
    test(`${name}: what does not pass now is not reserved, and says when it may`, async () => {
      const { checked } = await fixture(tenASecond)
      await checked.take('k', 8)
      const { retryAfterMs } = await checked.peek('k', 5)
      const { allowed, waitMs } = (await checked.reserve('k', 5)).reservation
      assert.deepEqual([allowed, waitMs], [false, retryAfterMs])
      assert.equal((await checked.peek('k')).remaining, 2)
    })
    return
  }

  test(`${name}: what does not pass now is reserved for when it does, one after another, and no take overtakes`, async () => {
    const { checked, clock } = await fixture(tenASecond)
    await checked.take('k', 10)
    const waits = await times(25, async () => (await checked.reserve('k', 3)).reservation.waitMs)
    assert.ok(
      waits.every((waitMs, i) => waitMs > 0 && waitMs >= (waits[i - 1] ?? 0)),
      String(waits),
    )
    const lastMs = waits.at(-1) ?? 0
    for (let passed = 0; passed + 100 < lastMs; passed += 100) {
      assert.equal((await checked.take('k', 3)).allowed, false)
      clock.advance(100)
    }
  })

  test(`I1 ${name}: reserved and taken together stay within what the policy allows`, async () => {
    for (let seed = 1; seed <= 20 * fixture.store.share; seed++) {
      const random = new Random(seed)
      const { checked, clock } = await fixture(tenASecond)
      const admissions: Admission[] = []
      for (let i = 0; i < 100; i++) {
        clock.advance(random.pick([0, 1, 100, 1000 * random.fraction()]))
        const cost = random.integer(1, 10)
        if (random.chance(0.5)) {
          const { reservation, atUs } = await checked.reserve('k', cost)
          if (reservation.allowed) admissions.push({ atUs, cost })
        } else if ((await checked.take('k', cost)).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost })
      }
      assert.equal(firstOver(specOf(tenASecond), admissions), undefined, `seed ${seed}`)
    }
  })

  test(`${name}: what is cancelled before its time gives back what is safe, in any order`, async () => {
    for (let seed = 1; seed <= 30 * fixture.store.share; seed++) {
      const random = new Random(seed)
      const { checked, clock } = await fixture(tenASecond)
      const open = []
      for (let i = 0; i < 40; i++) {
        clock.advance(random.pick([0, 0, 1, 100, 1000 * random.fraction()]))
        if (random.chance(0.4)) open.push(await checked.reserve('k', random.integer(1, 10)))
        else if (random.chance(0.5)) await checked.take('k', random.integer(1, 3))
        else {
          const [booking] = open.splice(random.integer(0, Math.max(0, open.length - 1)), 1)
          if (booking !== undefined)
            await random.pick([() => checked.cancel(booking), () => checked.settle(booking, random.integer(0, 12))])()
        }
      }
    }
  })
}

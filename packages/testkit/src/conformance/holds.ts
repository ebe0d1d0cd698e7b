import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hold, OpenOptions } from 'sluicegate'
import { allOf, fixedWindow } from 'sluicegate'
import type { Awaitable } from '../../../sluicegate/dist/awaitable.js'
import { type AnyLimiter, type Fixtures, type MakePolicy, times } from './fixture.js'

type AnyHold = Hold<Awaitable<boolean>, 'now' | 'later'>

/** A limiter that opens work, in memory or over a store. */
interface Opening extends AnyLimiter {
  open(key: string | readonly string[] | Readonly<Record<string, string>>, options?: OpenOptions): Awaitable<AnyHold>
}

/** Work whose cost is known only afterwards, with every algorithm but `concurrency`. */
export function holds(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const hundred = policyOf({ limit: 100, window: '1m', name: 'hundred' })
  if ((hundred.policies ?? [hundred]).some(({ algorithm }) => algorithm === 'concurrency')) return
  const opened = async (policy = hundred) => {
    const { limiter, ...others } = await fixture(policy)
    return { ...others, limiter: limiter as Opening }
  }

  test(`${name}: what is held is spent by nobody else, and nothing is charged until it is added`, async () => {
    const { limiter } = await opened()
    const work = await limiter.open('ada', { expect: 60 })
    assert.deepEqual([work.allowed, work.remaining, work.held, work.used], [true, 40, 60, 0])
    const refused = await limiter.open('ada', { expect: 41 })
    assert.deepEqual([refused.allowed, refused.policy, await refused.add(1)], [false, 'hundred', false])
    assert.equal((await limiter.take('ada', 41)).allowed, false)
    assert.equal((await limiter.take('ada', 40)).remaining, 0)
    assert.equal((await limiter.take('ada')).allowed, false)
    // Work within its hold is never cut.
    for (const passed of await times(60, () => work.add(1))) assert.equal(passed, true)
    assert.equal(await work.add(1), false)
    assert.deepEqual([work.held, work.used, work.over], [0, 60, 0])
    assert.equal((await work.close()).remaining, 0)
  })

  test(`${name}: closing frees what is left, and spends what is missing as debt`, async () => {
    const { limiter } = await opened()
    const short = await limiter.open('ada', { expect: 60 })
    await short.add(10)
    assert.equal((await short.close(20)).remaining, 80)
    assert.equal((await short.close(90)).remaining, 80)
    assert.equal(await short.add(1), false)
    const long = await limiter.open('ada', { expect: 60 })
    assert.equal((await long.close(95)).remaining, 0)
    assert.deepEqual([long.used, long.over], [95, 15])
    assert.equal((await limiter.open('ada', { expect: 1 })).allowed, false)
  })

  test(`${name}: an add spends what is free when its hold is spent, and finish goes into debt`, async () => {
    const { limiter } = await opened()
    const work = await limiter.open('ada', { expect: 10, over: 'finish' })
    assert.equal(await work.add(70), true)
    assert.equal(work.over, 0)
    assert.equal(await work.add(40), true)
    assert.deepEqual([work.used, work.over], [110, 10])
    await work.close()
    const { allowed, remaining } = await limiter.peek('ada')
    assert.deepEqual([allowed, remaining], [false, 0])
  })

  test(`${name}: what is held and added is counted to the token, however large`, async () => {
    const limit = 500_000_000_000
    const { limiter } = await opened(fixedWindow({ limit, window: '1h' }))
    const work = await limiter.open('ada', { expect: limit - 10 })
    assert.deepEqual([work.allowed, work.remaining], [true, 10])
    for (const cost of [11, 2 ** 32, 2 ** 31 + 1]) assert.equal((await limiter.take('ada', cost)).allowed, false)
    assert.equal(await work.add(limit - 2 ** 32), true)
    assert.equal((await limiter.take('ada', 10)).allowed, true)
    assert.equal((await limiter.take('ada')).allowed, false)
    assert.equal((await work.close()).remaining, 2 ** 32 - 10)
    assert.equal((await limiter.peek('ada')).remaining, 2 ** 32 - 10)
  })

  test(`${name}: most is the bound of the work`, async () => {
    const { limiter } = await opened()
    const work = await limiter.open('ada', { expect: 50, most: 20 })
    assert.deepEqual([work.held, await work.add(20), await work.add(1)], [20, true, false])
    assert.equal((await work.close()).remaining, 80)
  })

  test(`${name}: a hold that nobody renews ends by itself, and has cost what was added`, async () => {
    const { limiter, clock, passing } = await opened(policyOf({ limit: 100, window: '1h' }))
    const work = await limiter.open('ada', { expect: 60, ttl: '1s' })
    await work.add(5)
    clock.advance(1_000)
    await passing(1)
    clock.advance(1_000)
    const { remaining } = await limiter.peek('ada')
    assert.ok(remaining >= 95, `${remaining} are free`)
    assert.deepEqual([work.held, work.used], [0, 5])
    // Work that goes on spends what is free.
    assert.equal(await work.add(10), true)
    await work.close()
    assert.ok(Math.abs((await limiter.peek('ada')).remaining - 85) <= 1)
  })

  test(`${name}: each add renews the hold`, async () => {
    const { limiter, clock, passing } = await opened(policyOf({ limit: 100, window: '1h' }))
    const work = await limiter.open('ada', { expect: 60, ttl: '1s' })
    for (let i = 0; i < 8; i++) {
      assert.equal(await work.add(1), true)
      clock.advance(700)
      await passing(1)
    }
    assert.equal(work.held, 52)
    assert.equal((await limiter.take('ada', 45)).allowed, false)
    assert.equal((await limiter.take('ada', 30)).allowed, true)
    for (const passed of await times(52, () => work.add(1))) assert.equal(passed, true)
    await work.close()
  })

  test(`${name}: a hold that nobody closes frees its rest once its time is over, whatever else is asked`, async () => {
    const { limiter, clock } = await opened(policyOf({ limit: 100, window: '1h' }))
    await times(50, () => limiter.open('ada', { expect: 1, ttl: '1s' }))
    await times(50, () => limiter.open('ada', { expect: 1, ttl: '2s' }))
    assert.equal((await limiter.take('ada')).allowed, false)
    // No alert rings while it stands: as in a process that is gone.
    clock.advance(4_000)
    const { remaining } = await limiter.peek('ada')
    assert.ok(remaining === 100 || remaining === 0, `${remaining} are free`)
  })

  test(`${name}: a block ends the work, and a reset leaves what is held`, async () => {
    const { limiter } = await opened()
    await limiter.take('ada', 30)
    const work = await limiter.open('ada', { expect: 60 })
    await limiter.reset('ada')
    assert.equal((await limiter.peek('ada')).remaining, 40)
    await limiter.block('ada', '1m')
    assert.equal((await limiter.open('ada', { expect: 1 })).allowed, false)
    await work.close()
    await limiter.block('ada', 0)
    assert.equal((await limiter.peek('ada')).remaining, 100)
  })

  test(`${name}: of a thousand opens at once exactly as many pass as there is room for`, async () => {
    const { limiter } = await opened(policyOf({ limit: 50, window: '1h' }))
    const all = await Promise.all(Array.from({ length: 1000 }, () => limiter.open('ada', { expect: 1 })))
    assert.equal(all.filter(({ allowed }) => allowed).length, 50)
    await Promise.all(all.map((work) => work.close()))
    assert.equal((await limiter.peek('ada')).remaining, 50)
  })

  test(`${name}: an update keeps what is held`, async () => {
    const { limiter } = await opened()
    const work = await limiter.open('ada', { expect: 60 })
    limiter.update(policyOf({ limit: 80, window: '1m', name: 'hundred' }))
    assert.equal((await limiter.take('ada', 21)).allowed, false)
    assert.equal(await work.add(60), true)
    assert.equal((await work.close()).remaining, 20)
  })

  test(`${name}: several levels hold all or none`, async () => {
    const wide = policyOf({ limit: 100, window: '1m', name: 'wide' })
    const narrow = policyOf({ limit: 50, window: '1m', name: 'narrow' })
    if (wide.policies !== undefined) return
    const { limiter } = await opened(allOf([wide, narrow]))
    const work = await limiter.open(['org', 'ada'], { expect: 40 })
    assert.equal(work.allowed, true)
    const second = await limiter.open(['org', 'ada'], { expect: 20 })
    assert.deepEqual([second.allowed, second.policy], [false, 'narrow'])
    const other = await limiter.open(['org', 'eve'], { expect: 50 })
    assert.equal(other.allowed, true)
    const third = await limiter.open(['org', 'bob'], { expect: 20 })
    assert.deepEqual([third.allowed, third.policy], [false, 'wide'])
    for (const passed of await times(40, () => work.add(1))) assert.equal(passed, true)
    assert.equal(await other.add(50), true)
    await Promise.all([work.close(), other.close()])
    assert.deepEqual(
      (await limiter.peek(['org', 'ada'])).parts?.map(({ remaining }) => remaining),
      [10, 10],
    )
  })
}

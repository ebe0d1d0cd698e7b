import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Hold, HoldsById, OpenOptions } from 'sluicegate'
import { allOf, fixedWindow } from 'sluicegate'
import type { Awaitable } from '../../../sluicegate/dist/awaitable.js'
import { type AnyLimiter, type Fixtures, type MakePolicy, times } from './fixture.js'

type AnyHold = Hold<Awaitable<boolean>, 'now' | 'later'>

type HoldAnswer = Awaited<ReturnType<HoldsById['open']>>

/** A limiter that opens work, in memory or over a store. */
interface Opening extends AnyLimiter {
  open(key: string | readonly string[] | Readonly<Record<string, string>>, options?: OpenOptions): Awaitable<AnyHold>
  readonly byId?: HoldsById
}

function opening(fixture: Fixtures, policyOf: MakePolicy) {
  const hundred = policyOf({ limit: 100, window: '1m', name: 'hundred' })
  const hasHolds = (hundred.policies ?? [hundred]).every(({ algorithm }) => algorithm !== 'concurrency')
  const opened = async (policy = hundred) => {
    const { limiter, ...others } = await fixture(policy)
    return { ...others, limiter: limiter as Opening }
  }
  return { hundred, opened, hasHolds }
}

/** Work whose cost is known only afterwards, with every algorithm but `concurrency`. */
export function holds(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const { opened, hasHolds } = opening(fixture, policyOf)
  if (!hasHolds) return

  test(`${name}: what is held is spent by nobody else, and nothing is charged until it is added`, async () => {
    const { limiter } = await opened()
    const work = await limiter.open('ada', { expect: 60 })
    assert.deepEqual([work.allowed, work.remaining, work.held, work.used], [true, 40, 60, 0])
    const refused = await limiter.open('ada', { expect: 41 })
    assert.deepEqual([refused.allowed, refused.policy, await refused.add(1)], [false, 'hundred', false])
    assert.ok((await limiter.peek('ada', 100)).retryAfterMs < Number.POSITIVE_INFINITY, 'it fits once the work has ended')
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
    // More than a key can owe.
    const far = await limiter.open('eve', { expect: 60 })
    await far.close(5_000)
    assert.deepEqual([far.used, far.over], [5_000, 4_900])
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
    assert.equal((await limiter.take('ada', 2 ** 31)).allowed, true)
    assert.equal((await limiter.take('ada', 2 ** 31)).allowed, false)
  })

  test(`${name}: most is the bound of the work`, async () => {
    const { limiter } = await opened()
    const work = await limiter.open('ada', { expect: 50, most: 20 })
    assert.deepEqual([work.held, await work.add(20), await work.add(1)], [20, true, false])
    assert.equal((await work.close()).remaining, 80)
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
}

/** Open work that a timer reports once its time is over. */
export function lapsedHolds(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const { opened, hasHolds } = opening(fixture, policyOf)
  if (!hasHolds) return

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
}

/** Open work of several keys. */
export function heldLevels(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const { opened, hasHolds } = opening(fixture, policyOf)
  if (!hasHolds) return

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

/** Open work where the policy is the limiter's to change. */
export function updatedHolds(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const { opened, hasHolds } = opening(fixture, policyOf)
  if (!hasHolds) return

  test(`${name}: an update keeps what is held`, async () => {
    const { limiter } = await opened()
    const work = await limiter.open('ada', { expect: 60 })
    limiter.update(policyOf({ limit: 80, window: '1m', name: 'hundred' }))
    assert.equal((await limiter.take('ada', 21)).allowed, false)
    assert.equal(await work.add(60), true)
    assert.equal((await work.close()).remaining, 20)
  })
}

const [ID, OTHER] = ['0123456789abcdef0123456789abcdef', 'fedcba98765432100123456789abcdef']

/** Open work that the store knows by an id, where it does. */
export function holdsById(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const { hundred, opened, hasHolds } = opening(fixture, policyOf)
  if (!hasHolds) return
  const store = async (policy = hundred) => {
    const { limiter, ...others } = await opened(policy)
    return { ...others, limiter, byId: limiter.byId as HoldsById }
  }
  const stateOf = ({ isDone, held, used, over, fault }: HoldAnswer) => ({ isDone, held, used, over, ...(fault && { fault }) })

  test(`${name}: work by id holds, spends and frees as any other, and each step counts once`, async () => {
    const { limiter, byId } = await store()
    const open = () => byId.open('ada', ID, { expect: 60 })
    assert.deepEqual(stateOf(await open()), { isDone: true, held: 60, used: 0, over: 0 })
    assert.deepEqual([stateOf(await open()).held, (await limiter.peek('ada')).remaining], [60, 40])
    const other = await byId.open('ada', OTHER, { expect: 41 })
    assert.deepEqual([other.isDone, other.decision.allowed], [false, false])
    const peek = async (id = ID) => stateOf(await byId.peek('ada', id))
    assert.deepEqual(
      [await peek(), await peek(OTHER)],
      [
        { isDone: true, held: 60, used: 0, over: 0 },
        { isDone: false, held: 0, used: 0, over: 0, fault: 'unknown' },
      ],
    )
    for (const repeated of [false, true]) {
      const { spent, ...answer } = await byId.add('ada', ID, 30, 1)
      assert.deepEqual([stateOf({ ...answer, spent }), spent], [{ isDone: true, held: 30, used: 30, over: 0 }, repeated ? 0 : 30])
    }
    assert.equal((await byId.add('ada', ID, 5)).used, 35)
    assert.deepEqual(await peek(), { isDone: false, held: 25, used: 35, over: 0, fault: 'passed' })
    assert.deepEqual(stateOf(await byId.add('ada', ID, 5, 1)), { isDone: false, held: 25, used: 35, over: 0, fault: 'passed' })
    for (let i = 0; i < 2; i++) {
      assert.deepEqual(stateOf(await byId.close('ada', ID, 40, 3)), { isDone: true, held: 0, used: 40, over: 0 })
      assert.equal((await limiter.peek('ada')).remaining, 60)
    }
    assert.deepEqual([(await byId.close('ada', ID, 99, 4)).fault, (await peek()).fault], ['closed', 'closed'])
    assert.equal((await byId.add('ada', ID, 1, 5)).fault, 'closed')
    assert.equal((await byId.close('ada', ID)).used, 40)
    assert.equal((await limiter.peek('ada')).remaining, 60)
  })

  test(`${name}: an id is known with its key alone, and while its work may go on`, async () => {
    const { clock, byId } = await store(policyOf({ limit: 100, window: '1h' }))
    await byId.open('ada', ID, { expect: 60, ttl: '1s' })
    for (const answer of [await byId.add('eve', ID, 1), await byId.add('ada', OTHER, 1, 1), await byId.close('ada', OTHER)])
      assert.deepEqual([answer.isDone, answer.fault, answer.spent], [false, 'unknown', 0])
    for (const id of ['', 'x', `${ID}0`, `{ada}${ID.slice(5)}`, ID.toUpperCase()])
      await assert.rejects(byId.open('ada', id), { name: 'PolicyError', option: 'id' })
    for (const cost of [-1, 0.5, Number.NaN, 2 ** 53]) await assert.rejects(byId.add('ada', ID, cost, 1), { code: 'COST_INVALID' })
    for (const call of [0, -1, 0.5, Number.NaN, 2 ** 53]) {
      await assert.rejects(byId.add('ada', OTHER, 1, call), { name: 'PolicyError', option: 'call' })
      await assert.rejects(byId.close('ada', OTHER, 1, call), { name: 'PolicyError', option: 'call' })
    }
    assert.equal((await byId.peek('eve', ID)).fault, 'unknown')
    clock.advance(900)
    assert.equal((await byId.peek('ada', ID)).held, 60, 'a look renews nothing')
    clock.advance(500)
    assert.deepEqual(stateOf(await byId.peek('ada', ID)), { isDone: true, held: 0, used: 0, over: 0 })
    assert.deepEqual(stateOf(await byId.add('ada', ID, 10, 1)), { isDone: true, held: 0, used: 10, over: 0 }, 'of what is free')
    clock.advance(4_000)
    assert.equal((await byId.add('ada', ID, 1, 2)).fault, 'unknown')
  })

  test(`${name}: work by id is cut beyond free room and beyond its most, and finishes as debt where it said so`, async () => {
    const { limiter, byId } = await store()
    await byId.open('ada', ID, { expect: 10, most: 20 })
    assert.equal((await byId.add('ada', ID, 15, 1)).isDone, true)
    const beyond = await byId.add('ada', ID, 6, 2)
    assert.deepEqual([beyond.isDone, beyond.fault, beyond.used], [false, 'beyond', 15])
    assert.deepEqual([(await byId.add('ada', ID, 6, 2)).isDone, (await byId.add('ada', ID, 5, 3)).used], [false, 20])
    await byId.open('ada', OTHER, { expect: 70, over: 'finish' })
    for (const over of ['cut', 'finish'] as const) {
      const denied = await byId.open('ada', ID.replace('0', '1'), { expect: 11, over })
      assert.deepEqual([denied.isDone, denied.fault], [false, undefined])
    }
    await limiter.block('eve', '1m')
    assert.equal((await byId.open('eve', ID, { expect: 1, over: 'finish' })).isDone, false)
    const debt = await byId.add('ada', OTHER, 90, 1)
    assert.deepEqual([debt.isDone, debt.used, debt.over], [true, 90, 10])
    assert.equal((await byId.close('ada', OTHER)).over, 10)
    assert.equal((await limiter.take('ada')).allowed, false)
  })

  test(`${name}: a piece of work that waits frees what is held when it is refused, and may come again with its number`, async () => {
    const { limiter, byId } = await store(policyOf({ limit: 100, window: '1h' }))
    await byId.open('ada', ID, { expect: 40, over: 'wait', most: 90 })
    await byId.open('ada', OTHER, { expect: 40, over: 'wait' })
    assert.equal((await byId.add('ada', ID, 5, 1)).used, 5)
    const refused = await byId.add('ada', ID, 61, 2)
    assert.deepEqual(stateOf(refused), { isDone: false, held: 0, used: 5, over: 0 })
    assert.equal((await byId.add('ada', ID, 86, 2)).fault, 'beyond')
    // What is beyond its most never passes: that is an answer.
    assert.equal((await byId.add('ada', ID, 1, 2)).isDone, false)
    assert.equal((await byId.add('ada', ID, 61, 3)).isDone, false)
    assert.equal((await byId.add('ada', OTHER, 70, 1)).used, 70, 'of what the other one does not hold any more')
    assert.deepEqual([(await byId.add('ada', ID, 61, 3)).isDone, (await limiter.peek('ada')).remaining], [false, 25])
    await byId.close('ada', OTHER)
    await limiter.refund('ada', 40)
    const { spent, debt, used } = await byId.add('ada', ID, 61, 3)
    assert.deepEqual([spent, debt, used], [61, 0, 66])
    assert.deepEqual([(await byId.add('ada', ID, 61, 3)).spent, (await limiter.peek('ada')).remaining], [0, 4])
    const closed = await byId.close('ada', ID, 76, 4)
    assert.deepEqual([closed.spent, closed.debt, closed.over], [10, 6, 6])
    assert.equal((await byId.close('ada', ID, 76, 4)).debt, 0)
  })

  test(`${name}: of many steps at once, each said twice, each counts once`, async () => {
    const { limiter, byId } = await store(policyOf({ limit: 100, window: '1h' }))
    const ids = Array.from({ length: 12 }, (_, i) => i.toString(16).padStart(32, '0'))
    const begun = await Promise.all(ids.flatMap((id) => [byId.open('ada', id, { expect: 10 }), byId.open('ada', id, { expect: 10 })]))
    const open = ids.filter((_, i) => begun[2 * i]?.isDone)
    assert.deepEqual([open.length, (await limiter.peek('ada')).remaining], [10, 0])
    for (let call = 1; call <= 3; call++)
      await Promise.all(open.flatMap((id) => [byId.add('ada', id, 2, call), byId.add('ada', id, 2, call)]))
    await Promise.all(open.flatMap((id) => [byId.close('ada', id, 7, 9), byId.close('ada', id, 7, 9)]))
    assert.equal((await limiter.peek('ada')).remaining, 30)
  })
}

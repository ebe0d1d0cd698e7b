import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, type Decision, fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'
import { firstOver } from '../history/excess.js'
import { specOf } from '../kit.js'
import { Random } from '../random.js'
import { shortOrLong } from '../run-length.js'
import { admitted, type Fixtures } from './fixture.js'

const MIDNIGHT_MS = Date.UTC(2026, 8, 10)

/** What is true of several policies as one. */
export function allsOf(name: string, fixture: Fixtures): void {
  const aSecond = tokenBucket({ limit: 10, window: '1s', name: 'second' })
  const aDay = fixedWindow({ limit: 25, window: 'day', name: 'day' })
  const both = allOf([aSecond, aDay], { name: 'both' })

  test(`${name}: when one refuses, none is charged: not one of 50 calls of which 1 would pass`, async () => {
    const { limiter, clock } = await fixture(allOf([aDay, gcra({ limit: 1, window: '1s', burst: 1, name: 'one' })]), {}, MIDNIGHT_MS)
    assert.equal(await admitted(limiter, 'k', 50), 1)
    clock.advance(1000)
    const [day] = (await limiter.peek('k')).parts ?? []
    assert.equal(day?.remaining, 24)
  })

  test(`${name}: allowed, the policy with the least left speaks, and resetAfterMs is the longest`, async () => {
    const { limiter, clock } = await fixture(both, {}, MIDNIGHT_MS)
    const first = await limiter.take('k', 4)
    assert.deepEqual([first.policy, first.limit, first.remaining, first.resetAfterMs], ['second', 10, 6, 86_400_000])
    clock.advance(1000)
    await limiter.take('k', 10)
    clock.advance(1000)
    const third = await limiter.take('k', 9)
    assert.deepEqual([third.policy, third.limit, third.remaining], ['second', 10, 1])
    clock.advance(1000)
    const fourth = await limiter.take('k', 1)
    assert.deepEqual([fourth.policy, fourth.limit, fourth.remaining], ['day', 25, 1])
  })

  test(`${name}: denied, of those that refuse the one with the longest wait speaks`, async () => {
    const { limiter } = await fixture(both, {}, MIDNIGHT_MS)
    await limiter.take('k', 10)
    const soon = await limiter.take('k')
    assert.deepEqual([soon.policy, soon.retryAfterMs, soon.remaining], ['second', 100, 0])
    await limiter.penalize('k', 15)
    const late = await limiter.take('k')
    assert.deepEqual([late.policy, late.retryAfterMs, late.remaining], ['day', 86_400_000, 0])
    assert.deepEqual(
      [(await limiter.take('k', 11)).policy, (await limiter.take('k', 11)).retryAfterMs],
      ['second', Number.POSITIVE_INFINITY],
    )
  })

  test(`${name}: each part answers for itself, charged or not`, async () => {
    const { limiter, checked } = await fixture(both, {}, MIDNIGHT_MS)
    const { parts } = await checked.take('k', 4)
    assert.deepEqual(
      parts?.map(({ policy, allowed, remaining }) => [policy, allowed, remaining]),
      [
        ['second', true, 6],
        ['day', true, 21],
      ],
    )
    const denied = await checked.take('k', 7)
    assert.deepEqual(
      denied.parts?.map(({ policy, allowed, remaining }) => [policy, allowed, remaining]),
      [
        ['second', false, 6],
        ['day', true, 21],
      ],
    )
    assert.equal(new Set([...(parts ?? []), ...(denied.parts ?? [])]).size, 4)
    assert.equal(limiter.policy.name, 'both')
  })

  test(`${name}: an array of keys asks each policy about its own`, async () => {
    const { limiter, checked } = await fixture(both, {}, MIDNIGHT_MS)
    assert.equal((await checked.take(['user 1', 'team'], 10)).allowed, true)
    assert.equal((await checked.take(['user 1', 'team'])).policy, 'second')
    assert.equal((await checked.take(['user 2', 'team'], 10)).allowed, true)
    assert.equal((await checked.take(['user 3', 'team'], 6)).policy, 'day')
    assert.equal((await checked.take(['user 3', 'other team'], 6)).allowed, true)
    assert.equal((await checked.take(['team', 'user 1'], 10)).allowed, true)
    assert.equal((await limiter.key(['user 4', 'team']).take(5)).allowed, true)
    for (const wrong of [[], ['one'], ['one', 'two', 'three'], ['', 'two'], ['one', 2]]) {
      await assert.rejects(async () => limiter.take(wrong as string[]), { name: 'PolicyError', code: 'KEY_INVALID' })
    }
  })

  test(`${name}: one string stands for itself in every policy`, async () => {
    const { checked } = await fixture(both, {}, MIDNIGHT_MS)
    await checked.take('k', 4)
    assert.equal((await checked.peek(['k', 'k'])).remaining, 6)
    await checked.take(['k', 'k'], 3)
    assert.equal((await checked.peek('k')).remaining, 3)
  })

  test(`${name}: verbs go to every policy`, async () => {
    const { checked } = await fixture(both, {}, MIDNIGHT_MS)
    const remainders = ({ parts = [] }: Decision): number[] => parts.map(({ remaining }) => remaining)
    assert.deepEqual(remainders(await checked.penalize('k', 7)), [3, 18])
    assert.deepEqual(remainders(await checked.refund('k', 2)), [5, 20])
    assert.deepEqual(
      (await checked.block('k', 1000)).parts?.map(({ allowed }) => allowed),
      [false, false],
    )
    assert.deepEqual(remainders(await checked.reset('k')), [10, 25])
  })

  test(`${name}: an update changes each policy in its place, and only to one of its algorithm`, async () => {
    const { checked, limiter } = await fixture(both, {}, MIDNIGHT_MS)
    await checked.take('k', 10)
    checked.update(allOf([tokenBucket({ limit: 10, window: '1s', burst: 15 }), fixedWindow({ limit: 12, window: 'day' })]))
    assert.deepEqual(
      (await limiter.peek('k')).parts?.map(({ remaining }) => remaining),
      [5, 2],
    )
    for (const wrong of [allOf([aSecond]), allOf([aSecond, tokenBucket({ limit: 7, window: '1s' })]), aSecond]) {
      await assert.rejects(async () => limiter.update(wrong), { name: 'PolicyError', code: 'ALGORITHM_CHANGE' })
    }
    assert.deepEqual(
      (await limiter.peek('k')).parts?.map(({ remaining }) => remaining),
      [5, 2],
    )
  })

  test(`I1 ${name}: eight policies of every kind are each kept, and a caller gets all that they leave together`, async () => {
    const all = allOf([
      tokenBucket({ limit: 50, window: '1s', burst: 20 }),
      gcra({ limit: 100, window: '1s', burst: 12 }),
      fixedWindow({ limit: 40, window: '1s' }),
      fixedWindow({ limit: 300, window: '10s' }),
      slidingWindow({ limit: 45, window: '1s' }),
      slidingWindow({ limit: 100_000, window: '1m' }),
      slidingLog({ limit: 30, window: '700ms' }),
      slidingLog({ limit: 60, window: '2s' }),
    ])
    const random = new Random(8)
    const { checked, clock } = await fixture(all, { maxKeys: 20 })
    const admissions = []
    for (let i = 0; i < Math.max(shortOrLong(400, 600), 3000 * fixture.store.share); i++) {
      clock.advance(Math.round(random.pick([0, 0, 1, 10, 100 * random.fraction()]) * 1000) / 1000)
      const cost = random.chance(0.7) ? 1 : random.integer(1, 12)
      if ((await checked.take('k', cost)).allowed) admissions.push({ atUs: Math.round(clock.nowMs() * 1000), cost })
    }
    assert.ok(admissions.length > 100)
    assert.equal(firstOver(specOf(all), admissions), undefined)
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChannelMessages, Decision } from 'sluicegate'
import type { Fixtures, MakePolicy } from './fixture.js'
import { eventsDuring } from './fixture.js'

/** What is reported of decisions, wherever they are made: denials as they come, and the top lists. */
export function denialEvents(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const five = policyOf({ limit: 5, window: '1h', name: 'five' })

  test(`${name}: each denial is published with its policy, key, cost and answer; allowed takes and peeks are not`, async () => {
    const { limiter } = await fixture(five)
    const [events, answers] = await eventsDuring<ChannelMessages['sluicegate:denial'], Decision>('sluicegate:denial', async () => {
      await limiter.take('k', 4)
      await limiter.peek('k', 5)
      await limiter.block('blocked', '1s')
      return [await limiter.take('k', 2), await limiter.take('k', 6), await limiter.key('blocked').take()]
    })
    assert.deepEqual(
      events.map(({ policy, key, cost }) => [policy, key, cost]),
      [
        ['five', 'k', 2],
        ['five', 'k', 6],
        ['five', 'blocked', 1],
      ],
    )
    // The answer itself, or of a permit the decision in it.
    for (const [i, { decision }] of events.entries()) assert.deepEqual({ ...answers[i], ...decision }, { ...answers[i] })
  })

  test(`${name}: hot keys are asked for by a whole number of them`, async () => {
    for (const options of [{}, { hotKeys: 20 }]) {
      const { limiter } = await fixture(five, options)
      for (const n of [-1, 1.5, Number.NaN, '1'])
        await assert.rejects(async () => limiter.hotKeys(n as number), { code: 'OPTION_INVALID', option: 'n' })
      assert.deepEqual(limiter.hotKeys(0), { demand: [], denials: [] })
    }
  })

  test(`${name}: hot keys are empty unless asked for`, async () => {
    const { limiter } = await fixture(five)
    await limiter.take('k')
    assert.deepEqual(limiter.hotKeys(), { demand: [], denials: [] })
  })

  test(`${name}: hot keys are the keys of most demand and of most denials, highest first`, async () => {
    const { limiter } = await fixture(five, { hotKeys: 20 })
    for (let i = 0; i < 12; i++) for (let n = 0; n <= i; n++) await limiter.take(`key ${i}`)
    const { demand, denials } = limiter.hotKeys(3)
    assert.deepEqual(
      demand,
      [11, 10, 9].map((i) => ({ key: `key ${i}`, count: i + 1, overcount: 0 })),
    )
    assert.deepEqual(
      denials,
      [11, 10, 9].map((i) => ({ key: `key ${i}`, count: i - 4, overcount: 0 })),
    )
    assert.equal(limiter.hotKeys().demand.length, 10)
  })

  test(`${name}: a key of more than 1/n of all takes is among n hot keys, its count within its bounds`, async () => {
    const { limiter } = await fixture(five, { hotKeys: 20 })
    const takes = Math.ceil(10_000 * fixture.store.share)
    const own = Math.ceil(takes / 15)
    for (let i = 0; i < takes; i++) await limiter.take(i % 15 === 0 ? 'crawler' : `visitor ${i}`)
    const crawler = limiter.hotKeys(20).demand.find(({ key }) => key === 'crawler')
    assert.ok(crawler !== undefined && crawler.count >= own && crawler.count - crawler.overcount <= own)
  })
}

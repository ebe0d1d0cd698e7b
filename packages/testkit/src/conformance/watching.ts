import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import type { Decision, DenialEvent, EvictionEvent } from 'sluicegate'
import type { Fixtures, MakePolicy } from './fixture.js'

/** What can be seen from outside: stats, the top lists, the diagnostics channels. */
export function watching(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const five = policyOf({ limit: 5, window: '1h', name: 'five' })

  test(`${name}: stats of a fresh limiter are all zero but its memory`, () => {
    const { memoryBytes, ...counters } = fixture(five).limiter.stats()
    assert.deepEqual(counters, { keys: 0, evictions: 0, refusals: 0, casRetries: 0, contentions: 0 })
    assert.ok(memoryBytes > 0)
  })

  test(`${name}: each denial is published with its policy, key, cost and answer; allowed takes and peeks are not`, () => {
    const { limiter } = fixture(five)
    const [events, answers] = heard<DenialEvent, Decision>('sluicegate:denial', () => {
      limiter.take('k', 4)
      limiter.peek('k', 5)
      limiter.block('blocked', '1s')
      return [limiter.take('k', 2), limiter.take('k', 6), limiter.key('blocked').take()]
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

  test(`${name}: each eviction is published with the key that came and the tokens forgotten`, () => {
    const { limiter } = fixture(five, { maxKeys: 1 })
    const [events] = heard<EvictionEvent, void>('sluicegate:eviction', () => {
      for (let i = 0; i < 100; i++) limiter.take(`key ${i}`, 2)
      return []
    })
    assert.equal(events.length, limiter.stats().evictions)
    assert.ok(events.length > 50)
    for (const { policy, key, tokens } of events) assert.deepEqual([policy, key.startsWith('key '), tokens], ['five', true, 2])
  })

  test(`${name}: evictions by reserve and wait are published, too`, async () => {
    const { limiter } = fixture(five, { maxKeys: 1 })
    const [events, waits] = heard<EvictionEvent, Promise<Decision>>('sluicegate:eviction', () => {
      for (let i = 0; i < 50; i++) limiter.reserve(`reserved ${i}`, 2)
      return Array.from({ length: 50 }, (_, i) => limiter.wait(`waited ${i}`, { cost: 2 }))
    })
    await Promise.all(waits)
    assert.equal(events.length, limiter.stats().evictions)
    assert.ok(events.filter(({ key }) => key.startsWith('reserved')).length > 20)
    assert.ok(events.filter(({ key }) => key.startsWith('waited')).length > 20)
  })

  test(`${name}: who hears of an eviction may take, and each answer is that of its own call`, () => {
    const { limiter } = fixture(five, { maxKeys: 1 })
    const quiet = fixture(five, { maxKeys: 1 })
    let isNested = false
    const take = (): void => {
      if (isNested) return
      isNested = true
      limiter.take('heard', 3)
      isNested = false
    }
    subscribe('sluicegate:eviction', take)
    try {
      for (let i = 0; i < 50; i++) {
        const { allowed, remaining, resetAfterMs } = limiter.take(`key ${i}`, 2)
        const alone = quiet.limiter.take(`key ${i}`, 2)
        assert.deepEqual([allowed, remaining, resetAfterMs], [alone.allowed, alone.remaining, alone.resetAfterMs])
      }
    } finally {
      unsubscribe('sluicegate:eviction', take)
    }
  })

  test(`${name}: of a wait its end is told, once, however often it had to ask`, async () => {
    const { limiter } = fixture(five, { hotKeys: 20 })
    limiter.block('k', '1s')
    const [events, waits] = heard<DenialEvent, Promise<Decision>>('sluicegate:denial', () => {
      const waits = [limiter.wait('k'), limiter.wait('k')]
      for (let i = 0; i < 5; i++) limiter.refund('k', 1)
      limiter.block('k', 0)
      return waits
    })
    await Promise.all(waits)
    assert.equal(events.length, 0)
    const { demand, denials } = limiter.hotKeys()
    assert.deepEqual([demand[0]?.count, denials.length], [2, 0])
  })

  test(`${name}: what is refused because others stand in line is a denial like any other`, async () => {
    const { limiter, clock } = fixture(five, { hotKeys: 20 })
    limiter.block('k', '1s')
    const waiting = limiter.wait('k')
    const [events, answers] = heard<DenialEvent, boolean>('sluicegate:denial', () => {
      const taken = limiter.take('k').allowed
      return [taken, limiter.key('k').take().allowed, limiter.reserve('k', 1).allowed]
    })
    assert.deepEqual([answers, events.length], [[false, false, false], 3])
    assert.equal(limiter.hotKeys().denials[0]?.count, 3)
    clock.advance(1000)
    await waiting
  })

  test(`${name}: hot keys are asked for by a whole number of them`, () => {
    for (const options of [{}, { hotKeys: 20 }]) {
      const { limiter } = fixture(five, options)
      for (const n of [-1, 1.5, Number.NaN, '1']) assert.throws(() => limiter.hotKeys(n as number), { code: 'OPTION_INVALID', option: 'n' })
      assert.deepEqual(limiter.hotKeys(0), { demand: [], denials: [] })
    }
  })

  test(`${name}: hot keys are empty unless asked for`, () => {
    const { limiter } = fixture(five)
    limiter.take('k')
    assert.deepEqual(limiter.hotKeys(), { demand: [], denials: [] })
  })

  test(`${name}: hot keys are the keys of most demand and of most denials, highest first`, () => {
    const { limiter } = fixture(five, { hotKeys: 20 })
    for (let i = 0; i < 12; i++) for (let n = 0; n <= i; n++) limiter.take(`key ${i}`)
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

  test(`${name}: a key of more than 1/n of all takes is among n hot keys, its count within its bounds`, () => {
    const { limiter } = fixture(five, { hotKeys: 20 })
    for (let i = 0; i < 10_000; i++) limiter.take(i % 15 === 0 ? 'crawler' : `visitor ${i}`)
    const crawler = limiter.hotKeys(20).demand.find(({ key }) => key === 'crawler')
    assert.ok(crawler !== undefined && crawler.count >= 667 && crawler.count - crawler.overcount <= 667)
  })
}

/** What is published on a channel while `act` runs, and what that returned. */
function heard<Event, Answer>(channel: string, act: () => readonly Answer[]): readonly [readonly Event[], readonly Answer[]] {
  const events: Event[] = []
  const hear = (event: unknown): void => void events.push(event as Event)
  subscribe(channel, hear)
  try {
    return [events, act()]
  } finally {
    unsubscribe(channel, hear)
  }
}

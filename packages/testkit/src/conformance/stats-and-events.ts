import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import type { ChannelMessages, Decision } from 'sluicegate'
import type { Fixtures, MakePolicy } from './fixture.js'
import { eventsDuring } from './fixture.js'

/** What can be seen of a table and of waiting calls: stats, evictions, and the end of a wait. */
export function statsAndEvents(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const five = policyOf({ limit: 5, window: '1h', name: 'five' })

  test(`${name}: stats of a fresh limiter are all zero but its memory`, async () => {
    const { memoryBytes, decisions, ...counters } = (await fixture(five)).table()
    assert.deepEqual(decisions, { five: { allowed: 0, denied: 0, impossible: 0, outage: 0 } })
    assert.deepEqual(counters, { keys: 0, evictions: 0, refusals: 0, overflows: 0, casRetries: 0, contentions: 0 })
    assert.ok(memoryBytes > 0)
  })

  test(`${name}: each eviction is published with the key that came and the tokens forgotten`, async () => {
    const { limiter, table } = await fixture(five, { maxKeys: 1 })
    const [events] = await eventsDuring<ChannelMessages['sluicegate:eviction'], void>('sluicegate:eviction', async () => {
      for (let i = 0; i < 100; i++) await limiter.take(`key ${i}`, 2)
      return []
    })
    assert.equal(events.length, table().evictions)
    assert.ok(events.length > 50)
    const names = five.policies?.map(({ name: part }) => part) ?? [five.name]
    for (const { policy, key, tokens } of events)
      assert.deepEqual([names.includes(policy), key.startsWith('key '), tokens], [true, true, 2])
  })

  test(`${name}: evictions by reserve and wait are published, too`, async () => {
    const { limiter, table } = await fixture(five, { maxKeys: 1 })
    const [events, waits] = await eventsDuring<ChannelMessages['sluicegate:eviction'], Promise<Decision>>(
      'sluicegate:eviction',
      async () => {
        for (let i = 0; i < 50; i++) await limiter.reserve(`reserved ${i}`, 2)
        return Array.from({ length: 50 }, (_, i) => limiter.wait(`waited ${i}`, { cost: 2 }))
      },
    )
    await Promise.all(waits)
    assert.equal(events.length, table().evictions)
    assert.ok(events.filter(({ key }) => key.startsWith('reserved')).length > 20)
    assert.ok(events.filter(({ key }) => key.startsWith('waited')).length > 20)
  })

  test(`${name}: who hears of an eviction may take, and each answer is that of its own call`, async () => {
    const { limiter } = await fixture(five, { maxKeys: 1 })
    const quiet = await fixture(five, { maxKeys: 1 })
    let isNested = false
    const take = async (): Promise<void> => {
      if (isNested) return
      isNested = true
      await limiter.take('heard', 3)
      isNested = false
    }
    subscribe('sluicegate:eviction', take)
    try {
      for (let i = 0; i < 50; i++) {
        const { allowed, remaining, resetAfterMs } = await limiter.take(`key ${i}`, 2)
        const alone = await quiet.limiter.take(`key ${i}`, 2)
        assert.deepEqual([allowed, remaining, resetAfterMs], [alone.allowed, alone.remaining, alone.resetAfterMs])
      }
    } finally {
      unsubscribe('sluicegate:eviction', take)
    }
  })

  test(`${name}: the end of a wait is reported once, however often it had to ask`, async () => {
    const { limiter } = await fixture(five, { hotKeys: 20 })
    await limiter.block('k', '1s')
    const [events, waits] = await eventsDuring<ChannelMessages['sluicegate:denial'], Promise<Decision>>('sluicegate:denial', async () => {
      const waits = [limiter.wait('k'), limiter.wait('k')]
      for (let i = 0; i < 5; i++) await limiter.refund('k', 1)
      await limiter.block('k', 0)
      return waits
    })
    await Promise.all(waits)
    assert.equal(events.length, 0)
    const { demand, denials } = limiter.hotKeys()
    assert.deepEqual([demand[0]?.count, denials.length], [2, 0])
  })

  test(`${name}: what is refused because others wait in the queue is a denial like any other`, async () => {
    const { limiter, clock } = await fixture(five, { hotKeys: 20 })
    await limiter.block('k', '1s')
    const waiting = limiter.wait('k')
    const [events, answers] = await eventsDuring<ChannelMessages['sluicegate:denial'], boolean>('sluicegate:denial', async () => {
      const taken = (await limiter.take('k')).allowed
      return [taken, (await limiter.key('k').take()).allowed, (await limiter.reserve('k', 1)).allowed]
    })
    assert.deepEqual([answers, events.length], [[false, false, false], 3])
    assert.equal(limiter.hotKeys().denials[0]?.count, 3)
    clock.advance(1000)
    await waiting
  })
}

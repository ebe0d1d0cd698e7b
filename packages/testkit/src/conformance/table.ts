import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Policy } from 'sluicegate'
import { shortOrLong } from '../run-length.js'
import { admitted, entriesOf, type Fixtures, inTurn, type MakePolicy, times } from './fixture.js'

/** More keys than any small table holds. */
const CROWD = 1000

/** I6 and I7: memory is fixed, and a key that is denied is never forgotten. */
export function table(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const five = policyOf({ limit: 5, window: '1h' })

  // Of several policies each has its own table, where another key may be the one to go.
  if (entriesOf(five) === 1) oneTable(name, fixture, five)

  for (const maxKeys of [1, 2, 3, 7, 100, 10_000]) {
    test(`${name}: maxKeys is a floor: ${maxKeys} keys with debt all stay`, async () => {
      const { limiter, table } = await fixture(five, { maxKeys })
      for (let i = 0; i < maxKeys; i++) await limiter.take(`key ${i}`, 2)
      for (let i = 0; i < maxKeys; i++) assert.equal((await limiter.peek(`key ${i}`)).remaining, 3)
      const { evictions, refusals, keys } = table()
      assert.deepEqual({ evictions, refusals, keys }, { evictions: 0, refusals: 0, keys: maxKeys * entriesOf(five) })
    })
  }

  test(`I6 ${name}: memory is fixed for any number of keys`, async () => {
    const { limiter, table } = await fixture(five, { maxKeys: 1000 })
    const { memoryBytes } = table()
    for (let i = 0; i < Math.max(shortOrLong(6_000, 8_000), 100_000 * fixture.store.share); i++) await limiter.take(`key ${i}`)
    assert.equal(table().memoryBytes, memoryBytes)
    assert.ok(table().keys < 2000 * entriesOf(five))
  })

  // Messages to a table of another process come in turns of their own.
  if (fixture.store.source === 'memory')
    test(`I6 ${name}: no timer is set for expiry`, async (t) => {
      const set = ['setTimeout', 'setInterval', 'setImmediate'] as const
      const timers = set.map((timer) => t.mock.method(globalThis, timer))
      const { limiter, clock } = await fixture(policyOf({ limit: 1, window: '30d' }), { maxKeys: 100 })
      for (let i = 0; i < 1000; i++) {
        await limiter.take(`key ${i}`)
        await limiter.block(`bad ${i % 5}`, '30d')
        clock.advance(1000)
      }
      assert.deepEqual(
        timers.map((timer) => timer.mock.callCount()),
        [0, 0, 0],
      )
    })

  for (const onFull of ['evict', 'deny'] as const) {
    test(`I7 ${name}: a flood of new keys never makes the limiter forget an abuser (onFull: ${onFull})`, async () => {
      const { limiter, clock } = await fixture(five, { maxKeys: 50, onFull })
      const abusers = ['abuser', 'penalized', 'blocked']
      await limiter.take('abuser', 5)
      await limiter.penalize('penalized', 40)
      await limiter.block('blocked', '10h')
      for (let i = 0; i < Math.max(shortOrLong(2_000, 3_000), 20_000 * fixture.store.share); i++) {
        await limiter.take(`newcomer ${i}`)
        if (i % 100 === 0) {
          clock.advance(1)
          assert.deepEqual(await inTurn(abusers, async (key) => (await limiter.take(key)).allowed), [false, false, false])
        }
      }
    })
  }

  test(`I7 ${name}: room is made by a key that is full, which costs nothing`, async () => {
    const { limiter, clock, table } = await fixture(five, { maxKeys: 50 })
    for (let round = 0; round < 100; round++) {
      for (let i = 0; i < 50; i++) assert.equal((await limiter.take(`round ${round} key ${i}`, 5)).allowed, true)
      clock.advance((await limiter.peek(`round ${round} key 0`)).resetAfterMs)
    }
    const { evictions, refusals } = table()
    assert.deepEqual({ evictions, refusals }, { evictions: 0, refusals: 0 })
  })

  test(`I7 ${name}: with onFull deny a key that owes anything is never forgotten`, async () => {
    const { limiter, clock, table } = await fixture(five, { maxKeys: 1, onFull: 'deny' })
    let held = 0
    while ((await limiter.take(`held ${held}`)).allowed && held < CROWD) held++
    const { resetAfterMs } = await limiter.peek('held 0')
    assert.equal((await limiter.take('newcomer')).retryAfterMs, resetAfterMs)
    for (let i = 0; i < held; i++) assert.equal((await limiter.peek(`held ${i}`)).remaining, 4)
    assert.equal(table().evictions, 0)
    clock.advance(resetAfterMs)
    assert.equal((await limiter.take('newcomer')).allowed, true)
  })

  test(`${name}: where there is no room to track a penalty or a block, that is an error, not silence`, async () => {
    const { limiter } = await fixture(five, { maxKeys: 1 })
    for (let i = 0; (await limiter.take(`held ${i}`, 5)).allowed && i < CROWD; i++);
    await assert.rejects(async () => limiter.penalize('newcomer', 3), { name: 'StoreError', code: 'TABLE_FULL' })
    await assert.rejects(async () => limiter.block('newcomer', '1h'), { name: 'StoreError', code: 'TABLE_FULL' })
    assert.equal((await limiter.refund('newcomer', 3)).remaining, 5)
  })

  test(`${name}: a crowd within maxKeys is exact: every key has its budget, whatever the others do`, async () => {
    const { limiter, clock } = await fixture(five, { maxKeys: 300 })
    for (let round = 0; round < 8; round++) {
      for (let i = 0; i < 300; i++) assert.equal(await admitted(limiter, `key ${i}`, 7), 5)
      clock.advance((await limiter.peek('key 0')).resetAfterMs)
    }
  })

  const three = policyOf({ limit: 3, window: '1h' })

  test(`${name}: crafted keys cannot share a place: each limiter puts the same keys elsewhere`, async () => {
    const keys = shortOrLong(600, 1000)
    const survivors = await times(6, async () => {
      const { limiter } = await fixture(three, { maxKeys: 200 })
      for (let i = 0; i < keys; i++) await limiter.take(`key ${i}`)
      return (await times(keys, async (i) => (await limiter.peek(`key ${i}`)).remaining)).join('')
    })
    assert.equal(new Set(survivors).size, survivors.length)
  })
}

/** Who goes when there is no room. */
function oneTable(name: string, fixture: Fixtures, five: Policy): void {
  test(`I7 ${name}: else by the key with the least debt, which is counted`, async () => {
    const { limiter, table } = await fixture(five, { maxKeys: 1 })
    for (let i = 0; table().evictions === 0 && i < CROWD; i++) await limiter.take(`key ${i}`, 1 + (i % 4))
    const { keys, evictions } = table()
    assert.equal(evictions, 1)
    const debts = await times(keys + 1, async (i) => 5 - (await limiter.peek(`key ${i}`)).remaining - (1 + (i % 4)))
    const forgotten = debts.flatMap((difference, i) => (difference === 0 ? [] : [i]))
    assert.deepEqual(
      forgotten.map((i) => 1 + (i % 4)),
      [1],
    )
  })

  test(`I7 ${name}: when every candidate is being denied, the newcomer is denied and counted, until one may go`, async () => {
    const { limiter, clock, table } = await fixture(five, { maxKeys: 1 })
    const full = table()
    let held = 0
    while ((await limiter.take(`held ${held}`, 5)).allowed && held < CROWD) held++
    const { allowed, retryAfterMs, remaining } = await limiter.take('newcomer')
    assert.deepEqual([allowed, remaining], [false, 0])
    assert.equal(retryAfterMs, (await limiter.peek('held 0')).retryAfterMs)
    assert.equal(table().refusals, 2)
    assert.equal(table().memoryBytes, full.memoryBytes)
    for (let i = 0; i < held; i++) assert.equal((await limiter.take(`held ${i}`)).allowed, false)
    clock.advance(retryAfterMs - 1)
    assert.equal((await limiter.take('newcomer')).allowed, false)
    clock.advance(1)
    assert.equal((await limiter.take('newcomer')).allowed, true)
  })
}

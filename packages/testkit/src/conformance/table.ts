import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Policy } from 'sluicegate'
import { shortOrLong } from '../run-length.js'
import { admitted, entriesOf, type Fixtures, type MakePolicy } from './fixture.js'

/** More keys than any small table holds. */
const CROWD = 1000

/** I6 and I7: memory is fixed, and a key that is denied is never forgotten. */
export function table(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const five = policyOf({ limit: 5, window: '1h' })

  // Of several policies each has its own table, where another key may be the one to go.
  if (entriesOf(five) === 1) oneTable(name, fixture, five)

  for (const maxKeys of [1, 2, 3, 7, 100, 10_000]) {
    test(`${name}: maxKeys is a floor: ${maxKeys} keys with debt all stay`, () => {
      const { limiter } = fixture(five, { maxKeys })
      for (let i = 0; i < maxKeys; i++) limiter.take(`key ${i}`, 2)
      for (let i = 0; i < maxKeys; i++) assert.equal(limiter.peek(`key ${i}`).remaining, 3)
      const { evictions, refusals, keys } = limiter.stats()
      assert.deepEqual({ evictions, refusals, keys }, { evictions: 0, refusals: 0, keys: maxKeys * entriesOf(five) })
    })
  }

  test(`I6 ${name}: memory is fixed for any number of keys`, () => {
    const { limiter } = fixture(five, { maxKeys: 1000 })
    const { memoryBytes } = limiter.stats()
    for (let i = 0; i < Math.max(shortOrLong(6_000, 20_000), 100_000 * fixture.store.share); i++) limiter.take(`key ${i}`)
    assert.equal(limiter.stats().memoryBytes, memoryBytes)
    assert.ok(limiter.stats().keys < 2000 * entriesOf(five))
  })

  test(`I6 ${name}: no timer is set for expiry`, (t) => {
    const set = ['setTimeout', 'setInterval', 'setImmediate'] as const
    const timers = set.map((timer) => t.mock.method(globalThis, timer))
    const { limiter, clock } = fixture(policyOf({ limit: 1, window: '30d' }), { maxKeys: 100 })
    for (let i = 0; i < 1000; i++) {
      limiter.take(`key ${i}`)
      limiter.block(`bad ${i % 5}`, '30d')
      clock.advance(1000)
    }
    assert.deepEqual(
      timers.map((timer) => timer.mock.callCount()),
      [0, 0, 0],
    )
  })

  for (const onFull of ['evict', 'deny'] as const) {
    test(`I7 ${name}: a flood of new keys never makes the limiter forget an abuser (onFull: ${onFull})`, () => {
      const { limiter, clock } = fixture(five, { maxKeys: 50, onFull })
      const abusers = ['abuser', 'penalized', 'blocked']
      limiter.take('abuser', 5)
      limiter.penalize('penalized', 40)
      limiter.block('blocked', '10h')
      for (let i = 0; i < Math.max(shortOrLong(2_000, 5_000), 20_000 * fixture.store.share); i++) {
        limiter.take(`newcomer ${i}`)
        if (i % 100 === 0) {
          clock.advance(1)
          assert.deepEqual(
            abusers.map((key) => limiter.take(key).allowed),
            [false, false, false],
          )
        }
      }
    })
  }

  test(`I7 ${name}: room is made by a key that is full, which costs nothing`, () => {
    const { limiter, clock } = fixture(five, { maxKeys: 50 })
    for (let round = 0; round < 100; round++) {
      for (let i = 0; i < 50; i++) assert.equal(limiter.take(`round ${round} key ${i}`, 5).allowed, true)
      clock.advance(limiter.peek(`round ${round} key 0`).resetAfterMs)
    }
    const { evictions, refusals } = limiter.stats()
    assert.deepEqual({ evictions, refusals }, { evictions: 0, refusals: 0 })
  })

  test(`I7 ${name}: with onFull deny a key that owes anything is never forgotten`, () => {
    const { limiter, clock } = fixture(five, { maxKeys: 1, onFull: 'deny' })
    let held = 0
    while (limiter.take(`held ${held}`).allowed && held < CROWD) held++
    const { resetAfterMs } = limiter.peek('held 0')
    assert.equal(limiter.take('newcomer').retryAfterMs, resetAfterMs)
    for (let i = 0; i < held; i++) assert.equal(limiter.peek(`held ${i}`).remaining, 4)
    assert.equal(limiter.stats().evictions, 0)
    clock.advance(resetAfterMs)
    assert.equal(limiter.take('newcomer').allowed, true)
  })

  test(`${name}: where there is no room to track a penalty or a block, that is an error, not silence`, () => {
    const { limiter } = fixture(five, { maxKeys: 1 })
    for (let i = 0; limiter.take(`held ${i}`, 5).allowed && i < CROWD; i++);
    assert.throws(() => limiter.penalize('newcomer', 3), { name: 'StoreError', code: 'TABLE_FULL' })
    assert.throws(() => limiter.block('newcomer', '1h'), { name: 'StoreError', code: 'TABLE_FULL' })
    assert.equal(limiter.refund('newcomer', 3).remaining, 5)
  })

  test(`${name}: a crowd within maxKeys is exact: every key has its budget, whatever the others do`, () => {
    const { limiter, clock } = fixture(five, { maxKeys: 300 })
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 300; i++) assert.equal(admitted(limiter, `key ${i}`, 7), 5)
      clock.advance(limiter.peek('key 0').resetAfterMs)
    }
  })

  const three = policyOf({ limit: 3, window: '1h' })

  test(`${name}: crafted keys cannot share a place: each limiter puts the same keys elsewhere`, () => {
    const keys = shortOrLong(600, 2000)
    const survivors = Array.from({ length: 6 }, () => {
      const { limiter } = fixture(three, { maxKeys: 200 })
      for (let i = 0; i < keys; i++) limiter.take(`key ${i}`)
      return Array.from({ length: keys }, (_, i) => limiter.peek(`key ${i}`).remaining).join('')
    })
    assert.equal(new Set(survivors).size, survivors.length)
  })
}

/** Who goes when there is no room. */
function oneTable(name: string, fixture: Fixtures, five: Policy): void {
  test(`I7 ${name}: else by the key with the least debt, which is counted`, () => {
    const { limiter } = fixture(five, { maxKeys: 1 })
    for (let i = 0; limiter.stats().evictions === 0 && i < CROWD; i++) limiter.take(`key ${i}`, 1 + (i % 4))
    const { keys, evictions } = limiter.stats()
    assert.equal(evictions, 1)
    const debts = Array.from({ length: keys + 1 }, (_, i) => 5 - limiter.peek(`key ${i}`).remaining - (1 + (i % 4)))
    const forgotten = debts.flatMap((difference, i) => (difference === 0 ? [] : [i]))
    assert.deepEqual(
      forgotten.map((i) => 1 + (i % 4)),
      [1],
    )
  })

  test(`I7 ${name}: when every candidate is being denied, the newcomer is denied and counted, until one may go`, () => {
    const { limiter, clock } = fixture(five, { maxKeys: 1 })
    const full = limiter.stats()
    let held = 0
    while (limiter.take(`held ${held}`, 5).allowed && held < CROWD) held++
    const { allowed, retryAfterMs, remaining } = limiter.take('newcomer')
    assert.deepEqual([allowed, remaining], [false, 0])
    assert.equal(retryAfterMs, limiter.peek('held 0').retryAfterMs)
    assert.equal(limiter.stats().refusals, 2)
    assert.equal(limiter.stats().memoryBytes, full.memoryBytes)
    for (let i = 0; i < held; i++) assert.equal(limiter.take(`held ${i}`).allowed, false)
    clock.advance(retryAfterMs - 1)
    assert.equal(limiter.take('newcomer').allowed, false)
    clock.advance(1)
    assert.equal(limiter.take('newcomer').allowed, true)
  })
}

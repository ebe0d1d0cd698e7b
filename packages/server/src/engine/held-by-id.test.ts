import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from 'sluicegate'
import { HeldById, TooManyHeldError } from './held-by-id.js'

function setUp(max = 10, maxPerKey = 3) {
  const clock = manualClock(500)
  const ended: string[] = []
  const held = new HeldById<string>(
    { what: 'things', max, maxPerKey },
    () => clock.nowMs(),
    (value) => ended.push(value),
  )
  const add = (key: string, value: string, ttlMs: number): string => {
    held.requireRoom(key)
    return held.add(key, value, ttlMs)
  }
  return { clock, ended, held, add }
}

test('a value is there until its time is over, and then ends once', () => {
  const { clock, ended, held, add } = setUp()
  const id = add('alice', 'a', 1_000)
  clock.advance(999)
  assert.equal(held.get(id), 'a')
  clock.advance(1)
  assert.deepEqual([held.get(id), held.remove(id), held.renew(id, 5)], [undefined, undefined, false])
  clock.advance(10_000)
  held.sweep()
  assert.deepEqual([ended, held.expired, held.size], [['a'], 1, 0])
})

test('values end without being asked for, also short ones, and renewed ones later', () => {
  const { clock, ended, held, add } = setUp()
  add('alice', 'short', 1)
  const renewed = add('alice', 'renewed', 2_000)
  add('bob', 'long', 60_000)
  clock.advance(1_500)
  held.sweep()
  assert.deepEqual(ended, ['short'])
  assert.equal(held.renew(renewed, 2_000), true)
  clock.advance(1_000)
  held.sweep()
  assert.deepEqual(ended, ['short'])
  clock.advance(3_000)
  held.sweep()
  assert.deepEqual(ended, ['short', 'renewed'])
  clock.advance(3_600_000)
  held.sweep()
  assert.deepEqual([ended, held.size], [['short', 'renewed', 'long'], 0])
})

test('values are bounded for each key and in all, and room comes back with each that ends', () => {
  const { clock, held, add } = setUp()
  const ids = ['a', 'b', 'c'].map((value) => add('alice', value, 5_000))
  assert.throws(() => held.requireRoom('alice'), TooManyHeldError)
  held.remove(ids[0] ?? '')
  add('alice', 'd', 5_000)
  for (let i = 0; i < 7; i++) add(`key ${i}`, 'x', 5_000)
  assert.throws(() => held.requireRoom('somewhere else'), TooManyHeldError)
  clock.advance(6_500)
  held.requireRoom('alice')
  assert.equal(held.size, 0)
})

test('an id is used once, and other texts are no ids', () => {
  const { held, add } = setUp()
  const id = add('alice', 'a', 1_000)
  for (const other of ['', '__proto__', id.toUpperCase(), `${id} `]) assert.equal(held.get(other), undefined)
  assert.deepEqual([held.remove(id), held.remove(id)], ['a', undefined])
})

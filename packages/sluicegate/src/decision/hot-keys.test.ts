import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { SpaceSaving } from './hot-keys.js'

test('fewer keys than counters are counted exactly', () => {
  const hot = new SpaceSaving(3)
  for (const key of ['a', 'b', 'a', 'c', 'a', 'b']) hot.add(key)
  assert.deepEqual(hot.top(2), [
    { key: 'a', count: 3, overcount: 0 },
    { key: 'b', count: 2, overcount: 0 },
  ])
})

test('a true count lies between count - overcount and count, and every key above total / size is listed', () => {
  for (let seed = 1; seed <= 50; seed++) {
    const random = new Random(seed)
    const size = random.integer(1, 40)
    const hot = new SpaceSaving(size)
    const truth = new Map<string, number>()
    const total = random.integer(1, 5000)
    for (let i = 0; i < total; i++) {
      const key = `key ${random.magnitude(1, 500)}`
      hot.add(key)
      truth.set(key, (truth.get(key) ?? 0) + 1)
    }
    const top = hot.top(size)
    assert.ok(top.length <= size)
    for (const { key, count, overcount } of top) {
      const exact = truth.get(key) ?? 0
      assert.ok(count - overcount <= exact && exact <= count, `seed ${seed}, ${key}: ${exact} not in ${count - overcount}..${count}`)
    }
    const listed = new Set(top.map(({ key }) => key))
    for (const [key, count] of truth) if (count > total / size) assert.ok(listed.has(key), `seed ${seed}, ${key}: ${count} of ${total}`)
    const counts = top.map(({ count }) => count)
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => b - a),
    )
  }
})

test('memory is fixed, and names of object properties are keys like any other', () => {
  const hot = new SpaceSaving(5)
  for (let i = 0; i < 10_000; i++) hot.add(i % 2 === 0 ? '__proto__' : `key ${i}`)
  assert.equal(hot.top(100).length, 5)
  assert.equal(hot.top(1)[0]?.key, '__proto__')
})

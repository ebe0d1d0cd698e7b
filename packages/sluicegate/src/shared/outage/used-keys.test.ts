import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { UsedKeys } from './outage.js'

test('the oldest make room, whatever was taken out in between', () => {
  const random = new Random(1)
  const used = new UsedKeys(50)
  let model: string[] = []
  for (let i = 0; i < 20_000; i++) {
    const key = `k${random.integer(0, 200)}`
    if (random.chance(0.2)) {
      used.delete(key)
      model = model.filter((each) => each !== key)
    } else if (!model.includes(key)) {
      used.add(key)
      model = [...model, key].slice(-50)
    } else used.add(key)
    if (random.chance(0.001)) {
      used.clear()
      model = []
    }
    if (i % 50 === 0) assert.deepEqual([...used], model)
  }
  assert.equal(used.size, model.length)
})

test('to make room begins no walk over the keys', () => {
  const used = new UsedKeys(100)
  let walks = 0
  const { keys } = used as unknown as { readonly keys: Map<string, string> }
  const begin = keys.keys.bind(keys)
  keys.keys = () => {
    walks++
    return begin()
  }
  for (let i = 0; i < 10_000; i++) used.add(`k${i}`)
  assert.equal(used.size, 100)
  assert.equal(walks, 0)
})

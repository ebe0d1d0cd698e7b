import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Random, seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { BoundedMap } from './bounded-map.js'

test('the oldest is forgotten, whatever is set again, removed and cleared', () => {
  for (const seed of seedsFrom(1, shortOrLong(200, 2_000))) {
    const random = new Random(seed)
    const most = random.integer(1, 8)
    const values = new BoundedMap<string, number>(most)
    let expected: (readonly [string, number])[] = []
    for (let step = 0; step < 200; step++) {
      const key = String(random.integer(0, 12))
      const others = expected.filter(([other]) => other !== key)
      if (random.chance(0.6)) {
        values.set(key, step)
        expected = [...others.slice(Math.max(0, others.length - most + 1)), [key, step]]
      } else if (random.chance(0.95)) {
        assert.equal(values.delete(key), others.length < expected.length)
        expected = others
      } else {
        values.clear()
        expected = []
      }
      assert.deepEqual([...values], expected, `seed ${seed}, step ${step}`)
    }
  }
})

test('the oldest of a hundred thousand is forgotten at once, however many went before it', () => {
  const most = 100_000
  const values = new BoundedMap<number, number>(most)
  const startedMs = performance.now()
  for (let id = 0; id < 3 * most; id++) values.set(id, id)
  const tookMs = performance.now() - startedMs
  assert.deepEqual([values.get(2 * most - 1), values.get(2 * most), values.size], [undefined, 2 * most, most])
  // 50 s for those who begin at the first place each time.
  assert.ok(tookMs < 10_000, `${Math.round(tookMs)} ms`)
})

test('what was removed is kept no longer, however few values there are', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const bytes = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const values = new BoundedMap<string, object>(1_000)
  const before = bytes()
  for (let i = 0; i < 200_000; i++) {
    values.set(`removed ${i}`, { i })
    values.delete(`removed ${i}`)
    values.set('again', { i })
  }
  const kept = bytes() - before
  assert.equal(values.size, 1)
  // 30 MB where an iterator stands still.
  assert.ok(kept < 10e6, `${kept} bytes`)
})

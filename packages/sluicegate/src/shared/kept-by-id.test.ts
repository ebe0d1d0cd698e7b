import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { KeptById } from './kept-by-id.js'

test('what has ended makes room, in whatever order it ends', () => {
  const kept = new KeptById<number>(1_000)
  for (let id = 1; id <= 10_000; id++) kept.set(id, id, id + (id % 2 === 0 ? 10 : 200), id)
  // Two are looked at for each new one, so a round over what is kept takes half as many additions.
  assert.ok(kept.values().length <= 400, `${kept.values().length}`)
  for (let id = 9_995; id <= 10_000; id++) assert.equal(kept.get(id), id)
})

test('beyond the most the oldest is forgotten, and what is prolonged stays', () => {
  const kept = new KeptById<string>(2)
  kept.set(1, 'a', 10, 0)
  kept.set(2, 'b', 10, 0)
  kept.prolong(2, 30)
  kept.set(3, 'c', 30, 20)
  assert.deepEqual([kept.get(1), kept.get(2), kept.get(3)], [undefined, 'b', 'c'])
  kept.set(4, 'd', 30, 20)
  assert.deepEqual(kept.takeLatestFirst(), ['d', 'c'])
  assert.deepEqual(kept.values(), [])
  assert.equal(kept.get('4'), undefined)
})

test('the oldest of a hundred thousand is forgotten at once, however many went before it', () => {
  const most = 100_000
  const kept = new KeptById<number>(most)
  for (let id = 0; id < most; id++) kept.set(id, id, 1, 0)
  const startedMs = performance.now()
  for (let id = most; id < 3 * most; id++) kept.set(id, id, 1, 0)
  const tookMs = performance.now() - startedMs
  assert.deepEqual([kept.get(2 * most - 1), kept.get(2 * most)], [undefined, 2 * most])
  // 50 s for those who begin at the first place each time.
  assert.ok(tookMs < 10_000, `${Math.round(tookMs)} ms`)
})

test('what was removed is kept no longer, of one after another and beside one that stays', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const bytes = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  for (const staying of [0, 1]) {
    const kept = new KeptById<object>(1_000)
    for (let id = 0; id < staying; id++) kept.set(-id, {}, 100, 0)
    const before = bytes()
    for (let id = 1; id < 200_000; id++) {
      kept.set(id, { id }, 1, 0)
      kept.delete(id)
    }
    const more = bytes() - before
    assert.equal(kept.values().length, staying)
    // 30 MB where an iterator stands still.
    assert.ok(more < 10e6, `${more} bytes beside ${staying}`)
  }
})

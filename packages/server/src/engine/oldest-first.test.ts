import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Random, seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { OldestFirst } from './oldest-first.js'

test('the oldest is the first of a map, whatever is set again, removed and cut', () => {
  for (const seed of seedsFrom(1, shortOrLong(200, 2_000))) {
    const random = new Random(seed)
    const values = new OldestFirst<number>()
    const expected = new Map<string, number>()
    for (let step = 0; step < 200; step++) {
      const key = String(random.integer(0, 12))
      if (random.chance(0.5)) {
        values.set(key, step)
        expected.delete(key)
        expected.set(key, step)
      } else if (random.chance(0.8)) assert.equal(values.delete(key), expected.delete(key))
      else {
        const most = random.integer(0, 10)
        values.cutTo(most)
        for (const oldest of [...expected.keys()].slice(0, Math.max(0, expected.size - most))) expected.delete(oldest)
      }
      if (random.chance(0.5)) continue
      const [first] = expected
      assert.deepEqual(values.oldest && [values.oldest.key, values.oldest.value], first, `seed ${seed}, step ${step}`)
      assert.deepEqual([values.size, values.get(key), values.has(key)], [expected.size, expected.get(key), expected.has(key)])
    }
  }
})

test('the oldest of many that come and go is found at once', () => {
  const most = 100_000
  const values = new OldestFirst<number>()
  for (let i = 0; i < most; i++) values.set(String(i), i)
  const startedMs = performance.now()
  for (let i = most; i < 3 * most; i++) {
    values.set(String(i), i)
    values.cutTo(most)
    assert.equal(values.oldest?.value, i - most + 1)
  }
  const tookMs = performance.now() - startedMs
  // 50 s for those who begin at the first place each time.
  assert.ok(tookMs < 10_000, `${Math.round(tookMs)} ms`)
})

test('what was removed is kept by nothing', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const values = new OldestFirst<object>()
  const made: WeakRef<object>[] = []
  for (let i = 0; i < 1_000; i++) {
    const value = { i }
    made.push(new WeakRef(value))
    values.set(String(i), value)
  }
  for (let i = 1; i < 1_000; i++) values.delete(String(i))
  // References are kept until the end of a turn.
  return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    collect()
    assert.ok(made.filter((each) => each.deref() !== undefined).length <= 2)
    assert.equal(values.size, 1)
  })
})

test('keys that come and go take no more memory than those that stay, though nobody asks for the oldest', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const bytes = (): number => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const values = new OldestFirst<object>()
  assert.equal(values.oldest, undefined)
  const before = bytes()
  for (let i = 0; i < 200_000; i++) {
    values.set(String(i), { i })
    values.delete(String(i))
  }
  const kept = bytes() - before
  assert.equal(values.size, 0)
  // 20 MB where an iterator stands still.
  assert.ok(kept < 5e6, `${kept} bytes`)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import type { GivenVerdict } from './gate.js'
import { isVerdictMemory, TICK_MS, VerdictSet, WrittenVerdictSet } from './verdict-set.js'

const VERDICTS: readonly GivenVerdict[] = ['flag', 'throttle', 'block']

test('a set finds the keys that it was given and no other, through any order of coming, changing and going', () => {
  for (let seed = 1; seed <= shortOrLong(30, 150); seed++) {
    const random = new Random(seed)
    const maxKeys = random.integer(1, 300)
    const set = new WrittenVerdictSet(maxKeys, 1_000)
    const keys = Array.from({ length: 2 * maxKeys }, () => ({ low: random.bits() | 0, high: random.bits() | 0 }))
    const given = new Map<number, { verdict: GivenVerdict; untilMs: number }>()
    for (let i = 0; i < 2_000; i++) {
      const at = random.integer(0, keys.length - 1)
      const { low, high } = keys[at] as { low: number; high: number }
      if (random.chance(0.5) && (given.has(at) || given.size < maxKeys)) {
        const untilMs = 1_000 + random.magnitude(1, 30 * 86_400_000)
        const verdict = random.pick(VERDICTS)
        if (set.set(low, high, verdict, untilMs)) given.set(at, { verdict, untilMs })
        else assert.ok(given.size > maxKeys / 2, `seed ${seed}: no place among ${given.size} of ${maxKeys}`)
      } else {
        set.delete(low, high)
        given.delete(at)
      }
      const other = random.integer(0, keys.length - 1)
      const { low: otherLow, high: otherHigh } = keys[other] as { low: number; high: number }
      const expected = given.get(other)
      assert.equal(set.find(otherLow, otherHigh), expected?.verdict ?? 'pass', `seed ${seed}`)
      if (expected !== undefined) assert.ok(set.untilMs >= expected.untilMs && set.untilMs < expected.untilMs + TICK_MS)
      assert.equal(set.isEmpty, given.size === 0)
    }
  }
})

test('as many keys as it was made for find a place', () => {
  const random = new Random(7)
  const set = new WrittenVerdictSet(50_000, 0)
  for (let i = 0; i < 50_000; i++) assert.ok(set.set(random.bits() | 0, random.bits() | 0, 'block', 1_000), `key ${i}`)
})

test('a memory of another form is refused', () => {
  const set = new WrittenVerdictSet(10, 0)
  assert.ok(isVerdictMemory(set.memory))
  assert.ok(!isVerdictMemory(new SharedArrayBuffer(set.memory.byteLength)))
  assert.ok(!isVerdictMemory(new SharedArrayBuffer(3)))
  assert.ok(!isVerdictMemory(new ArrayBuffer(set.memory.byteLength)))
  const words = new Int32Array(set.memory)
  words[1] = 1_024
  assert.ok(!isVerdictMemory(set.memory))
})

test('a look in another view of the memory sees what was written', () => {
  const set = new WrittenVerdictSet(10, 5_000)
  set.set(1, 2, 'throttle', 6_000)
  assert.equal(new VerdictSet(set.memory, 5_000).find(1, 2), 'throttle')
})

test('wherever a look is overtaken by the writer, it returns a verdict that the key had', () => {
  const { load } = Atomics
  try {
    for (let step = 0; step < 40; step++) {
      // One line, so that the second key comes into the place of the first.
      const set = new WrittenVerdictSet(1, 0)
      set.set(1, 2, 'flag', 1_000)
      let loads = 0
      const overtaken = (words: Int32Array, at: number): number => {
        if (loads++ === step) {
          Atomics.load = load
          set.delete(1, 2)
          set.set(1 + (1 << 20), 2 + (1 << 20), 'block', 1_000)
        }
        return load(words, at)
      }
      Atomics.load = overtaken as typeof load
      const verdict = set.find(1, 2)
      Atomics.load = load
      assert.ok(verdict === 'flag' || verdict === 'pass', `step ${step}: ${verdict}`)
    }
  } finally {
    Atomics.load = load
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  allOf,
  attachLimiter,
  concurrency,
  createLimiter,
  type Limiter,
  manualClock,
  type Policy,
  restoreLimiter,
  slidingLog,
  slidingWindow,
} from '../../index.js'
import { high, low } from '../fingerprint.js'
import type { MemoryLimiter } from '../memory-limiter.js'
import type { OpenCore } from '../open-core.js'

const START_MS = 1_789_000_000_000
const KEYS = Array.from({ length: 60 }, (_, i) => `key ${i}`)

/** [before, after, spent, left afterwards] */
const CHANGES: readonly (readonly [Policy, Policy, number, number])[] = [
  [concurrency({ limit: 2, ttl: '1h' }), concurrency({ limit: 3, ttl: '1h' }), 2, 1],
  [slidingLog({ limit: 5, window: '1h' }), slidingLog({ limit: 50, window: '1h' }), 5, 45],
  [slidingWindow({ limit: 6, window: '1h' }), slidingWindow({ limit: 100_000, window: '1h' }), 6, 99_994],
]

for (const [before, after, spent, left] of CHANGES) {
  for (const isSeen of [false, true]) {
    const seen = isSeen ? 'sees the change' : 'does not see the change'
    test(`${after.name}, in force once the copy has begun, by a thread that ${seen} at once: what was spent is spent`, () => {
      const clock = manualClock(START_MS)
      const limiter = createLimiter(before, { clock, maxKeys: KEYS.length })
      const other = attachLimiter(limiter.handle())
      for (const key of KEYS) limiter.take(key, spent === 2 ? 1 : spent)
      if (spent === 2) for (const key of KEYS) limiter.take(key)
      onceSaved(openOf(limiter), () => {
        other.update(after)
        if (isSeen) assert.equal(limiter.policy.name, after.name)
      })
      const restored = restoreLimiter(limiter.snapshot(), { clock })
      assert.equal(restored.policy.name, after.name)
      for (const key of KEYS) assert.equal(restored.peek(key).remaining, left, key)
    })
  }
}

test('all parts of a snapshot are of one policy: a change between two of them begins it anew', () => {
  const clock = manualClock(START_MS)
  const parts = (limit: number): Policy => allOf([slidingLog({ limit, window: '1h' }), concurrency({ limit, ttl: '1h' })])
  const limiter = createLimiter(parts(5), { clock, maxKeys: 10 })
  const other = attachLimiter(limiter.handle())
  for (let i = 0; i < 5; i++) limiter.take('k')
  const [, second] = (limiter as unknown as { parts: readonly MemoryLimiter[] }).parts
  onceSaved(second?.section.open as OpenCore, () => other.update(parts(50)))
  const restored = restoreLimiter(limiter.snapshot(), { clock })
  assert.deepEqual([restored.policy, restored.peek('k').remaining], [limiter.policy, 45])
})

test('a thread that died with its ticket in a permit does not keep a snapshot from being taken', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(concurrency({ limit: 2, ttl: '1h' }), { clock, maxKeys: 2 })
  limiter.take('k')
  const open = openOf(limiter)
  const words = new BigUint64Array(open.memory.buffer)
  const descriptor = open.core.openDescriptor()
  ;(limiter as unknown as MemoryLimiter).hash('k')
  open.core.stage(descriptor, low, high, START_MS * 1000, 1)
  // As far as `commit` of the core comes before it dies: of a state and a permit the second bears the ticket.
  const [status = 0n, , , , , permit = 0n] = words.subarray(descriptor / 8)
  words[Number(permit) / 8] = (3n << 62n) | (BigInt(descriptor / 512) << 39n) | (status >> 2n)
  assert.equal(restoreLimiter(limiter.snapshot(), { clock }).peek('k').remaining, 1)
  assert.equal(limiter.peek('k').remaining, 1)
})

function openOf(limiter: Limiter): OpenCore {
  return (limiter as unknown as MemoryLimiter).section.open
}

/** Does something as soon as the core has saved a part of its table once more. */
function onceSaved(open: OpenCore, something: () => void): void {
  const { saveEntries } = open.core
  open.core.saveEntries = (...range) => {
    open.core.saveEntries = saveEntries
    const isDone = saveEntries(...range)
    something()
    return isDone
  }
}

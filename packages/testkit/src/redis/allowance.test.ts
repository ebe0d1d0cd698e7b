import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SeenTake } from './saturation.js'
import { allowanceOf } from './saturation.js'

const TEN = { limit: 10, windowMs: 1000, burst: 10 } as const

/** Takes every millisecond for 3 s from a bucket, given its refill per millisecond and its burst. */
function takes({
  perMs = 0.01,
  burst = 10,
  pause = [0, 0],
}: {
  perMs?: number
  burst?: number
  pause?: readonly [number, number]
}): SeenTake[] {
  const seen: SeenTake[] = []
  let level = burst
  let lastMs = 0
  for (let ms = 0; ms <= 3000; ms += 1) {
    if (ms > pause[0] && ms < pause[1]) continue
    level = Math.min(burst, level + (ms - lastMs) * perMs)
    lastMs = ms
    const isAllowed = level >= 1 - 1e-9
    if (isAllowed) level--
    seen.push({ beforeUs: ms * 1000 - 100, afterUs: ms * 1000 + 100, isAllowed })
  }
  return seen
}

test('a bucket that keeps its budget is within its bounds, which are a token wide', () => {
  assert.deepEqual(allowanceOf(TEN, [takes({})]), { admitted: 40, least: 39, most: 40 })
})

test('one that gives a token too many, loses fractions, or gives back nothing is not', () => {
  const over = allowanceOf(TEN, [takes({ burst: 11 })])
  assert.ok(over.admitted > over.most)
  for (const faulty of [{ burst: 8 }, { perMs: 0.0096 }, { perMs: 0 }]) {
    const { admitted, least } = allowanceOf(TEN, [takes(faulty)])
    assert.ok(admitted < least, `${admitted} of ${least}`)
  }
})

test('callers who pause for longer than it takes to fill the bucket lose what did not fit, and no more', () => {
  assert.deepEqual(allowanceOf(TEN, [takes({ pause: [1000, 2500] })]), { admitted: 35, least: 34, most: 40 })
})

test('a leased bucket is smaller by a lease, and a process that sleeps over one may lose what it held', () => {
  assert.deepEqual(allowanceOf(TEN, [takes({ burst: 9 })], 100), { admitted: 39, least: 38, most: 40 })
  assert.equal(allowanceOf(TEN, [takes({ burst: 9, pause: [1005, 1085] })], 100).least, 36)
})

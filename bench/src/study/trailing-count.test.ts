import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from '../../../packages/testkit/dist/random.js'
import { TrailingCount } from './trailing-count.js'

test('a source has in the window that ends now what a plain search finds there', () => {
  const random = new Random(3)
  let nowUs = 0
  const times = Array.from({ length: 3000 }, () => {
    nowUs += random.integer(0, 400)
    return nowUs
  })
  const traffic = { timesUs: Float64Array.from(times), asking: Uint32Array.from(times, () => random.integer(0, 4)), sources: 5 }
  const count = new TrailingCount(traffic, 10)
  const counted: number[] = []
  for (const [nth, us] of times.entries()) {
    const same = counted.filter((other) => traffic.asking[other] === traffic.asking[nth] && (times[other] as number) + 10_000 > us)
    assert.equal(count.before(nth), same.length, `request ${nth}`)
    if (random.chance(0.7)) {
      count.add(nth)
      counted.push(nth)
    }
  }
})

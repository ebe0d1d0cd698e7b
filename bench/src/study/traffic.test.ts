import assert from 'node:assert/strict'
import { test } from 'node:test'
import { day, frontLoaded, poisson } from './traffic.js'

const DAY = { seed: 1, requests: 50_000, sources: 1000, floodShare: 0.4 }

test('a day is the same from the same seed, in the order of time, and within a day', () => {
  const { timesUs, asking } = day(DAY)
  assert.deepEqual(day(DAY), { timesUs, asking, sources: 1000 })
  assert.notDeepEqual(day({ ...DAY, seed: 2 }).timesUs, timesUs)
  assert.deepEqual(timesUs.toSorted(), timesUs)
  assert.ok((timesUs.at(-1) as number) - (timesUs[0] as number) < 86_400_000_000)
  assert.equal(asking.length, 50_000)
})

test('the busiest hour of a day has about four times the requests of the quietest', () => {
  const { timesUs } = day({ ...DAY, requests: 400_000, floodShare: 0 })
  const hours = new Array<number>(24).fill(0)
  for (const us of timesUs) hours[Math.floor(us / 3_600_000_000) % 24] = (hours[Math.floor(us / 3_600_000_000) % 24] as number) + 1
  const ratio = Math.max(...hours) / Math.min(...hours)
  assert.ok(ratio > 3.5 && ratio < 4.5, `${ratio}`)
})

test('a flood is one source that asks faster than all others together', () => {
  const { asking } = day({ ...DAY, sources: 1000, floodShare: 0.2 })
  const bySource = new Array<number>(1000).fill(0)
  for (const source of asking) bySource[source] = (bySource[source] as number) + 1
  assert.equal(bySource.filter((count) => count >= 10_000).length, 1)
})

test('what is front-loaded comes in the first tenth of each window, as often as asked', () => {
  const { timesUs } = frontLoaded(1, 700, 70, 1000)
  assert.ok(timesUs.every((us) => us % 1_000_000 <= 100_000))
  assert.equal(timesUs.filter((us) => us < (timesUs[0] as number) + 500_000).length, 70)
})

test('random requests come at the rate asked, now close together, now far apart', () => {
  const { timesUs } = poisson(1, 20_000, 50, 1000)
  const gapsMs = Array.from(timesUs.subarray(1), (us, i) => (us - (timesUs[i] as number)) / 1000)
  const mean = gapsMs.reduce((sum, gap) => sum + gap, 0) / gapsMs.length
  const deviation = Math.sqrt(gapsMs.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gapsMs.length)
  assert.ok(Math.abs(mean - 20) < 1 && Math.abs(deviation - 20) < 1, `${mean} +- ${deviation}`)
})

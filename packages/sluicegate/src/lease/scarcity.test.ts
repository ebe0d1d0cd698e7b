import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { Scarcity } from './refill-pause.js'

const LEASE_US = 100_000

test('the first request in vain is followed by no pause, the next ones by longer and longer pauses', () => {
  const scarcity = new Scarcity(LEASE_US, () => 0.5)
  const pauses = Array.from({ length: 10 }, () => scarcity.pauseUs(0, 1) / LEASE_US)
  assert.deepEqual(pauses, [0, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 1, 1, 1, 1])
})

test('after what was wanted came there is no pause, and the next one is shorter', () => {
  const scarcity = new Scarcity(LEASE_US, () => 0.5)
  for (let i = 0; i < 10; i++) scarcity.pauseUs(0, 1)
  assert.equal(scarcity.pauseUs(1, 1), 0)
  assert.equal(scarcity.pauseUs(0, 1), LEASE_US)
})

test('processes that share a budget make about two requests for each token, and come to equal shares, from any beginning', () => {
  const random = new Random(1)
  const processes = Array.from({ length: 16 }, (_, i) => {
    const scarcity = new Scarcity(LEASE_US, () => random.fraction())
    for (let vain = 0; vain < i; vain++) scarcity.pauseUs(0, 1)
    return { scarcity, atUs: 0, got: 0 }
  })
  let [tokens, calls, passed] = [0, 0, 0]
  for (let us = 0; us < 60_000_000; us += 1_000) {
    // 100 tokens a second; each process would spend 60.
    if (us % 10_000 === 0) tokens = Math.min(tokens + 1, 20)
    for (const each of processes) {
      if (us < each.atUs || !random.chance(0.06)) continue
      calls++
      const granted = tokens > 0 ? 1 : 0
      tokens -= granted
      passed += granted
      each.got += granted
      each.atUs = us + each.scarcity.pauseUs(granted, 1)
    }
  }
  const jain = passed ** 2 / (processes.length * processes.reduce((sum, { got }) => sum + got * got, 0))
  assert.ok(passed >= 5_990 && calls <= 2.5 * passed, `${calls} calls for ${passed} of 6,000 tokens`)
  assert.ok(jain > 0.95, `${jain}`)
})

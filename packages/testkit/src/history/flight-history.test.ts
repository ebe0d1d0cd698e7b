import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConcurrencyOracle } from '../oracle/concurrency-oracle.js'
import { Random } from '../random.js'
import { type Flight, firstCrowding } from './flight-history.js'

test('as many in flight as the limit are no crowd, one more at any moment is', () => {
  const flights = [
    { fromUs: 0, untilUs: 100, cost: 2 },
    { fromUs: 50, untilUs: 200, cost: 1 },
    { fromUs: 100, untilUs: 150, cost: 2 },
  ]
  assert.equal(firstCrowding(3, flights), undefined)
  assert.deepEqual(firstCrowding(2, flights), { atUs: 50, inFlight: 3 })
  assert.deepEqual(firstCrowding(3, [...flights, { fromUs: 149, untilUs: 150, cost: 1 }]), { atUs: 149, inFlight: 4 })
})

test('the oracle of concurrency never has more in flight than its limit', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new Random(seed)
    const limit = random.integer(1, 5)
    const oracle = new ConcurrencyOracle({ algorithm: 'concurrency', limit, windowMs: 1 })
    const flights: (Flight & { permit: bigint })[] = []
    let nowUs = 0
    for (let i = 0; i < 60; i++) {
      nowUs += random.integer(0, 400)
      const cost = random.integer(1, limit)
      const { permit } = oracle.take('k', cost, nowUs / 1000)
      if (permit !== undefined) flights.push({ fromUs: nowUs, untilUs: nowUs + 1000, cost, permit })
      const some = random.integer(0, flights.length)
      const held = flights[some]
      if (held !== undefined && oracle.release('k', held.permit, nowUs / 1000)) flights[some] = { ...held, untilUs: nowUs }
    }
    assert.ok(flights.length > 10)
    assert.equal(firstCrowding(limit, flights), undefined, `seed ${seed}`)
  }
})

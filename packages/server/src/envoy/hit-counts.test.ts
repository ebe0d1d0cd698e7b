import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HitCounts, OTHER } from './hit-counts.js'

test('names with values of requests are bounded in number, and never crowd out those of rules', () => {
  const hits = new HitCounts()
  for (let i = 0; i < 20_000; i++) hits.count(`edge.user_${i}`, 'allowed', 1, true)
  hits.count('edge.rule', 'denied', 2, false)
  const names = new Map(hits.entries())
  assert.equal(names.size, 2_002)
  assert.equal(names.get(OTHER)?.allowed, 18_000)
  assert.equal(names.get('edge.rule')?.denied, 2)
})

test('a long value is cut, and halves of characters count as one name', () => {
  const hits = new HitCounts()
  for (const end of ['a', 'b']) hits.count(`edge.user_${'x'.repeat(2_000)}${end}`, 'allowed', 1, true)
  for (const half of ['\ud800', '\ud801']) hits.count(`edge.user_${half}`, 'allowed', 1, true)
  const names = Array.from(hits.entries(), ([name, { allowed }]) => [name.length, allowed])
  assert.deepEqual(names, [
    [201, 2],
    [11, 2],
  ])
})

test('a name that is both of a rule and of values is one series', () => {
  const hits = new HitCounts()
  hits.count('edge.user_a', 'allowed', 1, true)
  hits.count('edge.user_a', 'denied', 2, false)
  assert.deepEqual([...hits.entries()], [['edge.user_a', { allowed: 1, denied: 2, over_quota: 0, shadowed: 0, refunded: 0 }]])
})

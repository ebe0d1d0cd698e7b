import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letThroughStudy } from './let-through.js'

test('of the same requests each policy lets through what its bound says', () => {
  const { limit, askedMs, policies } = letThroughStudy()
  const most = Object.fromEntries(policies.map(({ name, mostInAnyWindow }) => [name, mostInAnyWindow]))
  assert.equal(most['sliding log'], limit)
  assert.equal(most['gcra, burst 1'], limit)
  assert.equal(most['fixed window'], 2 * limit)
  assert.ok((most['sliding window'] as number) > limit && (most['sliding window'] as number) < 2 * limit)
  assert.ok((most['token bucket'] as number) > limit && (most['token bucket'] as number) <= 2 * limit)
  for (const { admittedMs } of policies) assert.ok(admittedMs.every((ms) => askedMs.includes(ms)))
})

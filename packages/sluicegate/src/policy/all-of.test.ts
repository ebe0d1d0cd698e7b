import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeaderWriter } from '../headers/header-writer.js'
import { readRateLimit } from '../headers/read-rate-limit.js'
import { createLimiter, manualClock, type Policy } from '../index.js'
import { allOf } from './all-of.js'
import { checkedPolicy } from './checked-policy.js'
import { fixedWindow, tokenBucket } from './single-policy.js'

function namesOf(...names: string[]): string[] {
  return allOf(names.map((name) => tokenBucket({ limit: 10, window: '1m', name }))).policies.map(({ name }) => name)
}

test('of several parts of one name the second and later ones are numbered', () => {
  assert.deepEqual(namesOf('a', 'b'), ['a', 'b'])
  assert.deepEqual(namesOf('a', 'b', 'a', 'a'), ['a', 'b', 'a 2', 'a 3'])
  assert.deepEqual(namesOf('a', 'a', 'a 2'), ['a', 'a 3', 'a 2'])
  assert.deepEqual(namesOf('a 2', 'a', 'a', 'a 2'), ['a 2', 'a', 'a 3', 'a 2 2'])
})

test('the longest names are distinguished as well, and stay valid names', () => {
  const [first, second = '', third = ''] = namesOf('x'.repeat(120), 'x'.repeat(120), 'x'.repeat(120))
  assert.deepEqual([first, second, third], ['x'.repeat(120), `${'x'.repeat(118)} 2`, `${'x'.repeat(118)} 3`])
})

test('made anew, and cloned, a policy keeps the names of its parts', () => {
  const part = tokenBucket({ limit: 10, window: '1m' })
  const policy = allOf([part, part, fixedWindow({ limit: 10, window: '1m', name: part.name })])
  assert.equal(policy.policies[0].name, 'token-bucket-10-1m')
  assert.ok(policy.policies.every(Object.isFrozen))
  assert.deepEqual(allOf(policy.policies), policy)
  assert.deepEqual(checkedPolicy(structuredClone(policy)), policy)
})

test('reports about parts of the same name can be distinguished', () => {
  const policy: Policy = allOf([tokenBucket({ limit: 10, window: '1m' }), tokenBucket({ limit: 10, window: '1m', burst: 3 })])
  using limiter = createLimiter(policy, { clock: manualClock() })
  const decision = limiter.take('ada')
  assert.deepEqual(
    decision.parts?.map((part) => part.policy),
    ['token-bucket-10-1m', 'token-bucket-10-1m 2'],
  )
  const { policies, ...binding } = readRateLimit(Object.fromEntries(new HeaderWriter().write(limiter.policy, decision)))
  assert.deepEqual(binding, { limit: 3, remaining: 2, resetAfterMs: 12_000 })
  assert.deepEqual(
    policies?.map(({ name, limit, remaining }) => [name, limit, remaining]),
    [
      ['token-bucket-10-1m', 10, 9],
      ['token-bucket-10-1m 2', 3, 2],
    ],
  )
})

test('an update may give parts one name, too', () => {
  const named = (limit: number, name: string): Policy => tokenBucket({ limit, window: '1m', name })
  using limiter = createLimiter(allOf([named(10, 'a'), named(5, 'b')]), { clock: manualClock() })
  limiter.update(allOf([named(10, 'c'), named(5, 'c')]))
  assert.deepEqual(
    limiter.take('ada').parts?.map(({ policy }) => policy),
    ['c', 'c 2'],
  )
  assert.deepEqual(
    limiter.policy.policies?.map(({ name }) => name),
    ['c', 'c 2'],
  )
})

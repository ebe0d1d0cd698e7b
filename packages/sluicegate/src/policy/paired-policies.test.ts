import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from '../create-limiter.js'
import { allOf, carryKey, fixedWindow, manualClock, type Policy } from '../index.js'
import { policyAfter } from '../shared/policy-in-force.js'
import { pairedPolicies } from './paired-policies.js'

const week = (timeZone: string, name?: string): Policy => fixedWindow({ limit: 20, window: 'week', timeZone, ...(name && { name }) })
const month = fixedWindow({ limit: 20, window: 'month', timeZone: 'UTC' })
const partsOf = (...policies: Policy[]): readonly Policy[] => allOf(policies).policies
const [UTC, ROME, PARIS] = ['UTC', 'Europe/Rome', 'Europe/Paris'].map((zone) => week(zone)) as [Policy, Policy, Policy]
const BEFORE = partsOf(UTC, ROME)

test('policies that share a name which nobody gave are known by their numbers, and then by their order', () => {
  const cases: [next: Policy[], pairs: (number | undefined)[]][] = [
    [
      [month, ROME],
      [0, 1],
    ],
    [
      [ROME, month],
      [1, 0],
    ],
    [
      [ROME, UTC],
      [1, 0],
    ],
    [
      [month, PARIS],
      [0, 1],
    ],
    [
      [PARIS, month],
      [0, 1],
    ],
    [
      [PARIS, UTC],
      [1, 0],
    ],
  ]
  for (const [next, pairs] of cases) {
    assert.deepEqual(pairedPolicies(BEFORE, partsOf(...next), true), pairs)
    const names = policyAfter(allOf([UTC, ROME]), allOf(next)).policies?.map(({ name }) => name)
    assert.deepEqual(
      names,
      pairs.map((at) => BEFORE[at as number]?.name),
      'a store has the same pairs',
    )
  }
  assert.deepEqual(pairedPolicies(partsOf(UTC, UTC), partsOf(month, UTC), true), [0, 1])
})

test('a given name decides, whatever the numbers', () => {
  const [a, b] = [week('UTC', 'a'), week('Europe/Rome', 'b')] as const
  assert.deepEqual(pairedPolicies([a, b], [week('UTC', 'b'), week('Europe/Rome', 'a')], true), [1, 0])
  assert.deepEqual(pairedPolicies([a, b], [b, week('UTC', 'c')], true), [1, 0])
  assert.deepEqual(pairedPolicies([a, b], [b, week('UTC', 'c')]), [1, undefined])
})

test('what one policy has spent never counts under another that is there as before', () => {
  const setUp = () => {
    const limiter = createLimiter(allOf([UTC, ROME]), { clock: manualClock(1_789_000_000_000) })
    limiter.take(['a', 'b'], 5)
    limiter.take(['c', 'b'], 1)
    return limiter
  }
  const leftOf = (limiter: ReturnType<typeof setUp>, key: string[]) => limiter.peek(key).parts?.map(({ remaining }) => remaining)
  const updated = setUp()
  updated.update(allOf([month, ROME]))
  assert.deepEqual(leftOf(updated, ['a', 'b']), [15, 14])
  updated.update(allOf([ROME, month]))
  assert.deepEqual(leftOf(updated, ['b', 'a']), [14, 15])
  const carried = createLimiter(allOf([ROME, month]), { clock: manualClock(1_789_000_000_000) })
  carryKey([setUp()], carried, 'a')
  assert.deepEqual(leftOf(carried, ['a', 'a']), [20, 15])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Decision, manualClock, tokenBucket } from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { TierData } from 'sluicegate-config/tiers/tier-data.js'
import { NO_DATA, Tiers } from 'sluicegate-config/tiers/tiers.js'
import { Engine, type ServedPolicy } from './engine.js'
import { MovedKeys } from './moved-keys.js'

const KEYS = 2_000

/** Tiers of a data file in which all keys have this one. */
function tiersOf(tier: string): Tiers {
  const fileData = new TierData()
  for (let i = 0; i < KEYS; i++)
    fileData.add(`k${i}`, { tier, limit: undefined, window: undefined, burst: undefined, line: 1, column: 1, path: '' })
  const named = new Map(['small', 'large'].map((name, i) => [name, tokenBucket({ name: 'tenant', limit: 100 + 100 * i, window: '1m' })]))
  return new Tiers({
    base: tokenBucket({ name: 'tenant', limit: 50, window: '1m' }),
    named,
    keys: NO_DATA,
    keysFile: '',
    file: 'f',
    fileData,
  })
}

function configOf(tiers: Tiers): PolicyConfig {
  return { policy: tiers.parts.base, maxKeys: 100, onFull: 'evict', tiers }
}

test('all keys of a file move in steps of a few, and keep what they spend before, meanwhile and after', () => {
  const [small, large] = [tiersOf('small'), tiersOf('large')]
  const engine = new Engine([configOf(small)], { clock: manualClock(0) })
  const left = (key: string, cost: number) => ((engine.policy('tenant') as ServedPolicy).take(key, cost) as Decision).remaining
  assert.equal(left('k7', 4), 96)
  assert.equal(left(`k${KEYS - 1}`, 4), 96)
  for (const [tiers, limit] of [
    [large, 200],
    [small, 100],
    [large, 200],
  ] as const) {
    const preparing = engine.preparing([configOf(tiers)])
    let steps = 0
    let step = preparing.next()
    for (; !step.done; step = preparing.next()) {
      // Before and after the change has looked at them.
      if (++steps === 3 || steps === 60) for (const key of ['k7', 'k8', `k${KEYS - 1}`]) left(key, 1)
    }
    assert.ok(steps > KEYS / 16, String(steps))
    step.value()
    assert.ok(left('k7', 1) < limit)
  }
  // 4 at first, then 3 in each of three changes.
  assert.equal(left('k7', 1), 200 - 4 - 9 - 1)
  assert.equal(left(`k${KEYS - 1}`, 1), 200 - 4 - 6 - 1)
  assert.equal(left('k8', 1), 200 - 6 - 1)
})

test('a change that is dropped leaves nothing that is not true', () => {
  const [small, large] = [tiersOf('small'), tiersOf('large')]
  const engine = new Engine([configOf(small)], { clock: manualClock(0) })
  const left = (key: string, cost: number) => ((engine.policy('tenant') as ServedPolicy).take(key, cost) as Decision).remaining
  left('k7', 4)
  const ended = (tiers: Tiers) => {
    const preparing = engine.preparing([configOf(tiers)])
    for (;;) {
      const { done, value } = preparing.next()
      if (done) return value
    }
  }
  ended(large).discard()
  assert.equal(left('k7', 1), 95)
  ended(large)()
  assert.equal(left('k7', 1), 194)
})

test('keys of data that is the same before and after are not looked at', () => {
  const tiers = tiersOf('small')
  const others = new Tiers({ ...tiers.parts })
  assert.equal(Array.from(new MovedKeys().noting(tiers, others)).length, 0)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, type Limiter, manualClock, type Policy, tokenBucket } from './index.js'
import { type LayerOptions, layered, restoredLayers } from './limiter-layers.js'
import { tieredSnapshot, untieredSnapshot } from './tiered-snapshot.js'

const TEN = tokenBucket({ limit: 10, window: '1s', name: 'ten' })
const PRO = tokenBucket({ limit: 100, window: '1s', name: 'pro' })
const plans: Readonly<Record<string, Policy>> = { pro: PRO, ten: TEN }
const policyFor = (key: string): Policy | undefined => plans[key]

/** A limiter whose snapshot says what its key `k` or `pro` owes: the least that can be brought back. */
function make(policy: Policy, debt = 0): Limiter {
  const limiter = createLimiter(policy, { clock: manualClock(), maxKeys: 10 })
  if (debt > 0) limiter.penalize(keyOf(policy), debt)
  const snapshot = (): Uint8Array =>
    new TextEncoder().encode(JSON.stringify([policy.name, policy.burst - limiter.peek(keyOf(policy)).remaining]))
  return Object.assign(limiter, { snapshot })
}

function keyOf({ name }: Policy): string {
  return name === 'pro' ? 'pro' : 'k'
}

function restore(bytes: Uint8Array): Limiter {
  const [name, debt] = JSON.parse(new TextDecoder().decode(bytes)) as [string, number]
  return make(plans[name] as Policy, debt)
}

function snapshotOf(options: LayerOptions): Uint8Array {
  const limiter = layered(TEN, make, { policyFor, ...options })
  limiter.take('pro', 33)
  limiter.take('k', 7)
  return limiter.snapshot()
}

for (const options of [{}, { policies: [PRO, TEN] }, { shadow: true, allow: ['friend'] }]) {
  test(`a snapshot of several policies brings each of them back, with the options [${Object.keys(options)}]`, () => {
    const restored = restoredLayers(snapshotOf(options), restore, make, { policyFor, ...options })
    assert.deepEqual([restored.peek('pro').remaining, restored.peek('k').remaining], [67, 3])
    assert.deepEqual([restored.policy, restored.stats().keys], [TEN, 2])
  })
}

test('restored with other policies, those in common keep what they counted', () => {
  const fresh = tokenBucket({ limit: 1000, window: '1s', name: 'fresh' })
  const options: LayerOptions = { policies: [fresh], policyFor: (key) => (key === 'fresh' ? fresh : undefined) }
  const restored = restoredLayers(snapshotOf({}), restore, make, options)
  assert.deepEqual([restored.peek('fresh').remaining, restored.peek('k').remaining, restored.stats().keys], [1000, 3, 1])
})

test('a snapshot of a plain limiter is restored with and without layers', () => {
  const bytes = make(TEN, 4).snapshot()
  assert.equal(restoredLayers(bytes, restore, make, {}).peek('k').remaining, 6)
  const tiered = restoredLayers(bytes, restore, make, { policyFor })
  assert.deepEqual([tiered.peek('k').remaining, tiered.peek('pro').remaining], [6, 100])
})

test('an own policy that was updated to what another one says is still apart from it', () => {
  const tiers = [{ policy: PRO, counted: make(PRO, 33).snapshot() }]
  for (const policies of [{}, { policies: [PRO] }]) {
    const bytes = tieredSnapshot({ own: make(PRO, 5).snapshot(), ownAs: [TEN], tiers })
    const restored = restoredLayers(bytes, restore, make, { policyFor, ...policies })
    assert.deepEqual([restored.policy, restored.peek('pro').remaining, restored.peek('ten').policy], [PRO, 67, 'pro'])
  }
})

test('a snapshot of several policies is not restored without policyFor', () => {
  assert.throws(() => restoredLayers(snapshotOf({}), restore, make, {}), { code: 'OPTION_INVALID', option: 'policyFor' })
})

test('a snapshot is taken apart at any offset into its buffer, and its pieces are views', () => {
  const parts = { own: Uint8Array.of(1, 2, 3), ownAs: [TEN], tiers: [{ policy: PRO, counted: new Uint8Array() }] }
  const bytes = tieredSnapshot(parts)
  const buffer = new Uint8Array(bytes.length + 3)
  buffer.set(bytes, 3)
  const apart = untieredSnapshot(buffer.subarray(3))
  assert.deepEqual(apart, parts)
  assert.equal(apart.own.buffer, buffer.buffer)
})

test('a snapshot that was cut, lengthened or spoilt is refused', () => {
  const bytes = snapshotOf({})
  for (let length = 8; length < bytes.length; length++) {
    assert.throws(() => untieredSnapshot(bytes.subarray(0, length)), { name: 'PolicyError', option: 'snapshot' }, String(length))
  }
  assert.throws(() => untieredSnapshot(Uint8Array.of(...bytes, ...new Uint8Array(8))), { code: 'SNAPSHOT_INVALID', option: 'snapshot' })
  const spoilt = bytes.slice()
  spoilt.set(new TextEncoder().encode('null'), 16)
  assert.throws(() => untieredSnapshot(spoilt), { name: 'PolicyError', option: 'snapshot' })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, type Limiter, manualClock, type Policy, tokenBucket } from '../index.js'
import { encodedSnapshot, type Snapshot } from '../memory/snapshot/snapshot.js'
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
  const snapshot = (): Uint8Array => encodedSnapshot({ name: policy.name, debt: policy.burst - limiter.peek(keyOf(policy)).remaining }, [])
  return Object.assign(limiter, { snapshot })
}

function fresh(policy: Policy): Limiter {
  return make(policy)
}

function keyOf({ name }: Policy): string {
  return name === 'pro' ? 'pro' : 'k'
}

function restore({ description }: Snapshot): Limiter {
  return make(plans[description.name as string] as Policy, description.debt as number)
}

function snapshotOf(options: LayerOptions): Uint8Array {
  const limiter = layered(TEN, make, { policyFor, ...options })
  limiter.take('pro', 33)
  limiter.take('k', 7)
  return limiter.snapshot()
}

for (const options of [{}, { policies: [PRO, TEN] }, { shadow: true, allow: ['friend'] }]) {
  test(`a snapshot of several policies brings each of them back, with the options [${Object.keys(options)}]`, () => {
    const restored = restoredLayers(snapshotOf(options), restore, fresh, { policyFor, ...options })
    assert.deepEqual([restored.peek('pro').remaining, restored.peek('k').remaining], [67, 3])
    assert.deepEqual([restored.policy, restored.stats().keys], [TEN, 2])
  })
}

test('restored with other policies, those in common keep what they counted', () => {
  const another = tokenBucket({ limit: 1000, window: '1s', name: 'another' })
  const options: LayerOptions = { policies: [another], policyFor: (key) => (key === 'another' ? another : undefined) }
  const restored = restoredLayers(snapshotOf({}), restore, fresh, options)
  assert.deepEqual([restored.peek('another').remaining, restored.peek('k').remaining, restored.stats().keys], [1000, 3, 1])
})

test('a snapshot of a plain limiter is restored with and without layers', () => {
  const bytes = make(TEN, 4).snapshot()
  assert.equal(restoredLayers(bytes, restore, fresh, {}).peek('k').remaining, 6)
  const tiered = restoredLayers(bytes, restore, fresh, { policyFor })
  assert.deepEqual([tiered.peek('k').remaining, tiered.peek('pro').remaining], [6, 100])
})

test('an own policy that was updated to what another one says is still apart from it', () => {
  const tiers = [{ policy: PRO, counted: make(PRO, 33).snapshot() }]
  for (const policies of [{}, { policies: [PRO] }]) {
    const bytes = tieredSnapshot({ own: make(PRO, 5).snapshot(), ownAs: [TEN], tiers })
    const restored = restoredLayers(bytes, restore, fresh, { policyFor, ...policies })
    assert.deepEqual([restored.policy, restored.peek('pro').remaining, restored.peek('ten').policy], [PRO, 67, 'pro'])
  }
})

test('a snapshot of several policies is not restored without policyFor', () => {
  assert.throws(() => restoredLayers(snapshotOf({}), restore, fresh, {}), { code: 'OPTION_INVALID', option: 'policyFor' })
})

test('a snapshot is taken apart at any offset into its buffer, and its pieces are views', () => {
  const counted = [Uint8Array.of(1, 2, 3), new Uint8Array()].map((contents, i) => encodedSnapshot({ i }, [contents])) as [
    Uint8Array,
    Uint8Array,
  ]
  const bytes = tieredSnapshot({ own: counted[0], ownAs: [TEN], tiers: [{ policy: PRO, counted: counted[1] }] })
  const buffer = new Uint8Array(bytes.length + 3)
  buffer.set(bytes, 3)
  const { own, ownAs, tiers } = untieredSnapshot(buffer.subarray(3))
  const read = ({ description, contents }: Snapshot): unknown => [{ ...description }, contents]
  assert.deepEqual([read(own), ownAs], [[{ i: 0 }, Uint8Array.of(1, 2, 3)], [TEN]])
  assert.deepEqual(
    tiers.map(({ policy, counted }) => [policy, read(counted)]),
    [[PRO, [{ i: 1 }, new Uint8Array()]]],
  )
  assert.equal(own.contents.buffer, buffer.buffer)
})

const REFUSED = { name: 'PolicyError', code: 'SNAPSHOT_INVALID', option: 'snapshot' }

test('a snapshot that was cut or lengthened anywhere, or of which any byte is another one, is refused', () => {
  const bytes = snapshotOf({})
  for (let at = 0; at < bytes.length; at++) {
    assert.throws(() => untieredSnapshot(bytes.subarray(0, at)), REFUSED, `${at} bytes`)
    const spoilt = bytes.slice()
    spoilt[at] = (spoilt[at] as number) ^ (1 << (at % 8))
    assert.throws(() => untieredSnapshot(spoilt), REFUSED, `byte ${at}`)
  }
  assert.throws(() => untieredSnapshot(Uint8Array.of(...bytes, ...new Uint8Array(8))), REFUSED)
})

test('a snapshot whose checksum fits, but which says of tiers what is not so, is refused', () => {
  const own = make(TEN, 1).snapshot()
  const right = { ownAs: [TEN], tiers: [PRO], lengths: [own.length, own.length] }
  assert.equal(untieredSnapshot(encodedSnapshot(right, [own, own])).tiers.length, 1)
  const wrongs: readonly object[] = [
    { tiers: null },
    { tiers: [{ ...PRO, limit: 0 }] },
    { tiers: [] },
    { ownAs: 'ten' },
    { lengths: [own.length] },
    { lengths: undefined },
    { lengths: [2 * own.length, 0] },
    { lengths: [-1, 2 * own.length + 1] },
    { lengths: [0.5, 2 * own.length - 0.5] },
  ]
  for (const wrong of wrongs)
    assert.throws(() => untieredSnapshot(encodedSnapshot({ ...right, ...wrong }, [own, own])), REFUSED, JSON.stringify(wrong))
})

test('a snapshot whose parts are of other policies than it names, or more than there may be, is refused', () => {
  const own = make(TEN).snapshot()
  const tier = { policy: PRO, counted: own }
  const refused = { name: 'PolicyError', code: 'SNAPSHOT_INVALID' }
  const other = tieredSnapshot({ own, ownAs: [TEN], tiers: [tier] })
  assert.throws(() => restoredLayers(other, restore, fresh, { policyFor }), refused)
  const otherOverride = tieredSnapshot({ own, ownAs: [TEN], tiers: [], overridden: [tier] })
  assert.throws(() => restoredLayers(otherOverride, restore, fresh, { overrides: true }), refused)
  const tiers = Array.from({ length: 1001 }, (_, i) => ({ policy: tokenBucket({ limit: 1 + i, window: '1s' }), counted: own }))
  assert.throws(() => untieredSnapshot(tieredSnapshot({ own, ownAs: [TEN], tiers })), refused)
  assert.throws(() => untieredSnapshot(tieredSnapshot({ own, ownAs: [TEN], tiers: [], overridden: tiers })), refused)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  allOf,
  attachLimiter,
  concurrency,
  createLimiter,
  fixedWindow,
  type LimiterHandle,
  manualClock,
  slidingLog,
  tokenBucket,
} from '../index.js'

interface SharedMemory {
  readonly buffer: SharedArrayBuffer
}

const POLICY = tokenBucket({ limit: 10, window: '1s' })
/** Neither es2023 nor Node's types declare it. */
const { Memory } = (globalThis as unknown as { readonly WebAssembly: { readonly Memory: new (limits: object) => SharedMemory } })
  .WebAssembly
const REFUSED = { name: 'PolicyError', code: 'HANDLE_INVALID', option: 'handle' }

function shared(pages: number): SharedMemory {
  return new Memory({ initial: pages, maximum: 65_536, shared: true })
}

function scribbled(byte: number): SharedMemory {
  const memory = shared(64)
  new Uint8Array(memory.buffer).fill(byte)
  return memory
}

const GARBAGE: readonly unknown[] = [null, undefined, 5, -1, 'garbage', [], {}, Number.NaN, [1, 2, 3], ['a', 'b'], 10n, () => 0]

const MEMORIES: readonly (readonly [string, () => unknown])[] = [
  ['foreign, and empty', () => shared(64)],
  ['foreign, and too small', () => shared(1)],
  ['foreign, of no bytes', () => shared(0)],
  ['foreign, and full of ones', () => scribbled(1)],
  ['foreign, and full of 255', () => scribbled(255)],
  ['not shared', () => new Memory({ initial: 64 })],
  ['no memory of WebAssembly', () => new SharedArrayBuffer(1_000_000)],
]

for (const policy of [POLICY, slidingLog({ limit: 5, window: '1s' }), concurrency({ limit: 3 })]) {
  const handle = createLimiter(policy, { maxKeys: 10 }).handle()

  test(`${policy.name}: a handle with another memory is refused`, () => {
    for (const [what, memory] of MEMORIES) {
      assert.throws(() => attachLimiter({ ...handle, memory: memory() } as LimiterHandle), REFUSED, what)
    }
  })

  test(`${policy.name}: a handle with any part damaged or missing is refused`, () => {
    for (const part of Object.keys(handle)) {
      for (const wrong of GARBAGE) {
        assert.throws(() => attachLimiter({ ...handle, [part]: wrong } as LimiterHandle), REFUSED, `${part}: ${String(wrong)}`)
      }
    }
    for (const section of [512, 511, 2 ** 31, 2 ** 53, 0.5]) {
      assert.throws(() => attachLimiter({ ...handle, section } as LimiterHandle), REFUSED, `section ${section}`)
    }
    assert.throws(() => attachLimiter({ ...handle, algorithm: 'fixed-window' } as LimiterHandle), REFUSED)
    assert.throws(() => attachLimiter({ ...handle, secret: [1] } as LimiterHandle), REFUSED)
    assert.throws(() => attachLimiter({ ...handle, secret: Array(2) } as LimiterHandle), REFUSED)
    assert.throws(() => attachLimiter(JSON.parse(JSON.stringify(handle))), REFUSED)
  })
}

test('a handle with a damaged clock is refused', () => {
  const handle = createLimiter(POLICY, { maxKeys: 10 }).handle()
  for (const clock of [
    {},
    { kind: 'sundial' },
    { kind: 'precise' },
    { kind: 'precise', unixMs: 'now', monotonicMs: 0 },
    { kind: 'coarse', unixMs: 0, monotonicMs: Number.NaN },
    { kind: 'precise', unixMs: 1e300, monotonicMs: 0 },
    { kind: 'precise', unixMs: 0, monotonicMs: -1e16 },
    { kind: 'manual' },
    { kind: 'manual', shared: new SharedArrayBuffer(4) },
    { kind: 'manual', shared: new ArrayBuffer(8) },
  ]) {
    assert.throws(() => attachLimiter({ ...handle, clock } as LimiterHandle), REFUSED, JSON.stringify(clock))
  }
})

test('a handle of several policies is refused when its parts or its name are damaged, or of another limiter', () => {
  const policy = allOf([POLICY, fixedWindow({ limit: 10, window: '1h' })])
  const handle = createLimiter(policy, { maxKeys: 10 }).handle() as LimiterHandle & { readonly parts: readonly LimiterHandle[] }
  const other = createLimiter(policy, { maxKeys: 10 }).handle() as typeof handle
  const [first, second] = handle.parts
  const single = createLimiter(POLICY, { maxKeys: 10 }).handle()
  for (const parts of [
    [],
    null,
    'garbage',
    5,
    {},
    [1, 2],
    [null],
    [first, single],
    [first, other.parts[1]],
    Array(9).fill(first),
    Array(2),
  ]) {
    assert.throws(() => attachLimiter({ ...handle, parts } as unknown as LimiterHandle), REFUSED, JSON.stringify(parts))
  }
  for (const name of [undefined, null, 'garbage', 5, new SharedArrayBuffer(4), new ArrayBuffer(1000)]) {
    assert.throws(() => attachLimiter({ ...handle, name } as LimiterHandle), REFUSED, String(name))
  }
  for (const parts of [[second, first], [first], handle.parts]) attachLimiter({ ...handle, parts } as unknown as LimiterHandle)
})

test('parts whose memory was cloned apart are of one limiter all the same', () => {
  const limiter = createLimiter(allOf([POLICY, fixedWindow({ limit: 10, window: '1h' })]), { maxKeys: 10 })
  const handle = limiter.handle() as LimiterHandle & { readonly parts: readonly { readonly memory: object }[] }
  const parts = handle.parts.map((part) => ({ ...part, ...structuredClone({ memory: part.memory }) }))
  assert.notEqual(parts[0]?.memory, parts[1]?.memory)
  const attached = attachLimiter({ ...handle, parts } as LimiterHandle)
  attached.take('ada', 2)
  assert.equal(limiter.peek('ada').remaining, POLICY.limit - 2)
})

test('a handle of tiers is refused when they are damaged', () => {
  const gold = tokenBucket({ limit: 100, window: '1s' })
  const policyFor = () => gold
  const handle = createLimiter(POLICY, { maxKeys: 10, policyFor, policies: [gold] }).handle() as LimiterHandle & {
    readonly tiers: unknown[]
  }
  const tier = handle.tiers[0] as object
  for (const tiers of [null, 'garbage', 5, {}, [null], [1], [{}], [{ ...tier, policy: null }], [{ ...tier, counted: null }], Array(1)]) {
    assert.throws(() => attachLimiter({ ...handle, tiers } as LimiterHandle, { policyFor }), REFUSED, JSON.stringify(tiers))
  }
  for (const ownAs of [null, 'garbage', 5, {}, [null], [1], Array(1)]) {
    assert.throws(() => attachLimiter({ ...handle, ownAs } as LimiterHandle, { policyFor }), REFUSED, JSON.stringify(ownAs))
  }
})

test('what a handle lists or shadows is checked as an option is', () => {
  const handle = createLimiter(POLICY, { maxKeys: 10, clock: manualClock(), allow: ['a'], shadow: true }).handle()
  for (const part of ['allow', 'deny', 'shadow']) {
    assert.throws(() => attachLimiter({ ...handle, [part]: 5 } as LimiterHandle), { code: 'OPTION_INVALID', option: part })
  }
})

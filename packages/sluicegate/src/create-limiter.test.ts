import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  allOf,
  attachLimiter,
  concurrency,
  createLimiter,
  gcra,
  type Limiter,
  type LimiterHandle,
  type LimiterOptions,
  manualClock,
  type Permit,
  type Policy,
  PolicyError,
  restoreLimiter,
  tokenBucket,
} from './index.js'

const POLICY = gcra({ limit: 10, window: '1s' })
const BAD_OPTIONS: readonly (readonly [string, string, readonly unknown[]])[] = [
  ['OPTION_INVALID', 'maxKeys', [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 100_000_001, '10', null]],
  ['OPTION_INVALID', 'hotKeys', [-1, 0.5, 10_001, '5', null]],
  ['OPTION_INVALID', 'onFull', ['', 'drop', null, true]],
  ['CLOCK_INVALID', 'clock', [null, 0, {}, Date, { nowMs: 5 }]],
  ['OPTION_UNKNOWN', 'maxkeys', [10]],
]

for (const [code, option, values] of BAD_OPTIONS) {
  test(`a bad ${option} is refused with ${code}, the option and the value`, () => {
    for (const value of values) {
      assert.throws(
        () => createLimiter(POLICY, { [option]: value } as LimiterOptions),
        (error) => error instanceof PolicyError && error.code === code && error.option === option && Object.is(error.value, value),
        `${option}: ${String(value)}`,
      )
    }
  })
}

test('options that are undefined count as not given', () => {
  const given = { store: undefined, maxKeys: undefined, clock: undefined, onFull: undefined, hotKeys: undefined }
  const limiter = createLimiter(POLICY, given as unknown as LimiterOptions)
  assert.equal(limiter.take('k').allowed, true)
})

test('options that are no object are refused by every way to a limiter', () => {
  const limiter = createLimiter(POLICY, { maxKeys: 10 })
  const [handle, snapshot] = [limiter.handle(), limiter.snapshot()]
  for (const wrong of [null, 5, 'fast', [], [1], () => undefined, true] as never[]) {
    const refused = { name: 'PolicyError', code: 'OPTION_INVALID', option: 'options', value: wrong }
    assert.throws(() => createLimiter(POLICY, wrong), refused)
    assert.throws(() => attachLimiter(handle, wrong), refused)
    assert.throws(() => restoreLimiter(snapshot, wrong), refused)
  }
})

test('a key that no call takes is on no list', () => {
  for (const option of ['allow', 'deny'] as const) {
    for (const key of ['', 'x'.repeat(1025)]) {
      assert.throws(() => createLimiter(POLICY, { maxKeys: 10, [option]: ['a', key] }), { code: 'KEY_INVALID', option, value: key })
    }
    createLimiter(POLICY, { maxKeys: 10, [option]: ['x'.repeat(1024)] })
  }
})

test('the error for bytes that are no snapshot has their number', () => {
  assert.throws(() => restoreLimiter(new Uint8Array(100)), /all the bytes that snapshot\(\) gave \(got a Uint8Array of 100 bytes\)/)
  assert.throws(() => restoreLimiter(Buffer.alloc(3)), /\(got a Uint8Array of 3 bytes\)/)
  assert.throws(() => restoreLimiter('text' as never), /\(got "text"\)/)
})

test('what is no policy is refused', () => {
  for (const wrong of [null, undefined, {}, 'gcra', { ...POLICY, algorithm: 'x' }]) {
    assert.throws(() => createLimiter(wrong as never), { code: 'POLICY_INVALID', option: 'policy' })
  }
})

test('a policy that came as JSON is as good as the one it was made from', () => {
  const limiter = createLimiter(JSON.parse(JSON.stringify(POLICY)))
  assert.deepEqual(limiter.policy, POLICY)
})

test('a clock that reads nothing usable is misuse at the call that read it', () => {
  let reading: unknown = 0
  const limiter = createLimiter(POLICY, { clock: { nowMs: () => reading as number } })
  for (reading of [
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    1e300,
    1e18,
    -1e13,
    undefined,
    null,
    '5',
    5n,
    [5],
    new Date(5),
  ]) {
    const said = /^clock: nowMs\(\) must return a number of milliseconds since the Unix epoch, within 285 years of it/
    assert.throws(() => limiter.take('k'), { name: 'PolicyError', code: 'CLOCK_INVALID', value: reading, message: said })
    assert.throws(() => limiter.peek('k'), { name: 'PolicyError', code: 'CLOCK_INVALID' })
  }
  reading = 1000
  assert.equal(limiter.take('k').remaining, 9)
})

test('a policy of many digits keeps its name and numbers through update and attach', () => {
  const policy = tokenBucket({ limit: 999_983, window: 60_000.001, burst: 123_457, name: `!${'~'.repeat(119)}` })
  const limiter = createLimiter(policy, { clock: manualClock() })
  assert.deepEqual(attachLimiter(limiter.handle()).policy, policy)
  limiter.update({ ...policy, name: ' ' } as Policy)
  assert.deepEqual(attachLimiter(limiter.handle()).policy, { ...policy, name: ' ' })
})

test('an attached limiter shares the budget both ways, and outlives the one it was attached to', () => {
  const limiter = createLimiter(POLICY, { clock: manualClock() })
  const attached = attachLimiter(limiter.handle())
  limiter.take('k', 3)
  attached.take('k', 3)
  assert.deepEqual([limiter.peek('k').remaining, attached.peek('k').remaining], [4, 4])
  limiter.close()
  assert.equal(attached.take('k', 4).allowed, true)
})

test('what is no handle is refused', () => {
  const good = createLimiter(POLICY).handle()
  for (const wrong of [null, undefined, {}, { sluicegate: 1 }, { ...good, sluicegate: 2 }, { ...good, memory: new SharedArrayBuffer(8) }]) {
    assert.throws(() => attachLimiter(wrong as LimiterHandle), { code: 'HANDLE_INVALID', option: 'handle' })
  }
})

test('a clock of the caller does not travel: attach without it is refused, with it shares the time', () => {
  let nowMs = 0
  const clock = { nowMs: () => nowMs }
  const handle = createLimiter(POLICY, { clock }).handle()
  assert.throws(() => attachLimiter(handle), { code: 'CLOCK_INVALID', option: 'clock' })
  const attached = attachLimiter(handle, { clock })
  attached.take('k', 10)
  nowMs = 100
  assert.equal(attached.take('k').allowed, true)
})

test('attach takes no options that belong to the memory', () => {
  const handle = createLimiter(POLICY).handle()
  assert.throws(() => attachLimiter(handle, { maxKeys: 5 } as never), { code: 'OPTION_UNKNOWN', option: 'maxKeys' })
})

test('a take is typed as a permit where concurrency is the policy or one of its parts, and as a decision elsewhere', () => {
  const held = createLimiter(concurrency({ limit: 2 })).take('k')
  const heldWithOthers = createLimiter(allOf([POLICY, concurrency({ limit: 2 })])).take('k')
  assert.ok(held.release() && heldWithOthers.release())
  const free = createLimiter(POLICY).take('k')
  const freeOfAll = createLimiter(allOf([POLICY])).take('k')
  // @ts-expect-error there is nothing to release
  assert.equal(free.release, undefined)
  // @ts-expect-error nor here
  assert.equal(freeOfAll.release, undefined)
})

test('what takes answer is known of a handle, and said of what was posted or read', () => {
  const limiter = createLimiter(concurrency({ limit: 1 }), { maxKeys: 10 })
  const posted: unknown = structuredClone(limiter.handle())
  const released = [
    attachLimiter(limiter.handle()).take('k').release(),
    attachLimiter<Permit>(posted as LimiterHandle<Permit>)
      .take('k')
      .release(),
    restoreLimiter<Permit>(limiter.snapshot()).take('k').release(),
  ]
  assert.deepEqual(released, [true, true, true])
  // @ts-expect-error: the compiler does not take a limiter of decisions for one of permits
  const wrong: Limiter<Permit> = attachLimiter(createLimiter(POLICY).handle())
  assert.equal('release' in wrong.take('k'), false)
})

test('limiters that are not asked yet have no core of their own, answer for their policy, and may be closed', () => {
  const runtime = (globalThis as unknown as { WebAssembly: { Instance: new (...given: unknown[]) => object } }).WebAssembly
  const { Instance } = runtime
  let made = 0
  runtime.Instance = class extends Instance {
    constructor(...given: unknown[]) {
      super(...given)
      made++
    }
  }
  try {
    const limiters = Array.from({ length: 100 }, (_, i) => createLimiter(tokenBucket({ limit: 3 + i, window: '1s', name: `p${i}` })))
    assert.deepEqual([limiters[9]?.policy.limit, limiters[9]?.stats().keys, made], [12, 0, 0])
    assert.equal(limiters[9]?.take('k').remaining, 11)
    limiters[9]?.update(tokenBucket({ limit: 4, window: '1s', name: 'p9' }))
    limiters[8]?.update(tokenBucket({ limit: 4, window: '1s', name: 'p8' }))
    assert.deepEqual([limiters[8]?.policy.limit, limiters[8]?.take('k', 4).allowed, made], [4, true, 2])
    limiters[7]?.close()
    assert.throws(() => limiters[7]?.take('k'), { code: 'CLOSED' })
  } finally {
    runtime.Instance = Instance
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import {
  allOf,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  manualClock,
  PolicyError,
  restoreLimiter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../index.js'
import type { OpenCore } from '../open-core.js'
import { decodedSnapshot, encodedSnapshot } from './snapshot.js'

const START_MS = 1_789_000_000_000

test('a description that is not one of a limiter is refused', () => {
  const limiter = createLimiter(slidingLog({ limit: 10, window: '1s' }), { clock: manualClock(START_MS), maxKeys: 30 })
  limiter.take('k')
  const { description, contents } = decodedSnapshot(limiter.snapshot())
  const restore = (wrong: object): Limiter => restoreLimiter(encodedSnapshot({ ...description, ...wrong }, [contents]))
  assert.equal(restore({}).policy.name, limiter.policy.name)
  const [section] = description.sections as [{ address: number; algorithm: string }]
  const wrongs: readonly object[] = [
    { bytes: 65_536 },
    { bytes: 2 ** 33 },
    { bytes: -65_536 },
    { bytes: '458752' },
    { secret: [1] },
    { secret: [1, 'two'] },
    { options: null },
    { options: { denyWhenFull: false, maxKeys: 0 } },
    { sections: [] },
    { sections: null },
    { sections: [null] },
    { sections: [section, { ...section, address: 512 }] },
    { sections: [{ ...section, address: 512 }] },
    { sections: [{ ...section, address: 1 }] },
    { sections: [{ ...section, algorithm: 'token-bucket' }] },
    { sections: [{ ...section, algorithm: 'constructor' }] },
    { allOf: 'two', sections: [section, { ...section, address: 512 }] },
    { allOf: '' },
    { allOf: 7 },
  ]
  for (const wrong of wrongs) assert.throws(() => restore(wrong), { name: 'PolicyError', code: 'SNAPSHOT_INVALID' }, JSON.stringify(wrong))
  for (const cut of [8, 16, contents.length - 3]) {
    const cutOff = encodedSnapshot(description, [contents.subarray(0, cut)])
    assert.throws(() => restoreLimiter(cutOff), { name: 'PolicyError', code: 'SNAPSHOT_INVALID' }, `${cut} bytes`)
  }
})

test('a policy in a form that there is not, of which all else fits, is refused', () => {
  const placeOfForm = (4096 + 40) / 8 // BLOCKS + RECORD_ENCODING
  for (const policy of [gcra({ limit: 5, window: '1s', burst: 2 }), tokenBucket({ limit: 7, window: '1m' })]) {
    const limiter = createLimiter(policy, { clock: manualClock(START_MS), maxKeys: 30 })
    limiter.take('k')
    const { description, contents } = decodedSnapshot(limiter.snapshot())
    for (const form of [8n, 7n << 32n, 1n << 40n, (1n << 62n) + 1n]) {
      const piece = new BigUint64Array([BigInt(placeOfForm) | (8n << 32n), form])
      const changed = encodedSnapshot(description, [contents, new Uint8Array(piece.buffer)])
      assert.throws(() => restoreLimiter(changed), { name: 'PolicyError', code: 'SNAPSHOT_INVALID' }, String(form))
    }
  }
})

const REFERENCE = 3n << 62n

/** The core of a limiter, or of the first of several. */
function openOf(limiter: Limiter): OpenCore {
  const { section, parts } = limiter as unknown as { section?: { open: OpenCore }; parts?: readonly { section: { open: OpenCore } }[] }
  return (section ?? parts?.[0]?.section)?.open as OpenCore
}

/** The limiter of a snapshot in which words were written over, and the checksum made again. */
function restoredWith(limiter: Limiter, words: readonly (readonly [address: number, word: bigint])[]): Limiter {
  const { description, contents } = decodedSnapshot(limiter.snapshot())
  const pieces = words.map(([address, word]) => new Uint8Array(new BigUint64Array([BigInt(address / 8) | (8n << 32n), word]).buffer))
  return restoreLimiter(encodedSnapshot(description, [contents, ...pieces]), { clock: manualClock(START_MS) })
}

test('a log whose header has another cost than its newest request is refused', () => {
  const limiter = createLimiter(slidingLog({ limit: 5, window: '1s' }), { clock: manualClock(START_MS), maxKeys: 4 })
  const open = openOf(limiter)
  const words = new BigUint64Array(open.memory.buffer)
  for (let taken = 0; taken < 3; taken++) {
    limiter.take('k')
    const headers = Array.from(
      { length: open.entries },
      (_, i) => open.firstExtensions() + i * open.field(open.core.policyRecord(), 'RECORD_STRIDE'),
    )
    const used = headers.filter((address) => words[address / 8] !== 0n)
    assert.equal(used.length, 1)
    const [header = 0] = used
    const word = words[header / 8] as bigint
    assert.equal(restoredWith(limiter, [[header, word]]).take('k').remaining, 1 - taken + 2)
    assert.throws(() => restoredWith(limiter, [[header, word + 1n]]), { name: 'PolicyError', code: 'SNAPSHOT_INVALID' }, `${taken}`)
  }
})

test('what a snapshot says of places without a key, and of the spare room, is forgotten', () => {
  const limiter = createLimiter(slidingLog({ limit: 5, window: '1s' }), { clock: manualClock(START_MS), maxKeys: 4 })
  limiter.update(slidingLog({ limit: 50, window: '1s' }))
  limiter.take('k')
  const open = openOf(limiter)
  const record = open.core.policyRecord()
  const stride = open.field(record, 'RECORD_STRIDE')
  const places = [open.field(record, 'RECORD_EXTENSIONS'), open.firstExtensions()].flatMap((first) =>
    Array.from({ length: open.entries }, (_, i) => first + i * (first === open.firstExtensions() ? 48 : stride)),
  )
  const words = new BigUint64Array(open.memory.buffer)
  const unused = places.filter((address) => words[address / 8] === 0n)
  assert.ok(unused.length > open.entries)
  const restored = restoredWith(
    limiter,
    unused.map((address) => [address, REFERENCE | BigInt(address)]),
  )
  for (const policy of [slidingLog({ limit: 5, window: '1s' }), slidingLog({ limit: 50, window: '1s' })]) {
    for (let i = 0; i < 8; i++) restored.take(`new ${i}`)
    restored.update(policy)
  }
  assert.equal(restored.peek('k').remaining, 49)
})

test('policies that share memory are refused', () => {
  const parts = [slidingLog({ limit: 5, window: '1s' }), slidingLog({ limit: 50, window: '1m' })]
  const limiter = createLimiter(allOf(parts), { clock: manualClock(START_MS), maxKeys: 4 })
  limiter.take('k')
  const { description, contents } = decodedSnapshot(limiter.snapshot())
  const [, second] = description.sections as readonly { readonly address: number }[]
  const open = openOf(limiter)
  const extensions = open.core.policyRecord() + open.constant('RECORD_EXTENSIONS')
  assert.equal(restoreLimiter(encodedSnapshot(description, [contents]), { clock: manualClock(START_MS) }).take('k').allowed, true)
  const taken = (second?.address ?? 0) + open.constant('BAN_FILTER')
  assert.throws(() => restoredWith(limiter, [[extensions, BigInt(taken)]]), { name: 'PolicyError', code: 'SNAPSHOT_INVALID' })
})

/** Seeds that once found something. */
const FOUND: readonly number[] = [747, 1945, 3512]

test('any number in any field of a policy record, or of the head of a section, is refused or fits', () => {
  const policies = [tokenBucket, gcra, fixedWindow, slidingWindow, slidingLog].map((make) => make({ limit: 5, window: '1s' }))
  const limiters = policies.map((policy) => createLimiter(policy, { clock: manualClock(START_MS), maxKeys: 4 }))
  for (const limiter of limiters) limiter.take('k')
  const faults: string[] = []
  for (const seed of [...FOUND, ...Array(shortOrLong(200, 2_500)).keys()]) {
    const random = new Random(seed)
    const limiter = random.pick(limiters)
    const open = openOf(limiter)
    const record = { from: open.core.policyRecord(), bytes: open.constant('RECORD_SIZE') }
    const part = random.pick([record, record, { from: open.section, bytes: open.constant('RELEASED') }])
    const address = part.from + 8 * random.integer(0, part.bytes / 8 - 1)
    const word = new BigUint64Array(1)
    const double = new Float64Array(word.buffer)
    if (random.integer(0, 1) === 0) word[0] = (BigInt(random.bits()) << 32n) | BigInt(random.bits())
    else double[0] = random.pick([1, -1]) * 2 ** random.integer(-4, 1023)
    try {
      restoredWith(limiter, [[address, word[0] as bigint]]).close()
    } catch (error) {
      if (!(error instanceof PolicyError && error.code === 'SNAPSHOT_INVALID')) faults.push(`seed ${seed}: ${error}`)
    }
  }
  assert.deepEqual(faults, [])
})

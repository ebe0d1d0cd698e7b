import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { crc32 } from './crc32.js'
import {
  allOf,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  manualClock,
  type Policy,
  PolicyError,
  restoreLimiter,
  StoreError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from './index.js'
import { openedSnapshot, sealedSnapshot } from './snapshot.js'

const START_MS = 1_789_000_000_000
const POLICIES: readonly Policy[] = [
  tokenBucket({ limit: 10, window: '1s' }),
  gcra({ limit: 999_983, window: '10s', burst: 10 }),
  fixedWindow({ limit: 10, window: 'day', timeZone: 'Asia/Kolkata' }),
  slidingWindow({ limit: 10, window: '1s' }),
  slidingWindow({ limit: 100_000, window: '1s', name: 'wide' }),
  slidingWindow({ limit: 10, window: '1s', counters: 'compact', name: 'compact' }),
  slidingLog({ limit: 10, window: '1s' }),
  slidingLog({ limit: 10, window: '1s', slotBytes: 4, name: 'short' }),
  concurrency({ limit: 10, ttl: '1s' }),
  allOf([tokenBucket({ limit: 10, window: '1s' }), slidingLog({ limit: 20, window: '10s' }), concurrency({ limit: 15, ttl: '2s' })]),
]
const SEED = 20_260
const ROUNDS = 120
const CRC_BYTES = 4
const TICKET = (3n << 62n) | (200n << 39n) | 5n

for (const policy of POLICIES) {
  test(`${policy.name}: a snapshot that lies, though its checksum fits, is refused, or restored to what can be used`, (t) => {
    // The secret of the hash among them: the same keys in the same places.
    t.mock.method(crypto, 'getRandomValues', (array: Int32Array) => array.fill(SEED))
    const random = new Random(SEED)
    const clock = manualClock(START_MS)
    const limiter = createLimiter(policy, { clock, maxKeys: 30 })
    for (let i = 0; i < 200; i++) {
      limiter.take(`key ${i % 20}`, 1 + (i % 2))
      if (i % 9 === 0) clock.advance(11)
    }
    limiter.block('key 3', '1m')
    const snapshot = limiter.snapshot()
    let refused = 0
    for (let round = 0; round < ROUNDS; round++) {
      const lie = lieOf(snapshot, random)
      try {
        use(restoreLimiter(lie, { clock: manualClock(clock.nowMs()) }), policy)
      } catch (error) {
        if (error instanceof PolicyError && error.code === 'SNAPSHOT_INVALID') refused++
        // Of what a key has spent anything may have been said; to be given up after a bounded wait is an answer.
        else if (!(error instanceof StoreError)) throw new Error(`seed ${SEED}, round ${round}`, { cause: error })
      }
    }
    t.diagnostic(`${refused} of ${ROUNDS} refused`)
    assert.ok(refused > 0 && refused < ROUNDS)
  })
}

test('a description that is not one of a limiter is refused', () => {
  const limiter = createLimiter(slidingLog({ limit: 10, window: '1s' }), { clock: manualClock(START_MS), maxKeys: 30 })
  limiter.take('k')
  const { description, contents } = openedSnapshot(limiter.snapshot())
  const restore = (wrong: object): Limiter => restoreLimiter(sealedSnapshot({ ...description, ...wrong }, [contents]))
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
    const cutOff = sealedSnapshot(description, [contents.subarray(0, cut)])
    assert.throws(() => restoreLimiter(cutOff), { name: 'PolicyError', code: 'SNAPSHOT_INVALID' }, `${cut} bytes`)
  }
})

/** The snapshot with some bits or words changed, and the checksum that fits it. */
function lieOf(snapshot: Uint8Array, random: Random): Uint8Array {
  const lie = snapshot.slice()
  const view = new DataView(lie.buffer)
  const begin = 16 + view.getUint32(12, true)
  for (let changes = random.integer(1, 3); changes > 0; changes--) {
    if (random.integer(0, 4) === 0) {
      const at = random.integer(12, lie.length - CRC_BYTES - 1)
      lie[at] = (lie[at] as number) ^ (1 << random.integer(0, 7))
    } else {
      const words = Math.floor((lie.length - CRC_BYTES - begin) / 8)
      const any = (BigInt(random.integer(0, 2 ** 31)) << 33n) | BigInt(random.integer(0, 2 ** 31))
      const word = random.pick([0n, 2n ** 64n - 1n, TICKET, 2n ** 63n, BigInt(random.integer(0, 2 ** 20)), any]) as bigint
      view.setBigUint64(begin + 8 * random.integer(0, words - 1), word, true)
    }
  }
  view.setUint32(lie.length - CRC_BYTES, crc32(lie.subarray(0, lie.length - CRC_BYTES)), true)
  return lie
}

function use(limiter: Limiter, policy: Policy): void {
  for (let i = 0; i < 25; i++) limiter.take(`key ${i}`)
  limiter.refund('key 1', 2)
  limiter.penalize('key 2', 2)
  limiter.reserve('key 4', 1).cancel()
  limiter.reset('key 5')
  limiter.update(policy)
  for (let i = 0; i < 25; i++) limiter.peek(`key ${i}`)
  restoreLimiter(limiter.snapshot()).close()
  limiter.close()
}

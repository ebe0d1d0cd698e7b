import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, gcra, type Limiter, manualClock, restoreLimiter, slidingLog, tokenBucket } from '../../index.js'
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

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, type Limiter, manualClock, restoreLimiter, slidingLog, tokenBucket } from '../../index.js'
import { decodedSnapshot, encodedSnapshot } from './snapshot.js'

const START_MS = 1_789_000_000_000

test('a description that is not one of a limiter is refused', () => {
  const limiter = createLimiter(slidingLog({ limit: 10, window: '1s' }), { clock: manualClock(START_MS), maxKeys: 30 })
  limiter.take('k')
  const { description, contents } = decodedSnapshot(limiter.snapshot())
  const restore = (wrong: object): Limiter => restoreLimiter(encodedSnapshot({ ...description, ...wrong }, [contents]))
  assert.equal(restore({}).policy.name, limiter.policy.name)
  const [section] = description.sections as [Record<string, unknown>]
  const withSection = (wrong: object): object => ({ sections: [{ ...section, ...wrong }] })
  const wrongs: readonly object[] = [
    { secret: [1] },
    { secret: [1, 'two'] },
    { options: null },
    { options: { denyWhenFull: false, maxKeys: 0 } },
    { sections: [] },
    { sections: null },
    { sections: [null] },
    { sections: [section, section] },
    { allOf: 'two', sections: [section, section] },
    { allOf: '' },
    { allOf: 7 },
    withSection({ policy: tokenBucket({ limit: 1, window: '1s' }) }),
    withSection({ policy: { ...limiter.policy, limit: 0 } }),
    withSection({ policy: null }),
    withSection({ lines: [] }),
    withSection({ lines: [0] }),
    withSection({ lines: [1] }),
    withSection({ lines: [2, 2, 2, 2] }),
    withSection({ lines: [100_000_000] }),
    withSection({ lines: '2' }),
    withSection({ counters: -1 }),
    withSection({ counters: 2, overflow: { limit: 0, windowUs: 0 } }),
    withSection({ overflow: null }),
  ]
  for (const wrong of wrongs) assert.throws(() => restore(wrong), { name: 'PolicyError', code: 'SNAPSHOT_INVALID' }, JSON.stringify(wrong))
  for (const cut of [8, 16, contents.length - 3]) {
    const cutOff = encodedSnapshot(description, [contents.subarray(0, cut)])
    assert.throws(() => restoreLimiter(cutOff), { name: 'PolicyError', code: 'SNAPSHOT_INVALID' }, `${cut} bytes`)
  }
})

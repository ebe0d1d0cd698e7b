import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serveLimiter } from '../cluster/serve-limiter.js'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../policy/single-policy.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { scriptedStore } from './redis.js'

const POLICY = tokenBucket({ limit: 100, window: '1s', name: 'p' })

for (const lease of [{ horizonMs: 20 }, 0, 10_001, '11s', null, 'x', [50]]) {
  test(`lease: ${JSON.stringify(lease)} is refused, by those who lease and those who hand out`, () => {
    const options = { lease } as unknown as Omit<SharedOptions, 'store'>
    const refused = { code: 'DURATION_INVALID', option: 'lease' }
    assert.throws(() => createLimiter(POLICY, { store: scriptedStore({} as never), ...options }), refused)
    assert.throws(() => serveLimiter(POLICY, options as never), refused)
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serveLimiter } from '../cluster/serve-limiter.js'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../policy/single-policy.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { scriptedStore } from './redis.js'

const POLICY = tokenBucket({ limit: 100, window: '1s', name: 'p' })

for (const [lease, code, option] of [
  [{ horizon: 20 }, 'OPTION_UNKNOWN', 'lease.horizon'],
  [{ horizonMS: 20 }, 'OPTION_UNKNOWN', 'lease.horizonMS'],
  [{ horizonMs: 0 }, 'OPTION_INVALID', 'lease.horizonMs'],
  [5, 'OPTION_INVALID', 'lease'],
  [null, 'OPTION_INVALID', 'lease'],
  ['x', 'OPTION_INVALID', 'lease'],
  [[50], 'OPTION_INVALID', 'lease'],
] as const) {
  test(`lease: ${JSON.stringify(lease)} is refused, by those who lease and those who hand out`, () => {
    const options = { lease } as unknown as Omit<SharedOptions, 'store'>
    assert.throws(() => createLimiter(POLICY, { store: scriptedStore({} as never), ...options }), { code, option })
    assert.throws(() => serveLimiter(POLICY, options as never), { code, option })
  })
}

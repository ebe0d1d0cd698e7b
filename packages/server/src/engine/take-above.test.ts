import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Decision } from 'sluicegate'
import type { StoredLimiter } from './stored-limiter.js'
import { takeAbove } from './take-above.js'

const FLOOR = 20

function decision(allowed: boolean, remaining: number): Decision {
  return { allowed, limit: 100, remaining, retryAfterMs: 0, resetAfterMs: 9, policy: 'api', source: 'store' }
}

/** A limiter over a store where a take meets `remaining` tokens that a look before it did not see. */
function racing(remaining: number, cancel: () => Promise<Decision>) {
  const calls: string[] = []
  const limiter = {
    isShared: true,
    policy: { algorithm: 'token-bucket' },
    peek: async () => decision(true, 100),
    reserve: async () => {
      calls.push('reserve')
      return {
        allowed: true,
        waitMs: 0,
        decision: decision(true, remaining),
        cancel: () => {
          calls.push('cancel')
          return cancel()
        },
      }
    },
  } as unknown as StoredLimiter
  return { limiter, calls }
}

test('a take over a store that left enough is not given back', async () => {
  const { limiter, calls } = racing(FLOOR, () => assert.fail())
  assert.equal((await takeAbove(limiter, 'k', 1, FLOOR)).allowed, true)
  assert.deepEqual(calls, ['reserve'])
})

for (const [what, cancel] of [
  ['is given back', async () => decision(true, FLOOR)],
  ['stays charged when the store fails', () => Promise.reject(new Error('the connection broke'))],
] as const) {
  test(`a take over a store that went below the floor is denied, and ${what}`, async () => {
    const { limiter, calls } = racing(FLOOR - 1, cancel)
    const { allowed, retryAfterMs } = await takeAbove(limiter, 'k', 1, FLOOR)
    assert.deepEqual([allowed, retryAfterMs, calls], [false, 1, ['reserve', 'cancel']])
  })
}

import assert from 'node:assert/strict'
import { RateLimiterRes, type RateLimiterSluicegate } from '../../../sluicegate/dist/compat/rate-limiter-flexible/index.js'

/** What a denial rejects with. */
export async function denied(limiter: RateLimiterSluicegate, key: string, points?: number): Promise<RateLimiterRes> {
  const reason: unknown = await limiter.consume(key, points).then(
    () => assert.fail('it passed'),
    (error) => error,
  )
  assert.ok(reason instanceof RateLimiterRes && !(reason instanceof Error), String(reason))
  return reason
}

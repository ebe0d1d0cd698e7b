import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createClient } from '@redis/client'
import { tokenBucket } from '../index.js'
import { type OwnRedis, ownRedis } from '../testing/own-redis.js'
import { createRedisLimiter, type FleetLimiter } from './index.js'

// The classic test of a rate limiter over a store: a bucket is saturated for a while, and what was let pass is counted. Real time: what is
// asserted holds however slow the machine is.

const FOR_MS = 3000

let redis: OwnRedis
let client: ReturnType<typeof createClient>

before(async () => {
  redis = await ownRedis()
  client = createClient({ url: redis.server.url })
  await client.connect()
})

after(async () => {
  client.destroy()
  await redis.stop()
})

interface Saturated {
  readonly admitted: number
  /** From before the first request until after the last answer. */
  readonly tookMs: number
}

async function saturated(limiter: FleetLimiter, callers: number): Promise<Saturated> {
  const startMs = performance.now()
  let admitted = 0
  const caller = async (): Promise<void> => {
    while (performance.now() - startMs < FOR_MS) {
      if ((await limiter.take('k')).allowed) admitted++
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return { admitted, tookMs: performance.now() - startMs }
}

for (const callers of [1, 8, 64]) {
  for (const mode of ['exact', 'leased'] as const) {
    test(`a burst of 10 at 10/s, saturated for 3 s by ${callers} callers, ${mode}: 40 pass, never more, and not 10`, async (t) => {
      const policy = tokenBucket({ limit: 10, window: '1s', burst: 10, name: `${mode}-${callers}` })
      using limiter = createRedisLimiter(policy, { client, mode, timeoutMs: 10_000, outage: 'closed' })
      const { admitted, tookMs } = await saturated(limiter, callers)
      t.diagnostic(`${admitted} in ${tookMs.toFixed(0)} ms`)
      assert.ok(admitted <= 10 + Math.floor(tookMs / 100), 'never more than the budget')
      // 39 and 38 on a machine that has time; one that stops now and then loses what does not fit into the burst, or into a lease.
      assert.ok(admitted >= 20, 'tokens are not lost to rounding')
    })
  }
}

for (const [limit, windowMs, burst] of [
  [7, 20_000, 5],
  [5000, 1000, 1000],
] as const) {
  test(`the budget of ${limit} in ${windowMs} ms is kept and used`, async (t) => {
    const policy = tokenBucket({ limit, window: windowMs, burst, name: `rate-${limit}` })
    using limiter = createRedisLimiter(policy, { client, timeoutMs: 10_000, outage: 'closed' })
    const { admitted, tookMs } = await saturated(limiter, 16)
    const { storeCalls } = limiter.stats()
    t.diagnostic(`${admitted} in ${tookMs.toFixed(0)} ms, ${(storeCalls / admitted).toFixed(3)} calls a token`)
    assert.ok(admitted <= burst + Math.floor((limit * tookMs) / windowMs))
    assert.ok(admitted >= 0.5 * burst)
  })
}

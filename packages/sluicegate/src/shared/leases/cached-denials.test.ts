import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { ManualAuthority } from 'sluicegate-testkit/leases/manual-authority.js'
import type { Decision } from '../../decision/decision.js'
import { fixedWindow, slidingLog, tokenBucket } from '../../index.js'
import { CachedDenial } from '../../lease/denial-cache.js'

const SEEDS = shortOrLong(6, 40)

/** Nine at once, and one every 100 ms. */
const SLOW = tokenBucket({ limit: 10, window: '1s', burst: 10 })

/** The store's decision about a key after a refund. */
function afterRefund(remaining: number): Decision {
  return { allowed: remaining > 0, limit: 10, remaining, retryAfterMs: 0, resetAfterMs: 1_000, policy: 'p', source: 'store' }
}

test('a cached denial equals the one that would be computed', async (t) => {
  let repeated = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const cached = await historyOf(seed)
    const mock = t.mock.method(CachedDenial.prototype, 'at', () => undefined)
    const fresh = await historyOf(seed)
    mock.mock.restore()
    assert.deepEqual(cached.decisions, fresh.decisions, `seed ${seed}`)
    assert.deepEqual([cached.leases, cached.count], [fresh.leases, fresh.count], `seed ${seed}`)
    assert.equal(new Set(fresh.decisions).size, fresh.decisions.length)
    repeated += cached.decisions.length - new Set(cached.decisions).size
  }
  assert.ok(repeated > 100 * SEEDS, `${repeated} were repeated`)

  /** Takes of two keys, many in the same millisecond, while other processes take and verbs change the keys. */
  async function historyOf(seed: number): Promise<{ decisions: readonly Decision[]; leases: number; count: number }> {
    const random = new Random(seed)
    // A token every 1.4 ms: the available tokens change between whole milliseconds.
    const uneven = tokenBucket({ limit: 700, window: '1s', burst: 90 })
    const policy = random.pick([SLOW, uneven, slidingLog({ limit: 20, window: '3s' }), fixedWindow({ limit: 30, window: '2s' })])
    const authority = new ManualAuthority({ policy })
    const decisions: Decision[] = []
    for (let i = 0; i < 1500; i++) {
      const key = random.pick(['a', 'b'])
      if (random.chance(0.5)) authority.clock.advance(random.pick([0.01, 0.3, 0.999, 1, 7.5, 60]))
      if (random.chance(0.02)) authority.takeElsewhere(key, random.integer(1, 5))
      if (random.chance(0.01)) authority.takes.forget(key, random.pick(['returned', 'dropped']))
      if (random.chance(0.005)) authority.takes.refunded(key, afterRefund(random.integer(0, 9)))
      decisions.push(await authority.take(key, random.pick([1, 1, 1, 8])))
    }
    return { decisions, leases: authority.leases, count: authority.takes.decisions }
  }
})

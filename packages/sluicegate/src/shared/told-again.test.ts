import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import type { Decision } from '../decision.js'
import { fixedWindow, slidingLog, tokenBucket } from '../index.js'
import { ToldDenial } from '../lease/told-denial.js'
import { ManualAuthority } from '../testing/manual-authority.js'

const SEEDS = shortOrLong(12, 100)

/** Nine at once, and one every 100 ms. */
const SLOW = tokenBucket({ limit: 10, window: '1s', burst: 10 })

/** What a store says of a key that something was given back to. */
function standing(remaining: number): Decision {
  return { allowed: remaining > 0, limit: 10, remaining, retryAfterMs: 0, resetAfterMs: 1_000, policy: 'p', source: 'store' }
}

test('a denial that is told again, word for word, is the one that would be told anew', async (t) => {
  let toldAgain = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const kept = await historyOf(seed)
    const mock = t.mock.method(ToldDenial.prototype, 'at', () => undefined)
    const anew = await historyOf(seed)
    mock.mock.restore()
    assert.deepEqual(kept.decisions, anew.decisions, `seed ${seed}`)
    assert.deepEqual([kept.leases, kept.count], [anew.leases, anew.count], `seed ${seed}`)
    assert.equal(new Set(anew.decisions).size, anew.decisions.length)
    toldAgain += kept.decisions.length - new Set(kept.decisions).size
  }
  assert.ok(toldAgain > 100 * SEEDS, `${toldAgain} were told again`)

  /** Takes of few keys at times of which many are in the same millisecond, while others take and keys are changed by hand. */
  async function historyOf(seed: number): Promise<{ decisions: readonly Decision[]; leases: number; count: number }> {
    const random = new Random(seed)
    // A token every 1.4 ms: what is ready changes between what is told in whole milliseconds.
    const uneven = tokenBucket({ limit: 700, window: '1s', burst: 90 })
    const policy = random.pick([SLOW, uneven, slidingLog({ limit: 20, window: '3s' }), fixedWindow({ limit: 30, window: '2s' })])
    const authority = new ManualAuthority({ policy })
    const decisions: Decision[] = []
    for (let i = 0; i < 1500; i++) {
      const key = random.pick(['a', 'b'])
      if (random.chance(0.5)) authority.clock.advance(random.pick([0.01, 0.3, 0.999, 1, 7.5, 60]))
      if (random.chance(0.02)) authority.takeElsewhere(key, random.integer(1, 5))
      if (random.chance(0.01)) authority.takes.forget(key, random.pick(['given back', 'dropped']))
      if (random.chance(0.005)) authority.takes.refunded(key, standing(random.integer(0, 9)))
      decisions.push(await authority.take(key, random.pick([1, 1, 1, 8])))
    }
    return { decisions, leases: authority.leases, count: authority.takes.decisions }
  }
})

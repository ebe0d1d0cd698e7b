import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Decision, manualClock, tokenBucket } from 'sluicegate'
import { Engine, type ServedPolicy } from './engine.js'
import type { Reserved } from './reservations.js'

for (const maxSettle of [undefined, 3]) {
  test(`settling charges at most ${maxSettle ?? 'ten'} times what was reserved, however much it asks for`, () => {
    const policy = tokenBucket({ limit: 100, window: '1m', name: 'tokens' })
    const engine = new Engine([{ policy, maxKeys: undefined, onFull: 'evict', maxSettle }], { clock: manualClock(0) })
    const served = engine.policy('tokens') as ServedPolicy
    const settled = (cost: number): number => {
      const { id } = engine.reservations.reserve([{ policy: served, key: 'k', cost: 2 }], 60_000) as Reserved
      return 100 - ((engine.reservations.settle(id as string, cost) as Decision[])[0] as Decision).remaining
    }
    const most = 2 * (maxSettle ?? 10)
    assert.equal(settled(most - 1), most - 1)
    assert.equal(settled(1_000_000_000), 2 * most - 1)
    engine.close()
  })
}

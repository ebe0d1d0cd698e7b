import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixedWindow, manualClock, type Policy, slidingWindow, tokenBucket } from '../index.js'
import { memoryStore } from '../store-testing/index.js'
import { StoreLanes } from './store-lanes.js'
import { SwapBackend } from './swap-backend.js'
import { TimedStore } from './timed-store.js'

for (const policy of [
  fixedWindow({ limit: 100, window: '1m', name: 'shared' }),
  slidingWindow({ limit: 100, window: '1m', name: 'shared' }),
  tokenBucket({ limit: 1, window: '1m', burst: 100, name: 'shared' }),
]) {
  test(`what one process leased of a ${policy.algorithm} that is the home of regions another gives back, while it counts`, async () => {
    const clock = manualClock(120_000)
    const store = memoryStore({ clock })
    const make = (each: Policy) => new SwapBackend(new StoreLanes(new TimedStore(store, clock, 1000)), each, () => 1_000_000, 'p', 'shared')
    const [leasing, other] = [make(policy), make(policy)]
    const remaining = async (): Promise<number | undefined> =>
      (await other.execute({ verb: 'peek', key: 'k', cost: 1 })).decision?.remaining
    const { id: grantId = 0 } = await leasing.lease({ key: 'k', part: 0, want: 40, least: 1 })
    const before = (await remaining()) as number
    await other.execute({ verb: 'giveBack', key: 'k', charge: { grantId, part: 0, cost: 40 }, tokens: 25 })
    assert.equal(await remaining(), before + 25)
    clock.advance(150_000)
    await leasing.lease({ key: 'k', part: 0, want: 30, least: 1 })
    const later = await remaining()
    await other.execute({ verb: 'giveBack', key: 'k', charge: { grantId, part: 0, cost: 15 }, tokens: 10 })
    // Of another window nothing comes back, of a bucket what has not refilled.
    assert.equal(await remaining(), policy.algorithm === 'token-bucket' ? (later as number) + 10 : later)
  })
}

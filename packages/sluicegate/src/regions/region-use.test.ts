import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { regionUse } from 'sluicegate-testkit/regions/region-use.js'
import { RegionWorld, type SimRegion } from 'sluicegate-testkit/regions/region-world.js'
import { fixedWindow, slidingLog, slidingWindow, tokenBucket } from '../index.js'

// In virtual time, from a seed: each run is the same.

const DELAYS_MS = [20, 40, 75]
const POLICIES = [
  tokenBucket({ limit: 100, window: '1s', burst: 1000, name: 'a bucket' }),
  fixedWindow({ limit: 3000, window: '30s', name: 'a fixed window' }),
  slidingWindow({ limit: 3000, window: '30s', name: 'a sliding window' }),
  slidingLog({ limit: 8000, window: '80s', name: 'a log' }),
]
const constant = (perSecond: number) => (): number => perSecond

for (const policy of POLICIES) {
  const steady = { policy, delaysMs: DELAYS_MS, seconds: 40, warmUpS: 5, seed: 1 }

  test(`under its limit ${policy.name} admits over three regions what one store does, for a message a second or little more`, async (t) => {
    const use = await regionUse({ ...steady, demand: [45, 30, 15].map(constant) })
    assert.ok(use.admitted >= 0.99 * use.exact, `${use.admitted} of ${use.exact}`)
    // At the beginning of a window every region has to hear from the home again.
    const most = policy.algorithm === 'token-bucket' ? 1 : 1.2
    assert.ok(use.messages <= most, `${use.messages} messages a second and region`)
    assert.ok(use.p99Us < 2_000, `a take waits ${use.p99Us} us`)
    t.diagnostic(`${use.messages.toFixed(2)} messages a second and region, p99 ${use.p99Us} us`)
  })

  test(`${policy.name} follows demand that moves from one region to another`, async () => {
    const before = (second: number): number => (second < 20 ? 90 : 0)
    const afterwards = (second: number): number => (second < 20 ? 0 : 90)
    const { bySecond, askedBySecond } = await regionUse({ ...steady, demand: [before, afterwards, constant(0)] })
    const sum = (rows: readonly (readonly number[])[]): number => (rows[1] ?? []).slice(21, 26).reduce((all, each) => all + each, 0)
    assert.ok(sum(bySecond) >= 0.9 * sum(askedBySecond), `${sum(bySecond)} of ${sum(askedBySecond)} within 6 s`)
  })
}

test('under twice the limit regions use the budget of a bucket, each in proportion to its demand', async () => {
  const { admitted, exact, bySecond, askedBySecond } = await regionUse({
    policy: POLICIES[0] as (typeof POLICIES)[0],
    delaysMs: DELAYS_MS,
    seconds: 60,
    warmUpS: 20,
    seed: 1,
    demand: [100, 60, 40].map(constant),
  })
  assert.ok(admitted >= 0.95 * exact, `${admitted} of ${exact}`)
  const part = (rows: readonly number[]): number => rows.slice(20).reduce((all, each) => all + each, 0)
  const parts = bySecond.map((row, i) => part(row) / part(askedBySecond[i] ?? []))
  for (const each of parts) assert.ok(Math.abs(each - 0.5) < 0.15, `parts of the demand: ${parts}`)
})

test('of a warm key a process draws on its region as rarely as it leases from one store, and returns nothing', async () => {
  const policy = tokenBucket({ limit: 100_000, window: '1s', burst: 800_000, name: 'a warm bucket' })
  const { time, regions } = new RegionWorld({ policy, regions: [{ link: { delayUs: 20_000 }, processes: 1 }], random: new Random(1) })
  const [region] = regions as [SimRegion]
  const take = (): void => {
    for (let i = 0; i < 20; i++) region.take('k', 1)
    time.inUs(5_000, take)
  }
  take()
  await time.runUntil(4_000_000)
  const [calls, messages] = [region.storeCalls, region.messages]
  await time.runUntil(14_000_000)
  // A draw lasts 100 ms, and the next one comes when a quarter of it is left. A renewal is a message and a deposit.
  assert.ok(region.storeCalls - calls <= 10 * (1000 / 75 + 1), `${region.storeCalls - calls} calls in 10 s`)
  assert.ok(region.messages - messages <= 6, `${region.messages - messages} messages in 10 s, with a full budget`)
})

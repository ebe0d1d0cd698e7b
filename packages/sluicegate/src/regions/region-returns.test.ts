import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyNth, Random, seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { grantOf, OF_A_WINDOW } from 'sluicegate-testkit/leases/lease-records.js'
import { PoolTwin } from 'sluicegate-testkit/regions/pool-twin.js'
import { RegionWorld, type SimRegion } from 'sluicegate-testkit/regions/region-world.js'
import { fixedWindow, manualClock, slidingWindow, tokenBucket } from '../index.js'
import type { Backend } from '../shared/backend.js'
import type { RegionPool } from '../shared/region-pool.js'
import { RegionCounts } from './region-share.js'
import { regionTermsOf } from './region-terms.js'
import { RegionRenewals } from './renewals.js'

const SEEDS = shortOrLong(12, 25)
const LIMIT = 1000
/** A slow key is kept warm for one more lease. */
const [FIRST_US, LEFT_US, ENDED_US] = [1_000_000, 5_000_000, 9_000_000]

test('what processes bring back until a moment after the end of tokens goes back to the home, with what the region has left', async () => {
  const policy = fixedWindow({ limit: LIMIT, window: '1d', name: 'a day' })
  const clock = manualClock(1_000_000)
  const nowUs = (): number => clock.nowMs() * 1000
  const twin = new PoolTwin()
  const at = (): PoolTwin => {
    twin.load(nowUs())
    return twin
  }
  const pool: Partial<RegionPool> = {
    claim: async (_key, claim) => at().claim(claim),
    refill: async (_key, answer) => at().refill(answer),
    reclaim: async (_key, endUs) => at().reclaim(endUs),
  }
  const returned: number[] = []
  const home: Backend = {
    lease: async () => grantOf({ ...OF_A_WINDOW, tokens: 10, endUs: 4_000_000 }),
    execute: async (operation) => {
      if (operation.verb === 'giveBack') returned.push(operation.tokens)
      return { done: true }
    },
  }
  const renewals = new RegionRenewals(
    [{ policy, pool: pool as RegionPool, home, share: undefined, demand: home }],
    regionTermsOf(policy),
    { isEager: true, share: { takeDebt: async () => 0, payDebt: async () => undefined } },
    clock,
    new RegionCounts(),
  )
  const draw = { want: 7, least: 1, demand: 7, leadUs: 250_000, foreseenUs: 0 }
  assert.ok(renewals.drew(0, 'k', at().draw(draw), true))
  await turns()
  clock.advance(20)
  await turns()
  const { batches } = at().draw(draw)
  const [{ tokens, endUs, grantId } = { tokens: 0, endUs: 0, grantId: 0 }] = batches
  assert.equal(tokens, 7)
  clock.advance((endUs - nowUs()) / 1000 + 1)
  await turns()
  at().giveBack({ tokens: 5, endUs, grantId })
  assert.equal(at().draw(draw).tokens, 0, 'their end is over')
  clock.advance(1000)
  await turns()
  assert.deepEqual(returned, [3 + 5])
  assert.equal(at().reclaim(endUs), 0)
})

test('a debt that a renewal has paid is not owed once more when the region does not hear of it', async () => {
  const policy = fixedWindow({ limit: LIMIT, window: '1d', name: 'a day' })
  const clock = manualClock(1_000_000)
  const twin = new PoolTwin()
  twin.load(1_000_000_000)
  const debts: number[] = []
  const pool: Partial<RegionPool> = {
    claim: async (_key, claim) => twin.claim(claim),
    refill: () => Promise.reject(new Error('the store of the region is out')),
    addDebt: async (_key, tokens) => debts.push(tokens),
  }
  const home: Backend = {
    lease: async () => grantOf({ ...OF_A_WINDOW, tokens: 4, endUs: 4_000_000 }),
    execute: async () => ({ done: true }),
  }
  const share = { takeDebt: async () => 5, payDebt: async () => undefined }
  const part = { policy, pool: pool as RegionPool, home, share: undefined, demand: home }
  const renewals = new RegionRenewals([part], regionTermsOf(policy), { isEager: true, share }, clock, new RegionCounts())
  renewals.drew(0, 'k', twin.draw({ want: 1, least: 1, demand: 1, leadUs: 250_000, foreseenUs: 0 }), true)
  await turns()
  clock.advance(20)
  await turns()
  assert.deepEqual(debts, [1])
})

test('what the home denied before a reset is not denied after it', () => {
  const twin = new PoolTwin()
  twin.load(1_000_000_000)
  const draw = { want: 1, least: 1, demand: 1, leadUs: 250_000, foreseenUs: 0 }
  const claimedUs = twin.claim({ claimedUs: twin.draw(draw).claimedUs, claimUs: 1_000_000 })
  twin.load(1_000_010_000)
  twin.block(0)
  twin.load(1_000_020_000)
  const answer = { least: 1, deniedUs: 3_600_000_000, blockedUs: 0, rest: 0, fullUs: 3_600_000_000, isScarce: true }
  twin.refill({ ...answer, askedUs: claimedUs, tokens: 0, endsUs: 0, agoUs: 20_000, grantId: 0 })
  twin.refill({ ...answer, askedUs: 1_000_005_000 })
  assert.equal(twin.draw(draw).deniedUs, 0)
  // Its own, afterwards, does.
  twin.load(1_000_030_000)
  twin.refill({ ...answer, askedUs: twin.claim({ claimedUs: 0, claimUs: 1_000_000 }), tokens: 0, endsUs: 0, agoUs: 0, grantId: 0 })
  assert.ok(twin.draw(draw).deniedUs > 0)
})

/** Takes in bursts. */
function bursts({ time }: RegionWorld, random: Random, region: SimRegion, fromUs: number, untilUs: number): void {
  const [most, longestUs] = [random.magnitude(2, 30), random.magnitude(10_000, 400_000)]
  for (let atUs = fromUs; atUs < untilUs; atUs += random.integer(2_000, longestUs)) {
    const burst = random.integer(1, most)
    time.inUs(atUs, () => {
      for (let i = 0; i < burst; i++) region.take('k', 1)
    })
  }
}

// Of a bucket that refills so slowly each take is a call.
for (const [i, [make, seeds]] of (
  [
    [fixedWindow, SEEDS],
    [slidingWindow, SEEDS],
    [tokenBucket, SEEDS / 6],
  ] as const
).entries()) {
  const policy = make({ limit: LIMIT, window: '1d', name: 'a day' })

  everyNth(i, 3)(`what one region leaves of a ${policy.algorithm} is there for another a moment after its tokens ended`, async () => {
    for (const seed of seedsFrom(1, seeds)) {
      const random = new Random(seed)
      const regions = [5_000, 20_000].map((delayUs) => ({ link: { delayUs, jitterUs: delayUs }, processes: random.integer(1, 2) }))
      const world = new RegionWorld({ policy, regions, random, nearUs: random.magnitude(300, 60_000) })
      const [west, east] = world.regions as [SimRegion, SimRegion]
      bursts(world, random, west, 0, FIRST_US)
      bursts(world, random, west, random.integer(3_500_000, LEFT_US), LEFT_US)
      // What a renewal has on its way is denied for a moment.
      for (let second = 0; second < 5; second++) {
        await world.run(LEFT_US + ENDED_US + second * 1_000_000)
        for (let i = 0; i < LIMIT; i++) east.take('k', 1)
      }
      await world.run(LEFT_US + 2 * ENDED_US)
      // Each return of a bucket's tokens is short of what has flowed back.
      const least = policy.algorithm === 'token-bucket' ? LIMIT - 10 : LIMIT
      const { length } = world.admissions
      assert.ok(length >= least && length <= LIMIT, `${length} passed, seed ${seed}`)
    }
  })
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyNth, longTest, Random, shortOrLong } from 'sluicegate-testkit'
import { SOUND_POOL } from 'sluicegate-testkit/regions/pool-twin.js'
import { RegionWorld, regionUse, type SimRegion } from 'sluicegate-testkit/regions/region-world.js'
import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'

// In virtual time, from a seed: each run is the same.

const DELAYS_MS = [20, 40, 75]
const POLICIES = [
  tokenBucket({ limit: 100, window: '1s', burst: 1000, name: 'a bucket' }),
  fixedWindow({ limit: 3000, window: '30s', name: 'a fixed window' }),
  slidingWindow({ limit: 3000, window: '30s', name: 'a sliding window' }),
  slidingLog({ limit: 8000, window: '80s', name: 'a log' }),
]
const constant = (perSecond: number) => (): number => perSecond

// In a short run each policy has one of both at most.
for (const [i, policy] of POLICIES.entries()) {
  const steady = { policy, delaysMs: DELAYS_MS, seconds: shortOrLong(32, 40), warmUpS: 5, seed: 1 }

  everyNth(i, 4)(
    `under its limit ${policy.name} admits over three regions what one store does, for a message a second or little more`,
    async (t) => {
      const use = await regionUse({ ...steady, demand: [45, 30, 15].map(constant) })
      assert.ok(use.admitted >= 0.99 * use.exact, `${use.admitted} of ${use.exact}`)
      // At the beginning of a window every region has to hear from the home again.
      const most = policy.algorithm === 'token-bucket' ? 1 : 1.2
      assert.ok(use.messages <= most, `${use.messages} messages a second and region`)
      assert.ok(use.p99Us < 2_000, `a take waits ${use.p99Us} us`)
      t.diagnostic(`${use.messages.toFixed(2)} messages a second and region, p99 ${use.p99Us} us`)
    },
  )

  everyNth(i + 1, 4)(`${policy.name} follows demand that moves from one region to another`, async () => {
    const before = (second: number): number => (second < 20 ? 90 : 0)
    const afterwards = (second: number): number => (second < 20 ? 0 : 90)
    const { bySecond, askedBySecond } = await regionUse({ ...steady, demand: [before, afterwards, constant(0)] })
    const sum = (rows: readonly (readonly number[])[]): number => (rows[1] ?? []).slice(21, 26).reduce((all, each) => all + each, 0)
    assert.ok(sum(bySecond) >= 0.9 * sum(askedBySecond), `${sum(bySecond)} of ${sum(askedBySecond)} within 6 s`)
  })
}

const BUCKET = POLICIES[0] as Policy
const sumOf = (rows: readonly (readonly number[])[], from: number, to: number): number =>
  rows.reduce((all, row) => all + row.slice(from, to).reduce((sum, each) => sum + each, 0), 0)

for (const [i, perSecond] of [
  [100, 60, 40],
  [160, 30, 10],
].entries()) {
  everyNth(i, 2)(`under twice the limit regions use the budget of a bucket, each in proportion to its demand: ${perSecond}`, async () => {
    const seconds = shortOrLong(40, 60)
    const { admitted, exact, bySecond, askedBySecond, messages } = await regionUse({
      policy: BUCKET,
      delaysMs: DELAYS_MS,
      seconds,
      warmUpS: 20,
      seed: 1,
      demand: perSecond.map(constant),
    })
    assert.ok(admitted >= 0.95 * exact, `${admitted} of ${exact}`)
    // A renewal under scarcity is two calls.
    assert.ok(messages <= 2.2, `${messages} calls a second and region`)
    const parts = bySecond.map((row, i) => sumOf([row], 20, seconds) / sumOf([askedBySecond[i] ?? []], 20, seconds))
    assert.ok(Math.min(...parts) >= 0.33 && Math.max(...parts) <= 0.8, `parts of the demand: ${parts}`)
  })
}

const SHIFTED = [
  BUCKET,
  slidingWindow({ limit: 3000, window: '30s', name: 'a sliding window' }),
  gcra({ limit: 100, window: '1s', burst: 1000, name: 'GCRA' }),
  POLICIES[1] as Policy,
].slice(0, shortOrLong(2, 4))
const DELAYS_OF_SHIFTS = [[20, 75], [10, 20, 30, 40, 50, 60, 75, 90, 120, 150], DELAYS_MS].slice(0, 2)
const SHIFT_S = 33

// All that the home has goes to the region at once. What the other one holds then is lost, and the region gets its tokens once a second.
for (const [i, policy] of SHIFTED.entries()) {
  for (const [j, delaysMs] of DELAYS_OF_SHIFTS.entries()) {
    everyNth(i + j, 4)(`with demand at twice the limit ${policy.name} follows it over ${delaysMs.length} regions`, async (t) => {
      const parts = { soon: 0, later: 0 }
      const runs = shortOrLong(1, 4)
      for (let seed = 1; seed <= runs; seed++) {
        const ofRegion = (i: number) => (second: number) => (i === (second < SHIFT_S ? 0 : delaysMs.length - 1) ? 200 : 0)
        const demand = delaysMs.map((_, i) => ofRegion(i))
        const { bySecond } = await regionUse({ policy, delaysMs, demand, seconds: SHIFT_S + 8, warmUpS: 5, seed })
        parts.soon += sumOf(bySecond.slice(-1), SHIFT_S, SHIFT_S + 3) / 300 / runs
        parts.later += sumOf(bySecond, SHIFT_S + 3, SHIFT_S + 8) / 500 / runs
      }
      const text = `${(100 * parts.soon).toFixed(0)} % in 3 s, ${(100 * parts.later).toFixed(0)} % in the 5 s after`
      assert.ok(parts.soon >= 0.7 && parts.later >= 0.9, text)
      t.diagnostic(text)
    })
  }
}

/** A region whose store's clock is set an hour ahead each 10 s. */
async function messagesUnderSteps(seesSteps: boolean): Promise<number> {
  const seconds = shortOrLong(40, 60)
  const { messages } = await regionUse({
    policy: tokenBucket({ limit: 1000, window: '1s', burst: 10_000, name: 'a large bucket' }),
    delaysMs: [20],
    demand: [constant(90)],
    seconds,
    warmUpS: 10,
    seed: 1,
    pool: { ...SOUND_POOL, seesSteps },
    plan: ({ time, regions }) => {
      for (let second = 20; second < seconds; second += 10) time.inUs(second * 1_000_000 + 300_000, () => regions[0]?.step(3_600_000_000))
    },
  })
  return messages
}

test('a clock that is set ahead does not make the demand of its region look low; the planted fault is found', async () => {
  const [sound, faulty] = [await messagesUnderSteps(true), await messagesUnderSteps(false)]
  assert.ok(sound <= 1 && faulty > 1.2, `${sound} messages a second, ${faulty} with the fault`)
})

test('a region without demand holds at most a hundredth of the budget', async () => {
  const seconds = shortOrLong(20, 60)
  for (const policy of [BUCKET, slidingWindow({ limit: 3000, window: '30s', name: 'a sliding window' })]) {
    let most = 0
    await regionUse({
      policy,
      delaysMs: DELAYS_MS,
      // The last region has one request in ten seconds.
      demand: [constant(60), constant(30), (second) => (second % 10 === 0 ? 1 : 0)],
      seconds,
      warmUpS: 5,
      seed: 1,
      plan: ({ time, regions }) => {
        for (let ms = 0; ms < seconds * 1000; ms += 50)
          time.inUs(ms * 1000, () => (most = Math.max(most, regions[2]?.heldOf(policy.name, 'k') ?? 0)))
      },
    })
    assert.ok(most <= policy.burst / 100, `${most} tokens of ${policy.name}`)
  }
})

longTest('a run is the same each time', async () => {
  const run = () => regionUse({ policy: BUCKET, delaysMs: DELAYS_MS, demand: [100, 60, 40].map(constant), seconds: 6, warmUpS: 3, seed: 7 })
  assert.deepEqual(await run(), await run())
})

test('of a warm key a process draws on its region as rarely as it leases from one store, and returns nothing', async () => {
  const policy = tokenBucket({ limit: 100_000, window: '1s', burst: 800_000, name: 'a warm bucket' })
  const world = new RegionWorld({ policy, regions: [{ link: { delayUs: 20_000 }, processes: 1 }], random: new Random(1) })
  const { time } = world
  const [region] = world.regions as [SimRegion]
  const take = (): void => {
    for (let i = 0; i < 20; i++) region.take('k', 1)
    time.inUs(5_000, take)
  }
  take()
  await world.run(4_000_000)
  const [calls, messages] = [region.storeCalls, region.messages]
  await world.run(14_000_000)
  // A draw lasts 100 ms, and the next one comes when a quarter of it is left. A renewal is a message and a deposit.
  assert.ok(region.storeCalls - calls <= 10 * (1000 / 75 + 1), `${region.storeCalls - calls} calls in 10 s`)
  assert.ok(region.messages - messages <= 6, `${region.messages - messages} messages in 10 s, with a full budget`)
})

/** Six processes in each of three regions, at ten times the limit: Jain's index of what they got, and how long one waits for an admission. */
async function sharedByProcesses(meters: boolean): Promise<{ readonly jain: number; readonly longestUs: number }> {
  // Over fewer seconds the index says more of chance than of the lease.
  const [processes, seconds, fromUs, second] = [6, 60, 8_000_000, 1_000_000]
  const regions = DELAYS_MS.map((ms) => ({ link: { delayUs: ms * 1000 }, processes }))
  const world = new RegionWorld({ policy: BUCKET, regions, random: new Random(1), pool: { ...SOUND_POOL, meters } })
  const random = new Random(2)
  const all = world.regions.flatMap((region) => region.limiters.map((limiter) => ({ limiter, got: 0, lastUs: fromUs, longestUs: 0 })))
  for (const each of all) {
    for (let atUs = 0; atUs < seconds * second; atUs += Math.ceil(random.exponential(second / (1000 / all.length)))) {
      world.time.inUs(atUs, async () => {
        const { allowed } = await each.limiter.take('k')
        const { nowUs } = world.time
        if (!allowed || nowUs < fromUs) return
        each.got++
        each.longestUs = Math.max(each.longestUs, nowUs - each.lastUs)
        each.lastUs = nowUs
      })
    }
  }
  await world.run(seconds * second)
  const sum = all.reduce((total, { got }) => total + got, 0)
  const longest = all.map(({ longestUs, lastUs }) => Math.max(longestUs, seconds * second - lastUs))
  return { jain: sum ** 2 / (all.length * all.reduce((total, { got }) => total + got * got, 0)), longestUs: Math.max(...longest) }
}

test('at ten times the limit no process of a region goes without; the planted fault is found', async (t) => {
  const [sound, faulty] = [await sharedByProcesses(true), await sharedByProcesses(false)]
  t.diagnostic(JSON.stringify({ sound, faulty }))
  assert.ok(sound.jain > 0.93 && sound.longestUs < 3_000_000, JSON.stringify(sound))
  assert.ok(faulty.jain < sound.jain - 0.03 && faulty.longestUs > sound.longestUs)
})

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Random, seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { type OwnRedis, ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { PoolTwin } from 'sluicegate-testkit/regions/pool-twin.js'
import { CallGuard } from '../shared/calls/call-guard.js'
import { preciseClock } from '../time/clock.js'
import { RedisKeys } from './redis-keys.js'
import { RedisRegionPool } from './redis-region-pool.js'

const SEQUENCES = shortOrLong(30, 200)
const STEPS = 60
const START_US = 1_700_000_000_000_000
const TERMS = { periodUs: 1_000_000, leadUs: 250_000, claimUs: 1_000_000, leaseUs: 4_000_000, foreseenUs: 0, isEager: false }
const ANYWHERE = { serverOf: () => undefined, slotOf: () => undefined }

let redis: OwnRedis

before(async () => {
  redis = await ownRedis()
})

after(() => redis.stop())

test('what a region holds changes by the script as by its twin, also when the clock is set', async () => {
  const time = new GivenTime(redis.runner)
  const guard = new CallGuard(ANYWHERE, preciseClock(), 10_000)
  const pool = new RedisRegionPool(time, new RedisKeys('regions'), guard, 'p')
  for (const seed of seedsFrom(1, SEQUENCES)) {
    const random = new Random(seed)
    const twin = new PoolTwin()
    const key = `k${seed}`
    time.nowUs = START_US
    let claimedUs = START_US
    let lastEndUs = 0
    for (let step = 0; step < STEPS; step++) {
      time.nowUs += random.chance(0.03) ? -random.integer(1, 5_000_000) : random.magnitude(1, 3_000_000)
      const { nowUs } = time
      const where = `seed ${seed}, step ${step}`
      const amount = random.integer(1, 40)
      switch (random.integer(0, 9)) {
        case 0:
        case 1:
        case 2: {
          const deposit = {
            isRenewal: random.chance(0.8),
            claimedUs,
            lastUs: random.integer(0, 4_000_000),
            agoUs: random.integer(0, 1_000_000),
            tokens: random.pick([0, amount]),
            wanted: random.integer(1, 40),
            least: random.integer(1, 3),
            deniedUs: random.pick([0, random.magnitude(1, 9_000_000)]),
            blockedUs: random.chance(0.1) ? random.magnitude(1, 9_000_000) : 0,
            rest: amount,
            fullUs: random.magnitude(1, 9_000_000),
            total: random.pick([undefined, 0.000_1]),
            periodUs: TERMS.periodUs,
            grantId: random.integer(0, START_US),
          }
          const [actual, expected] = [await pool.deposit(key, deposit), twin.deposit(nowUs, deposit)]
          assert.equal(actual, expected, where)
          lastEndUs = actual
          break
        }
        case 3: {
          const lot = { tokens: amount, endUs: nowUs + random.pick([-1_000_000, -100_000, 1_000_000, 3_600_000_000]), grantId: step }
          assert.equal(await pool.back(key, lot), twin.back(nowUs, lot), where)
          break
        }
        case 4:
          if (random.chance(0.5)) assert.equal(await pool.reclaim(key, lastEndUs), twin.reclaim(nowUs, lastEndUs), where)
          if (random.chance(0.3)) assert.equal(await pool.settle(key), twin.settle(nowUs), where)
          {
            const tokens = random.pick([0, amount, -amount])
            assert.equal(await pool.owe(key, tokens), twin.owe(nowUs, tokens), where)
          }
          break
        case 5:
          if (random.chance(0.3)) {
            const us = random.pick([0, random.magnitude(1, 5_000_000)])
            await pool.block(key, us)
            twin.block(nowUs, us)
          } else if (random.chance(0.1)) {
            await pool.reset(key)
            twin.reset(nowUs)
          } else {
            await pool.lost(key, amount)
            twin.lost(nowUs, amount)
          }
          break
        default: {
          const draw = { want: amount, least: random.integer(1, amount), demand: random.pick([undefined, amount, 3 * amount]) }
          const terms = { ...TERMS, isEager: random.chance(0.3), foreseenUs: random.pick([0, nowUs - random.magnitude(1, 5_000_000)]) }
          const [actual, expected] = [await pool.draw(key, draw, terms), twin.draw(nowUs, draw, terms)]
          const { claim, ...exact } = actual
          const { claim: twinClaim, ...twinExact } = expected
          assert.deepEqual(exact, twinExact, where)
          assert.deepEqual([claim?.agoUs, claim?.owed], [twinClaim?.agoUs, twinClaim?.owed], where)
          if (claim !== undefined && twinClaim !== undefined) {
            const { pace, total } = twinClaim
            assert.ok(Math.abs(claim.pace - pace) <= 1e-6 * pace + 1e-12, `${where}: ${claim.pace} and ${pace}`)
            assert.ok(Math.abs(claim.total - total) <= 1e-9, where)
            claimedUs = actual.nowUs
          }
        }
      }
    }
  }
})

test('tokens that come back after the clock was set back are void', async () => {
  const time = new GivenTime(redis.runner)
  const guard = new CallGuard(ANYWHERE, preciseClock(), 10_000)
  const pool = new RedisRegionPool(time, new RedisKeys('set back'), guard, 'p')
  time.nowUs = START_US
  const given = { isRenewal: true, claimedUs: START_US, lastUs: 4_000_000, agoUs: 0, tokens: 50, wanted: 50, least: 1 }
  const nothing = { deniedUs: 0, blockedUs: 0, rest: 0, fullUs: 0, total: undefined, periodUs: TERMS.periodUs, grantId: 7 }
  await pool.deposit('k', { ...given, ...nothing })
  const { lots } = await pool.draw('k', { want: 50, least: 1, demand: 50 }, TERMS)
  assert.equal(lots[0]?.tokens, 50)
  time.nowUs -= 1_800_000_000
  for (const lot of lots) await pool.back('k', lot)
  assert.equal((await pool.draw('k', { want: 1, least: 1, demand: 1 }, TERMS)).tokens, 0)
})

test('tokens that come back a moment after their end are not drawn, and go back to the home', async () => {
  const time = new GivenTime(redis.runner)
  const guard = new CallGuard(ANYWHERE, preciseClock(), 10_000)
  const pool = new RedisRegionPool(time, new RedisKeys('late'), guard, 'p')
  time.nowUs = START_US
  const endUs = START_US + 1_000_000
  await pool.back('k', { tokens: 2, endUs, grantId: 7 })
  time.nowUs = endUs + 100_000
  assert.ok(await pool.back('k', { tokens: 5, endUs, grantId: 7 }))
  assert.equal((await pool.draw('k', { want: 7, least: 1, demand: 1 }, TERMS)).tokens, 0)
  assert.deepEqual([await pool.reclaim('k', endUs), await pool.reclaim('k', endUs)], [7, 0])
})

test('a reset forgets what a region holds and knows', async () => {
  const guard = new CallGuard(ANYWHERE, preciseClock(), 10_000)
  const pool = new RedisRegionPool(redis.runner, new RedisKeys('resets'), guard, 'p')
  await pool.block('k', 60_000_000)
  assert.ok((await pool.draw('k', { want: 1, least: 1, demand: 1 }, TERMS)).blockedUs > 0)
  await pool.reset('k')
  assert.equal((await pool.draw('k', { want: 1, least: 1, demand: 1 }, TERMS)).blockedUs, 0)
})

test('keys of regions end by themselves, and those that owe are kept for a day', async () => {
  const guard = new CallGuard(ANYWHERE, preciseClock(), 10_000)
  const pool = new RedisRegionPool(redis.runner, new RedisKeys('ends'), guard, 'p')
  const ttlOf = async (key: string): Promise<number> => Number(await redis.send('PTTL', `ends:region:p:{${key}}`))
  await pool.draw('idle', { want: 1, least: 1, demand: 1 }, TERMS)
  assert.ok((await ttlOf('idle')) > 0 && (await ttlOf('idle')) <= 60_000)
  await pool.owe('owing', 3)
  assert.ok((await ttlOf('owing')) > 80_000_000)
})

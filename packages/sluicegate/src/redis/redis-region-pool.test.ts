import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Random, seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { type OwnRedis, ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { RegionKey } from '../regions/region-key.js'
import { CallGuard } from '../shared/calls/call-guard.js'
import { preciseClock } from '../time/clock.js'
import { RedisKeys } from './redis-keys.js'
import { RedisRegionPool } from './redis-region-pool.js'

const SEQUENCES = shortOrLong(15, 60)
const STEPS = 60
const START_US = 1_700_000_000_000_000
const DRAW = { want: 50, least: 1, demand: 1, leadUs: 250_000, foreseenUs: 0 }
const HOME = { isScarce: false, least: 1, deniedUs: 0, blockedUs: 0, rest: 0, fullUs: 0 }
const REFILL = { ...HOME, endsUs: 4_000_000, agoUs: 0, tokens: 50, grantId: 7 }
const ANYWHERE = { serverOf: () => undefined, slotOf: () => undefined }

let redis: OwnRedis

before(async () => {
  redis = await ownRedis()
})

after(() => redis.stop())

function poolOf(prefix: string): { readonly time: GivenTime; readonly pool: RedisRegionPool } {
  const time = new GivenTime(redis.runner)
  time.nowUs = START_US
  const guard = new CallGuard(ANYWHERE, preciseClock(), 10_000)
  return { time, pool: new RedisRegionPool(time, new RedisKeys(prefix), guard, 'p') }
}

test('what a region holds changes by the scripts as by their twin, also when the clock is set', async () => {
  const time = new GivenTime(redis.runner)
  const guard = new CallGuard(ANYWHERE, preciseClock(), 10_000)
  const pool = new RedisRegionPool(time, new RedisKeys('regions'), guard, 'p')
  for (const seed of seedsFrom(1, SEQUENCES)) {
    const random = new Random(seed)
    const twin = new RegionKey()
    const key = `k${seed}`
    let [nowUs, claimedUs, lastEndUs] = [START_US, START_US, 0]
    for (let step = 0; step < STEPS; step++) {
      nowUs += random.chance(0.03) ? -random.integer(1, 5_000_000) : random.magnitude(1, 3_000_000)
      time.nowUs = nowUs
      const where = `seed ${seed}, step ${step}`
      const amount = random.integer(1, 40)
      /** The same verb by both. */
      const both = async <T>(byScript: (pool: RedisRegionPool) => Promise<T>, byTwin: (twin: RegionKey) => unknown): Promise<T> => {
        const actual = await byScript(pool)
        twin.load(nowUs)
        assert.deepEqual(actual, byTwin(twin), where)
        return actual
      }
      switch (random.integer(0, 9)) {
        case 0:
        case 1: {
          const answer = {
            askedUs: claimedUs,
            isScarce: random.chance(0.5),
            least: random.integer(1, 3),
            deniedUs: random.pick([0, random.magnitude(1, 9_000_000)]),
            blockedUs: random.chance(0.1) ? random.magnitude(1, 9_000_000) : 0,
            rest: amount,
            fullUs: random.magnitude(1, 9_000_000),
          }
          const times = { endsUs: random.integer(0, 4_000_000), agoUs: random.integer(0, 1_000_000) }
          const refill = { ...answer, ...times, tokens: random.pick([0, amount]), grantId: random.integer(0, START_US) }
          const given = random.chance(0.2) ? answer : { ...refill, total: random.pick([undefined, 0.000_1]) }
          lastEndUs = await both(
            (own) => own.refill(key, given),
            (own) => own.refill(given),
          )
          break
        }
        case 2: {
          const claim = { claimedUs: random.pick([claimedUs, 1]), claimUs: 1_000_000 }
          const at = await both(
            (own) => own.claim(key, claim),
            (own) => own.claim(claim),
          )
          if (at > 0) claimedUs = at
          break
        }
        case 3: {
          const batch = { tokens: amount, endUs: nowUs + random.pick([-1_000_000, -100_000, 1_000_000, 3_600_000_000]), grantId: step }
          await both(
            (own) => own.giveBack(key, batch),
            (own) => own.giveBack(batch),
          )
          break
        }
        case 4: {
          const tokens = random.pick([0, amount, -amount])
          await both(
            (own) => own.addDebt(key, tokens),
            (own) => own.addDebt(tokens),
          )
          break
        }
        case 5:
          if (random.chance(0.5))
            await both(
              (own) => own.reclaim(key, lastEndUs),
              (own) => own.reclaim(lastEndUs),
            )
          else
            await both(
              (own) => own.takeDebt(key),
              (own) => own.takeDebt(),
            )
          break
        case 6: {
          const us = random.pick([0, random.magnitude(1, 5_000_000)])
          if (random.chance(0.5))
            await both(
              (own) => own.block(key, us),
              (own) => own.block(us),
            )
          break
        }
        default: {
          const foreseenUs = random.pick([0, nowUs - random.magnitude(1, 5_000_000)])
          const draw = { want: amount, least: random.integer(1, amount), demand: random.pick([undefined, amount, 3 * amount]) }
          const given = { ...draw, leadUs: 250_000, foreseenUs }
          const drawn = await pool.draw(key, given)
          const own = draw.demand === undefined ? twin.copy() : twin
          own.load(nowUs)
          const expected = own.draw(given)
          assert.ok(Math.abs(drawn.pace - expected.pace) <= 1e-6 * expected.pace + 1e-12, `${where}: ${drawn.pace} and ${expected.pace}`)
          assert.deepEqual({ ...drawn, pace: 0 }, { ...expected, pace: 0 }, where)
          claimedUs = drawn.claimedUs
        }
      }
    }
  }
})

test('tokens that come back after the clock was set back are void', async () => {
  const { time, pool } = poolOf('set back')
  await pool.refill('k', { ...REFILL, askedUs: START_US })
  const { batches } = await pool.draw('k', DRAW)
  assert.equal(batches[0]?.tokens, 50)
  time.nowUs -= 1_800_000_000
  for (const batch of batches) await pool.giveBack('k', batch)
  assert.equal((await pool.draw('k', DRAW)).tokens, 0)
})

test('tokens that come back a moment after their end are not drawn, and go back to the home', async () => {
  const { time, pool } = poolOf('late')
  const endUs = START_US + 1_000_000
  await pool.giveBack('k', { tokens: 2, endUs, grantId: 7 })
  time.nowUs = endUs + 100_000
  assert.ok(await pool.giveBack('k', { tokens: 5, endUs, grantId: 7 }))
  assert.equal((await pool.draw('k', DRAW)).tokens, 0)
  assert.deepEqual([await pool.reclaim('k', endUs), await pool.reclaim('k', endUs)], [7, 0])
})

test('of two processes that find a key due one renews it', async () => {
  const { pool } = poolOf('claims')
  const { claimedUs } = await pool.draw('k', DRAW)
  const claim = { claimedUs, claimUs: 1_000_000 }
  assert.deepEqual([await pool.claim('k', claim), await pool.claim('k', claim)], [START_US, 0])
})

test('the end of a ban forgets what a region knows, but for what it owes', async () => {
  const { pool } = poolOf('bans')
  await pool.addDebt('k', 3)
  await pool.block('k', 60_000_000)
  assert.ok((await pool.draw('k', DRAW)).blockedUs > 0)
  await pool.block('k', 0)
  assert.equal((await pool.draw('k', DRAW)).blockedUs, 0)
  assert.deepEqual([await pool.takeDebt('k'), await pool.takeDebt('k')], [3, 0])
})

test('keys of regions end by themselves, and those that owe are kept for a day', async () => {
  const guard = new CallGuard(ANYWHERE, preciseClock(), 10_000)
  const pool = new RedisRegionPool(redis.runner, new RedisKeys('ends'), guard, 'p')
  const ttlOf = async (key: string): Promise<number> => Number(await redis.send('PTTL', `ends:region:p:{${key}}`))
  await pool.draw('idle', DRAW)
  assert.ok((await ttlOf('idle')) > 0 && (await ttlOf('idle')) <= 60_000)
  await pool.addDebt('owing', 3)
  assert.ok((await ttlOf('owing')) > 80_000_000)
})

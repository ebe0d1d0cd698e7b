import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { type RegionSetup, RegionWorld, type SimRegion } from 'sluicegate-testkit/regions/region-world.js'
import type { Permit } from '../decision/permit.js'
import { concurrency, fixedWindow, type Policy, slidingWindow, tokenBucket } from '../index.js'
import type { BackedLimiter } from '../shared/backed-limiter.js'

// In virtual time. What regions do while the home does not answer, what comes of it afterwards, and what reaches others.

const SECOND_US = 1_000_000
const DELAYS_MS = [20, 40, 75]
const BUCKET = tokenBucket({ limit: 100, window: '1s', burst: 1000, name: 'a bucket' })

function worldOf(policy: Policy, more: Partial<RegionSetup> = {}, delaysMs = DELAYS_MS): RegionWorld {
  const regions = delaysMs.map((ms) => ({ link: { delayUs: ms * 1000 }, share: 1 / 3, ...more }))
  return new RegionWorld({ policy, regions, random: new Random(1), homeIn: 'store' })
}

function at(world: RegionWorld, second: number, run: () => void): void {
  world.time.inUs(second * SECOND_US - world.time.nowUs, run)
}

/** Takes at random times. */
function demand(world: RegionWorld, region: SimRegion, perSecond: number, fromS: number, untilS: number, key = 'k'): void {
  const random = new Random(Math.ceil(perSecond) + fromS)
  for (let atUs = fromS * SECOND_US; ; ) {
    atUs += Math.ceil(random.exponential(SECOND_US / perSecond))
    if (atUs >= untilS * SECOND_US) break
    at(world, atUs / SECOND_US, () => region.take(key, 1))
  }
}

function cutOff(world: RegionWorld, region: SimRegion, fromS: number, untilS: number): void {
  at(world, fromS, () => (region.isCutOff = true))
  at(world, untilS, () => (region.isCutOff = false))
}

/** Of several promises what they came to, once the world has run until then. */
async function later<T>(world: RegionWorld, untilS: number, promise: Promise<T> | T): Promise<T> {
  await world.run(untilS * SECOND_US)
  return promise
}

const counted = (list: readonly { readonly cost: number }[]): number => list.reduce((sum, { cost }) => sum + cost, 0)

for (const policy of [
  BUCKET,
  fixedWindow({ limit: 1500, window: '20s', name: 'a fixed window' }),
  slidingWindow({ limit: 1500, window: '20s', name: 'a sliding window' }),
]) {
  test(`after a region was cut off under a demand below ${policy.name}, nobody is denied`, async () => {
    const world = worldOf(policy)
    for (const region of world.regions) demand(world, region, 20, 0, 75)
    cutOff(world, world.regions[0] as SimRegion, 10, 55)
    await world.run(55 * SECOND_US)
    const before = world.regions.map(({ record }) => record.denied)
    await world.run(77 * SECOND_US)
    const denied = world.regions.map(({ record }, i) => record.denied - (before[i] as number))
    assert.deepEqual(denied, [0, 0, 0])
  })
}

test('what has not refilled is charged after an outage', async () => {
  const policy = fixedWindow({ limit: 1500, window: '1h', name: 'an hour' })
  const world = worldOf(policy)
  const [west, east] = world.regions as [SimRegion, SimRegion]
  demand(world, west, 20, 0, 40)
  cutOff(world, west, 10, 30)
  await world.run(50 * SECOND_US)
  const spent = counted(world.admissions) + counted(west.record.alone)
  assert.ok(counted(west.record.alone) > 200, 'the share decided')
  const { remaining } = await later(world, 52, east.limiters[0]?.peek('k') as Promise<{ remaining: number }>)
  assert.ok(Math.abs(1500 - remaining - spent) <= 30, `${spent} spent, ${remaining} left`)
})

test('warm takes do not wait for a home that is a black hole', async () => {
  for (const policy of [
    BUCKET,
    fixedWindow({ limit: 10_000, window: '1h', name: 'an hour' }),
    tokenBucket({ limit: 10, window: '1s', name: 'small' }),
  ]) {
    for (const share of [1 / 3, 0]) await blackHole(policy, share)
  }
})

async function blackHole(policy: Policy, share: number): Promise<void> {
  const world = worldOf(policy, { timeoutMs: 1000, share }, [20])
  const [west] = world.regions as [SimRegion]
  demand(world, west, 20, 0, 60)
  cutOff(world, west, 10, 60)
  await world.run(10 * SECOND_US)
  const before = west.record.waitsUs.length
  // Takes wait for the first call that fails.
  await world.run(17 * SECOND_US)
  const known = west.record.waitsUs.length
  await world.run(62 * SECOND_US)
  const waits = west.record.waitsUs.slice(before)
  const long = waits.filter((us) => us > 300_000).length
  assert.ok(long <= (share > 0 ? 40 : 80), `${long} of ${waits.length} takes wait over 300 ms under ${policy.name}`)
  const later = west.record.waitsUs.slice(known)
  assert.ok(later.length > 800 && Math.max(...later) < 20_000, `${Math.max(...later)} us under ${policy.name}`)
}

test('a lifted ban ends in other regions within seconds, and a ban reaches regions whose keys begin with the share', async () => {
  for (const cold of ['home', 'share'] as const) {
    for (const lift of ['block', 'reset'] as const) {
      const world = worldOf(BUCKET, { cold })
      const [west, east] = world.regions as [SimRegion, SimRegion]
      for (const region of world.regions) demand(world, region, 5, 0, 40)
      await world.run(5 * SECOND_US)
      await later(world, 6, west.limiters[0]?.block('k', '1h'))
      await world.run(12 * SECOND_US)
      const banned = [east.record.denied, west.record.denied]
      await world.run(20 * SECOND_US)
      assert.ok(east.record.denied - (banned[0] as number) > 25, `${cold}: the ban is in force elsewhere`)
      const admitted = (): number => east.record.taken.length + east.record.alone.length + east.record.atHome.length
      const passed = admitted()
      await later(world, 21, lift === 'block' ? west.limiters[0]?.block('k', 0) : west.limiters[0]?.reset('k'))
      await world.run(25 * SECOND_US)
      const denied = east.record.denied
      await world.run(40 * SECOND_US)
      assert.ok(admitted() - passed > 70, `${cold}, ${lift}: ${admitted() - passed} passed after the end of the ban`)
      assert.equal(east.record.denied, denied, `${cold}, ${lift}`)
    }
  }
})

test('a ban lasts in its region, whatever a renewal brings that left before it', async () => {
  const world = worldOf(BUCKET, {}, [100])
  const [west] = world.regions as [SimRegion]
  demand(world, west, 20, 0, 20)
  await world.run(5 * SECOND_US)
  const passed = west.record.taken.length
  const ban = west.limiters[0]?.block('k', '1h')
  await world.run(20 * SECOND_US)
  await ban
  // What processes held.
  assert.ok(west.record.taken.length - passed <= 5, `${west.record.taken.length - passed} passed`)
})

test('what is reserved of a region and settled below comes back, also long after, as of one store', async () => {
  const policy = fixedWindow({ limit: 600, window: '1h', name: 'an hour' })
  const world = worldOf(policy, {}, [20])
  const [west] = world.regions as [SimRegion]
  demand(world, west, 50, 0, 4)
  await world.run(4 * SECOND_US)
  const limiter = west.limiters[0]
  const reserved = await Promise.all(
    Array.from({ length: 30 }, () => limiter?.reserve('k', 1)).map((each, i) => later(world, 4 + i / 100, each)),
  )
  const held = reserved.filter((each) => each?.allowed)
  const spent = counted(world.admissions)
  await world.run(20 * SECOND_US)
  for (const each of held) void each?.settle(0)
  await world.run(30 * SECOND_US)
  const { remaining } = await later(world, 31, limiter?.peek('k') as Promise<{ remaining: number }>)
  assert.ok(held.length >= 20, `${held.length} reserved`)
  assert.equal(remaining, 600 - spent)
})

test('what is reserved without the home and settled below is charged as it was settled', async () => {
  for (const mode of [50, 0]) {
    const policy = fixedWindow({ limit: 3000, window: '1h', name: 'an hour' })
    const world = worldOf(policy, { horizonMs: mode }, [20])
    const [west] = world.regions as [SimRegion]
    await world.run(SECOND_US)
    cutOff(world, west, 1, 20)
    let spent = 0
    for (let i = 0; i < 90; i++) {
      at(world, 3 + i / 10, async () => {
        const reservation = await west.limiters[0]?.reserve('k', 10)
        if (!reservation?.allowed) return
        spent++
        await reservation.settle(1)
      })
    }
    demand(world, west, 5, 21, 24)
    await world.run(26 * SECOND_US)
    const taken = counted(world.admissions) + counted(west.record.alone)
    const { remaining } = await later(world, 32, west.limiters[0]?.peek('k') as Promise<{ remaining: number }>)
    assert.ok(spent >= 80, `${spent} reserved`)
    assert.ok(Math.abs(3000 - remaining - spent - taken) <= 12, `${3000 - remaining} charged for ${spent + taken}`)
  }
})

test('a slow key is kept warm: one take in two seconds waits for the home in fewer than one case of ten, for little more than a call', async () => {
  const world = worldOf(BUCKET, {}, [20])
  const [west] = world.regions as [SimRegion]
  demand(world, west, 0.5, 0, 1000)
  await world.run(1010 * SECOND_US)
  const { waitsUs } = west.record
  const waited = waitsUs.filter((us) => us > 20_000).length
  assert.ok(waitsUs.length > 400 && waited < waitsUs.length / 10, `${waited} of ${waitsUs.length} waited`)
  assert.ok(west.messages < 1.2 * waitsUs.length, `${west.messages} calls`)
})

test('stats say that the home is out from the first call on that failed', async () => {
  const world = worldOf(BUCKET, {}, [20])
  const [west] = world.regions as [SimRegion]
  west.take('k', 1, 0)
  await world.run(SECOND_US)
  const isHomeOut = (): boolean | undefined => west.limiters[0]?.stats().region?.isHomeOut
  assert.equal(isHomeOut(), false)
  cutOff(world, west, 2, 4)
  at(world, 2.1, () => west.take('another', 1, 0))
  await world.run(3.9 * SECOND_US)
  assert.equal(isHomeOut(), true)
  at(world, 4.5, () => west.take('another', 1, 0))
  await world.run(6 * SECOND_US)
  assert.equal(isHomeOut(), false)
})

test('what was reserved at the home and is settled while it is out comes back when it answers', async () => {
  const policy = tokenBucket({ limit: 10, window: '1h', burst: 10, name: 'small' })
  const world = worldOf(policy, {}, [20])
  const [west] = world.regions as [SimRegion]
  const limiter = west.limiters[0]
  const reservation = await later(world, 1, limiter?.reserve('k', 8))
  assert.ok(reservation?.allowed)
  cutOff(world, west, 2, 20)
  demand(world, west, 5, 3, 6, 'another')
  await world.run(10 * SECOND_US)
  void reservation?.settle(1)
  demand(world, west, 5, 21, 28, 'another')
  await world.run(30 * SECOND_US)
  const { remaining } = await later(world, 31, limiter?.peek('k') as Promise<{ remaining: number }>)
  assert.equal(remaining, 9)
})

test('permits that are released while the home is out are free when it is back', async () => {
  const policy = concurrency({ limit: 10, ttl: '1h', name: 'permits' })
  const world = worldOf(policy, {}, [20])
  const [west] = world.regions as [SimRegion]
  const limiter = west.limiters[0]
  const take = (): Promise<Permit<'later'>> => Promise.resolve(limiter?.take('k') as unknown as Permit<'later'>)
  const permits = await later(world, 1, Promise.all(Array.from({ length: 10 }, take)))
  assert.ok(permits.every(({ allowed }) => allowed))
  cutOff(world, west, 2, 20)
  demand(world, west, 5, 3, 6, 'another')
  await world.run(10 * SECOND_US)
  for (const permit of permits) void permit.release()
  const alone = await later(world, 12, Promise.all(Array.from({ length: 2 }, take)))
  assert.ok(alone.every(({ allowed, source }) => allowed && source === 'outage'))
  await world.run(22 * SECOND_US)
  for (const permit of alone) void permit.release()
  demand(world, west, 5, 22, 28, 'another')
  await world.run(30 * SECOND_US)
  const again = await later(world, 31, Promise.all(Array.from({ length: 10 }, take)))
  assert.equal(again.filter(({ allowed }) => allowed).length, 10)
})

test('with `cold: share` no take waits for the home; regions admit the policy and their shares at most, which are charged', async () => {
  const policy = fixedWindow({ limit: 60, window: '1h', name: 'cold' })
  const world = worldOf(policy, { cold: 'share' })
  for (const region of world.regions) demand(world, region, 6, 0, 20)
  await world.run(24 * SECOND_US)
  const waits = world.regions.flatMap(({ record }) => record.waitsUs)
  assert.ok(Math.max(...waits) < 20_000, `${Math.max(...waits)} us`)
  const all = world.regions.reduce((sum, { record }) => sum + counted(record.taken) + counted(record.alone), 0)
  assert.ok(all >= 60 && all <= 120, `${all} of 60`)
  const [west] = world.regions as [SimRegion]
  const { remaining } = await later(world, 26, west.limiters[0]?.peek('k') as Promise<{ remaining: number }>)
  assert.equal(remaining, 0)
})

test('with `cold: share` what rare takes admit is charged, and a take costs one call beside it', async () => {
  const policy = fixedWindow({ limit: 600, window: '1h', name: 'rare' })
  const world = worldOf(policy, { cold: 'share' }, [20])
  const [west] = world.regions as [SimRegion]
  for (let i = 0; i < 20; i++) at(world, i * 10, () => west.take('k', 1))
  await world.run(205 * SECOND_US)
  const { messages } = west
  const { remaining } = await later(world, 207, west.limiters[0]?.peek('k') as Promise<{ remaining: number }>)
  assert.ok(remaining >= 578 && remaining <= 580, `${remaining}`)
  assert.ok(messages <= 45, `${messages} messages`)
})

test('a store that restarts empty while the home is cut off brings no new share', async () => {
  const policy = fixedWindow({ limit: 60, window: '1h', name: 'restarts' })
  const world = worldOf(policy, { horizonMs: 0 }, [20])
  const [west] = world.regions as [SimRegion]
  cutOff(world, west, 0, 20)
  demand(world, west, 20, 0, 18)
  for (const second of [5, 9, 13]) at(world, second, () => west.forget())
  await world.run(19 * SECOND_US)
  const alone = counted(west.record.alone)
  // A third, and for each restart the takes that were on their way.
  assert.ok(alone >= 20 && alone <= 20 + 3, `${alone} of 20`)
  demand(world, west, 2, 20, 26)
  await world.run(30 * SECOND_US)
  // Of the share all is charged.
  const all = counted(world.admissions) + 20
  const { remaining } = await later(world, 40, west.limiters[0]?.peek('k') as Promise<{ remaining: number }>)
  assert.ok(Math.abs(60 - remaining - all) <= 1, `${60 - remaining} charged of ${all}`)
})

test('with a share of 0 no process admits anything without the home and the store of its region', async () => {
  const world = worldOf(BUCKET, { share: 0 }, [20])
  const [west] = world.regions as [SimRegion]
  cutOff(world, west, 0, 60)
  west.isStoreOut = true
  for (let i = 0; i < 50; i++) at(world, i / 5, () => west.take(`k${i % 7}`, 1))
  await world.run(70 * SECOND_US)
  assert.equal(counted(west.record.alone), 0)
  assert.deepEqual([west.record.denied, west.record.errors, west.record.waitsUs.length], [50, 0, 50])
})

test('processes that end one after another lose no tokens of a window', async () => {
  const policy = fixedWindow({ limit: 200, window: '1d', name: 'a day' })
  const world = new RegionWorld({ policy, regions: [{ link: { delayUs: 20_000 }, processes: 1 }], random: new Random(1), homeIn: 'store' })
  const [west] = world.regions as [SimRegion]
  for (let process = 0; process < 16; process++) {
    const fromS = process * 1.5
    demand(world, west, 12, fromS, fromS + 1)
    at(world, fromS + 1.1, () => west.end(0))
  }
  demand(world, west, 20, 32, 50)
  await world.run(55 * SECOND_US)
  assert.ok(counted(world.admissions) >= 199, `${counted(world.admissions)} of 200`)
})

test('a wait that is booked at the home is not moved by tokens that its region holds', async () => {
  const policy = fixedWindow({ limit: 1500, window: '20s', name: 'a fixed window' })
  const world = worldOf(policy)
  const [west, east] = world.regions as [SimRegion, SimRegion]
  demand(world, west, 20, 0, 5)
  await world.run(5 * SECOND_US)
  const [here] = west.limiters as [BackedLimiter]
  void east.limiters[0]?.penalize('k', 1500)
  await world.run(5.2 * SECOND_US)
  const cost = west.heldOf(policy.name, 'k') + 1
  const before = here.stats().chargedTokens
  const waiting = here.wait('k', { cost })
  await world.run(7 * SECOND_US)
  assert.ok(west.heldOf(policy.name, 'k') > 0, 'the region holds tokens')
  const { allowed } = await later(world, 40, waiting)
  assert.deepEqual([allowed, here.stats().chargedTokens - before], [true, cost])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { type Admission, type Excess, firstOver } from 'sluicegate-testkit/history/excess.js'
import { specOf } from 'sluicegate-testkit/kit.js'
import { Random } from 'sluicegate-testkit/random.js'
import { type PoolRules, SOUND_POOL } from 'sluicegate-testkit/regions/pool-twin.js'
import { RegionWorld, type SimRegion } from 'sluicegate-testkit/regions/region-world.js'
import { fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from '../../dist/index.js'
import type { Policy } from '../../dist/policy/policy.js'
import { regionTermsOf } from '../../dist/regions/region-terms.js'

const FORMS = ['rate', 'fixed-window', 'sliding-window', 'sliding-log', 'slow-rate'] as const
type RegionForm = (typeof FORMS)[number]
const REGION_FORMS: readonly RegionForm[] = FORMS

/** What a history goes by. */
interface RegionRules {
  readonly name: string
  readonly pool: PoolRules
  /** How long the home believes that its leases last. */
  homeLeaseUs(leaseUs: number): number
  /** Whether some of the requests are reservations that are cancelled, soon or long after. */
  readonly holds?: boolean
}

const SOUND_REGIONS: RegionRules = { name: 'sound', pool: SOUND_POOL, homeLeaseUs: (leaseUs) => leaseUs }
const HOLDING_REGIONS: RegionRules = { ...SOUND_REGIONS, name: 'with reservations', holds: true }

type FaultyRegions = RegionRules & { readonly forms: Readonly<Partial<Record<RegionForm, number>>> }

function broken(name: string, forms: FaultyRegions['forms'], rules: Partial<RegionRules>): FaultyRegions {
  return { ...SOUND_REGIONS, ...rules, name, forms }
}

/** One rule broken each, with the forms in which that is seen, and from which seed on it is looked for: a history takes 80 ms. */
const FAULTY_REGIONS: readonly FaultyRegions[] = [
  broken(
    'tokens of a region end counted from their arrival',
    { 'fixed-window': 382 },
    { pool: { ...SOUND_POOL, endOf: ({ endsUs }, nowUs) => nowUs + endsUs } },
  ),
  broken(
    'tokens of a region have no end',
    { rate: 5, 'fixed-window': 46, 'sliding-log': 26 },
    { pool: { ...SOUND_POOL, endOf: (_refill, nowUs) => nowUs + 3_600_000_000, longestUs: Number.POSITIVE_INFINITY } },
  ),
  broken('a clock that ran back lets tokens live again', { rate: 89 }, { pool: { ...SOUND_POOL, voidsAfterStep: false } }),
  broken(
    'of ended tokens those that were spent go back to the home as well',
    { 'fixed-window': 4, 'sliding-window': 4, 'slow-rate': 1 },
    { pool: { ...SOUND_POOL, reclaimsLeft: false } },
  ),
  broken(
    'tokens that come back to the region go back to the home as well',
    { 'fixed-window': 1, 'sliding-window': 1 },
    {
      holds: true,
      pool: { ...SOUND_POOL, backsOnce: false },
    },
  ),
  broken('the home counts with shorter leases than the regions', { rate: 715 }, { homeLeaseUs: (leaseUs) => Math.round(leaseUs / 4) }),
]

/** What a history came to. */
interface RegionHistory {
  readonly policy: Policy
  readonly admissions: readonly Admission[]
  readonly alone: number
  readonly errors: number
}

const SECOND_US = 1_000_000
const HOUR_US = 3_600 * SECOND_US
const MOST_SECONDS = 60

/**
 * Two to ten regions, 20 to 300 ms from the home each, on one key: messages that are lost, late, doubled and overtake each other, regions cut
 * off and healed, stores of regions that lose what they hold, clocks an hour apart that are set while tokens are held, demand that moves from
 * region to region, and comes in bursts when tokens end.
 */
async function regionHistory(seed: number, rules: RegionRules, forms: readonly RegionForm[]): Promise<RegionHistory> {
  const random = new Random(seed)
  const policy = randomPolicy(random, random.pick(forms))
  const regions = Array.from({ length: random.pick([2, 2, 3, 3, random.integer(4, 10)]) }, () => ({
    link: {
      delayUs: random.integer(10_000, 150_000),
      jitterUs: random.pick([0, 5_000, 200_000]),
      lost: random.pick([0, 0, 0.05]),
      doubled: random.pick([0, 0, 0.05]),
    },
    processes: random.integer(1, 3),
    share: random.pick([0, 0.1]),
    timeoutMs: random.pick([400, 1000]),
  }))
  const world = new RegionWorld({
    policy,
    regions,
    random,
    pool: rules.pool,
    homeLeaseUs: rules.homeLeaseUs,
    offsetUs: HOUR_US,
    skew: 500,
  })
  const seconds = random.integer(15, policy.algorithm === 'sliding-log' ? 4 * MOST_SECONDS : MOST_SECONDS)
  demand(world, policy, random, seconds)
  if (rules.holds) holds(world, random, seconds)
  trouble(world, random, seconds)
  await world.run((seconds + 8) * SECOND_US)
  const alone = world.regions.reduce((sum, { record }) => sum + record.alone.reduce((all, { cost }) => all + cost, 0), 0)
  return { policy, admissions: world.admissions, alone, errors: world.regions.reduce((sum, { record }) => sum + record.errors, 0) }
}

/** Waves from region to region, of up to three times the rate, each broken off by a surge in all regions when that hurts most. */
function demand(world: RegionWorld, policy: Policy, random: Random, seconds: number): void {
  const { limit, windowMs, burst } = policy
  const perSecond = Math.max(0.4, (limit * 1000) / windowMs) * random.pick([0.7, 1.2, 3])
  const weights = world.regions.map(() => random.fraction() ** 2)
  const waveS = random.integer(3, 20)
  const mostCost = random.pick([1, 1, 3])
  let nowUs = 0
  while (nowUs < seconds * SECOND_US) {
    const endUs = nowUs + random.integer(2, 10) * SECOND_US
    const surgeUs = surgeAfter(policy, endUs, random)
    // Of a window up to its end, so that tokens are held across it.
    const lastUs = isWindow(policy)
      ? Math.ceil(endUs / (policy.windowMs * 1000)) * policy.windowMs * 1000 - random.integer(0, SECOND_US)
      : endUs
    for (; nowUs < lastUs; nowUs += SECOND_US) {
      for (const [i, region] of world.regions.entries()) {
        const wave = 0.5 + 0.5 * Math.sin(2 * Math.PI * (nowUs / SECOND_US / waveS + i / world.regions.length))
        const takes = Math.min(80, Math.round((2 * perSecond * wave * (weights[i] as number)) / mostCost + random.fraction()))
        const spanUs = Math.max(1, Math.min(SECOND_US, lastUs - nowUs))
        for (let take = 0; take < takes; take++) {
          world.time.inUs(nowUs + random.integer(0, spanUs), () => region.take('k', random.integer(1, mostCost)))
        }
      }
    }
    const size = Math.ceil((burst + 30) / world.regions.length)
    for (const at of [surgeUs, surgeUs, surgeUs + random.integer(1, SECOND_US)]) {
      world.time.inUs(at, () => {
        for (const region of world.regions) surge(region, random.chance(0.3) ? size : random.integer(1, size))
      })
    }
    if (random.chance(0.3)) world.time.inUs(endUs, () => random.pick(world.regions).step(-HOUR_US / 2))
    // Nothing that a process was to do for its tokens is done.
    if (random.chance(0.5)) world.time.inUs(lastUs, () => replaceAll(world))
    nowUs = Math.max(surgeUs, lastUs) + random.integer(0, 2) * SECOND_US
  }
}

function holds(world: RegionWorld, random: Random, seconds: number): void {
  for (let second = 0; second < seconds; second += random.magnitude(0.1, 4)) {
    const region = random.pick(world.regions)
    const [cost, us] = [random.integer(1, 5), random.magnitude(1_000, 10 * SECOND_US)]
    world.time.inUs(second * SECOND_US, () => void region.hold('k', cost, us))
  }
}

/** When tokens that are held must have ended, a little before or after: of a window in the next one, else after a lease. */
function surgeAfter(policy: Policy, endUs: number, random: Random): number {
  if (isWindow(policy)) {
    const windowUs = policy.windowMs * 1000
    const startUs = Math.ceil(endUs / windowUs) * windowUs
    // A sliding window admits its whole limit only towards its end.
    const isLate = policy.algorithm === 'sliding-window' && random.chance(0.7)
    return startUs + (isLate ? windowUs - random.integer(1, SECOND_US) : random.integer(0, 300_000))
  }
  const { leaseUs } = regionTermsOf(policy)
  const spanUs = policy.algorithm === 'sliding-log' ? policy.windowMs * 1000 : (policy.burst / policy.limit) * policy.windowMs * 1000
  return endUs + leaseUs + random.pick([random.integer(-300_000, 300_000), Math.round(spanUs), Math.round(spanUs * random.fraction())])
}

function isWindow({ algorithm }: Policy): boolean {
  return algorithm === 'fixed-window' || algorithm === 'sliding-window'
}

function replaceAll(world: RegionWorld): void {
  for (const region of world.regions) for (const process of region.limiters.keys()) region.replace(process)
}

function surge(region: SimRegion, takes: number): void {
  for (let take = 0; take < takes; take++) region.take('k', 1)
}

function trouble(world: RegionWorld, random: Random, seconds: number): void {
  for (let second = 0; second < seconds; second++) {
    const region = random.pick(world.regions)
    if (random.chance(0.03)) {
      later(world, random, second, () => {
        region.isCutOff = true
        world.time.inUs(random.integer(1, 8) * SECOND_US, () => {
          region.isCutOff = false
        })
      })
    }
    if (random.chance(0.02)) later(world, random, second, () => region.forget())
    // A step back by less than the key was idle for is not seen: it keeps the tokens alive for that much longer.
    if (random.chance(0.03)) later(world, random, second, () => region.step(random.pick([-HOUR_US / 2, HOUR_US / 2, 3 * SECOND_US])))
  }
}

function later(world: RegionWorld, random: Random, second: number, run: () => void): void {
  world.time.inUs(second * SECOND_US + random.integer(0, SECOND_US), run)
}

/** Small, so that its budget is often spent to the last token. */
function randomPolicy(random: Random, form: RegionForm): Policy {
  if (form === 'rate') {
    const limit = random.integer(3, 20)
    const burst = Math.max(20, Math.ceil(limit * (4 + 8 * random.fraction() ** 2)))
    return random.pick([tokenBucket, gcra])({ limit, window: '1s', burst, name: 'p' })
  }
  // Of what ends unspent more comes back than has flowed back.
  if (form === 'slow-rate') {
    const limit = random.integer(20, 40)
    return random.pick([tokenBucket, gcra])({ limit, window: random.integer(100_000, 600_000), burst: limit, name: 'p' })
  }
  const window = random.integer(form === 'sliding-log' ? 80 : 20, form === 'sliding-log' ? 90 : 50) * 1000
  const limit = random.integer(20, 200)
  const make = { 'fixed-window': fixedWindow, 'sliding-window': slidingWindow, 'sliding-log': slidingLog }[form]
  return make({ limit, window, name: 'p' })
}

/** What many histories came to. */
interface RegionRun {
  readonly histories: number
  readonly admitted: number
  readonly alone: number
  readonly excess: (Excess & { readonly seed: number; readonly policy: string }) | undefined
}

/** Runs the histories of seeds until one goes over the budget. What regions admit by their shares, without the home, is beside it. */
async function firstRegionExcess(seeds: Iterable<number>, rules: RegionRules, forms: readonly RegionForm[]): Promise<RegionRun> {
  let histories = 0
  let admitted = 0
  let alone = 0
  for (const seed of seeds) {
    const history = await regionHistory(seed, rules, forms)
    histories++
    for (const { cost } of history.admissions) admitted += cost
    alone += history.alone
    const excess = firstOver(specOf(history.policy), history.admissions)
    if (excess !== undefined) {
      const { limit, windowMs, burst, algorithm } = history.policy
      return { histories, admitted, alone, excess: { ...excess, seed, policy: `${algorithm} ${limit} per ${windowMs} ms, burst ${burst}` } }
    }
  }
  return { histories, admitted, alone, excess: undefined }
}

const HISTORIES = shortOrLong(2, 6)
const MOST_FOR_A_FAULT = 1_500

for (const form of REGION_FORMS) {
  test(`I1: regions never admit more of a ${form} than the policy, whatever becomes of messages, stores and clocks`, async (t) => {
    const { admitted, alone, excess } = await firstRegionExcess(seedsFrom(1, HISTORIES), SOUND_REGIONS, [form])
    assert.equal(excess, undefined)
    assert.ok(admitted > 20 * HISTORIES, `${admitted} tokens passed`)
    t.diagnostic(`${admitted} tokens passed, and ${alone} more by shares of regions without the home`)
  })
}

for (const form of REGION_FORMS.slice(0, shortOrLong(2, FORMS.length))) {
  test(`I1: nor where reservations of a ${form} are cancelled, soon or long after`, async () => {
    const { excess } = await firstRegionExcess(seedsFrom(1, HISTORIES), HOLDING_REGIONS, [form])
    assert.equal(excess, undefined)
  })
}

for (const rules of FAULTY_REGIONS) {
  for (const form of REGION_FORMS) {
    const first = rules.forms[form]
    if (first === undefined) continue
    test(`the histories of regions find the planted fault in a ${form}: ${rules.name}`, async (t) => {
      const { histories, excess } = await firstRegionExcess(seedsFrom(first, MOST_FOR_A_FAULT), rules, [form])
      assert.notEqual(excess, undefined, `not found in ${histories} histories`)
      t.diagnostic(`found in history ${histories}`)
    })
  }
}

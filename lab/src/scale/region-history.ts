import { type Admission, type Excess, firstExcess, Random } from 'sluicegate-testkit'
import { Timeline } from 'sluicegate-testkit/leases/timeline.js'
import { RegionAuthority } from './region-authority.js'
import type { RegionBudget, RegionGrant } from './region-budget.js'
import type { FaultyRegions } from './region-faults.js'
import { RegionStore } from './region-store.js'

const MOST_EVENTS = 600
/** Moments of a siege. */
const SIEGE_STEPS = 24
const MOST_AT_ONCE = 400
/** The fastest and the slowest clock: one part in two thousand, half of what the library allows between two clocks. */
const CLOCK_PACE = 2_000
const MOST_OFFSET_US = 600_000_000

/** A history, what was admitted in it in true time, and the first interval over the bound. */
export interface RegionHistory {
  readonly budget: RegionBudget
  readonly admissions: readonly Admission[]
  readonly grants: number
  readonly excess: Excess | undefined
}

/**
 * Regions and their authority under one budget: messages are delayed, lost and overtake each other, regions are cut off, the authority and
 * what renews the grants restart, clocks are off by a constant and by their pace. Each region spends all it can at the moments at which
 * rates change, as late as its leases allow.
 *
 * The bound: in every interval at most `burst + rate x length`, the rate faster by the pace of the fastest clock.
 */
export function regionHistory(seed: number, rules: FaultyRegions): RegionHistory {
  const history = new Regions(new Random(seed), rules).run()
  const { limit, windowMs, burst } = history.budget
  const spec = { limit: limit * (CLOCK_PACE + 1), windowMs: windowMs * CLOCK_PACE, burst }
  return { ...history, excess: firstExcess(spec, history.admissions) }
}

class Regions {
  readonly #random: Random
  readonly #budget: RegionBudget
  readonly #authority: RegionAuthority
  readonly #authorityClock: SkewedClock
  readonly #regions: Region[]
  readonly #time = new Timeline(1_000_000)
  readonly #admissions: Admission[] = []
  /** Regions spend only where rates overlap if at all, with all their burst. */
  readonly #isPatient: boolean
  #siegedUntilUs = 0
  #grants = 0

  constructor(random: Random, { authority, region }: FaultyRegions) {
    this.#random = random
    this.#budget = randomBudget(random)
    this.#isPatient = random.chance(0.6)
    this.#authorityClock = new SkewedClock(random)
    this.#authority = new RegionAuthority(this.#budget, authority, this.#authorityClock.us(this.#time.nowUs))
    this.#regions = Array.from({ length: this.#budget.regions }, () => {
      const clock = new SkewedClock(random)
      return new Region(clock, new RegionStore(this.#budget, region, clock.us(this.#time.nowUs)))
    })
  }

  run(): Omit<RegionHistory, 'excess'> {
    for (const region of this.#regions) this.#time.inUs(0, () => this.#turn(region))
    this.#time.inUs(this.#gapUs(), () => this.#authorityTurn())
    this.#time.run(MOST_EVENTS)
    for (const { store } of this.#regions) store.close()
    return { budget: this.#budget, admissions: this.#admissions, grants: this.#grants }
  }

  /** Something that a region does by itself. */
  #turn(region: Region): void {
    const random = this.#random
    this.#time.inUs(this.#gapUs(), () => this.#turn(region))
    if (this.#time.nowUs < region.cutOffUntilUs) return
    if (random.chance(0.05)) region.cutOffUntilUs = this.#time.nowUs + random.magnitude(1, 3 * this.#budget.termMs * 1000)
    else if (random.chance(0.03)) {
      region.life++
      region.store.forget(region.clock.us(this.#time.nowUs))
    } else if (random.chance(0.7)) this.#renew(region)
    else if (!this.#isPatient) this.#spend(region)
  }

  #authorityTurn(): void {
    this.#time.inUs(this.#random.magnitude(1, 8 * this.#budget.termMs * 1000), () => this.#authorityTurn())
    if (this.#random.chance(0.5)) this.#authority.restart(this.#authorityClock.us(this.#time.nowUs))
  }

  #renew(region: Region): void {
    const random = this.#random
    const demand = random.chance(0.3) ? 0 : random.magnitude(1, 4 * this.#budget.limit)
    const { store, clock, life } = region
    const sentUs = clock.us(this.#time.nowUs)
    const renewal = { region: this.#regions.indexOf(region), demand, applied: store.applied }
    this.#send(region, () => {
      const atUs = this.#authorityClock.us(this.#time.nowUs)
      const grant = this.#authority.renew(renewal, atUs)
      if (grant === undefined) return
      this.#grants++
      // When the authority counts the term as over, the others want its rate, and all spend.
      const overUs = this.#authorityClock.whenUs(atUs + this.#budget.termMs * 1000)
      if (random.chance(0.3)) this.#time.inUs(overUs - this.#time.nowUs, () => this.#surge(region))
      this.#send(region, () => {
        if (region.life === life) this.#granted(region, grant, sentUs)
      })
    })
  }

  /** At once and without loss. */
  #renewNow(region: Region, demand: number): void {
    const { store, clock } = region
    const sentUs = clock.us(this.#time.nowUs)
    const renewal = { region: this.#regions.indexOf(region), demand, applied: store.applied }
    const grant = this.#authority.renew(renewal, this.#authorityClock.us(this.#time.nowUs))
    if (grant === undefined) return
    this.#grants++
    store.granted(grant, sentUs, sentUs)
  }

  #granted(region: Region, grant: RegionGrant, sentUs: number): void {
    const { store, clock } = region
    store.granted(grant, sentUs, clock.us(this.#time.nowUs))
    // It goes by this grant to its end.
    if (this.#random.chance(0.3)) region.cutOffUntilUs = this.#time.nowUs + 3 * this.#budget.termMs * 1000
    else if (this.#random.chance(0.5)) this.#surge(region)
    if (store.untilUs === Number.POSITIVE_INFINITY || this.#random.chance(0.7)) return
    const endUs = Math.max(this.#time.nowUs, clock.whenUs(store.untilUs))
    this.#time.inUs(endUs - this.#time.nowUs, () => this.#surge(region))
  }

  /** The other regions get what they can from the authority, and all spend for a while. */
  #surge(region: Region): void {
    const random = this.#random
    const { nowUs } = this.#time
    if (nowUs < this.#siegedUntilUs) return
    if (random.chance(0.3)) this.#renewNow(region, 0)
    for (const other of this.#regions) if (other !== region && nowUs >= other.cutOffUntilUs) this.#renewNow(other, 4 * this.#budget.limit)
    const { termMs, windowMs } = this.#budget
    const forUs = random.pick([windowMs * 100, termMs * 2, termMs * 100, termMs * 1000])
    this.#siegedUntilUs = nowUs + forUs
    for (let step = 0; step < SIEGE_STEPS; step++) this.#time.inUs(Math.floor((forUs * step) / SIEGE_STEPS), () => this.#spendAll())
  }

  #spendAll(): void {
    for (const region of this.#regions) this.#spend(region)
  }

  /** All tokens that the store of the region has, each spent at once or as late as its lease allows. */
  #spend({ store, clock }: Region): void {
    const { nowUs } = this.#time
    const localUs = clock.us(nowUs)
    const lateUs = this.#random.chance(0.5) ? this.#budget.leaseMs * 1000 : 0
    for (let takes = 0; takes < MOST_AT_ONCE && store.take(localUs); takes++) this.#admissions.push({ atUs: nowUs + lateUs, cost: 1 })
  }

  #send(region: Region, arrive: () => void): void {
    const random = this.#random
    const isLost = (): boolean => this.#time.nowUs < region.cutOffUntilUs
    if (isLost() || random.chance(0.1)) return
    const delayUs = random.chance(0.6) ? random.integer(0, 1000) : random.magnitude(1, 2 * this.#budget.termMs * 1000)
    this.#time.inUs(delayUs, () => {
      if (!isLost()) arrive()
    })
  }

  #gapUs(): number {
    const termUs = this.#budget.termMs * 1000
    return this.#random.chance(this.#isPatient ? 0.2 : 0.8)
      ? this.#random.magnitude(1, termUs)
      : this.#random.integer(termUs / 4, 2 * termUs)
  }
}

class Region {
  readonly clock: SkewedClock
  readonly store: RegionStore
  cutOffUntilUs = 0
  /** Answers to requests of an earlier life are not read. */
  life = 0

  constructor(clock: SkewedClock, store: RegionStore) {
    this.clock = clock
    this.store = store
  }
}

/** A clock that is off by a constant, and in its pace. */
class SkewedClock {
  readonly #offsetUs: number
  readonly #pace: number

  constructor(random: Random) {
    this.#offsetUs = random.integer(0, MOST_OFFSET_US)
    this.#pace = 1 + random.pick([-1, 0, 1]) / CLOCK_PACE
  }

  us(trueUs: number): number {
    return this.#offsetUs + Math.floor(trueUs * this.#pace)
  }

  /** The first true time at which it says as much. */
  whenUs(us: number): number {
    let trueUs = Math.floor((us - this.#offsetUs) / this.#pace) - 2
    while (this.us(trueUs) < us) trueUs++
    return trueUs
  }
}

function randomBudget(random: Random): RegionBudget {
  const regions = random.integer(2, 3)
  const windowMs = random.pick([100, 1000])
  const limit = random.integer(regions * 2, 60)
  const leaseMs = random.pick([0, windowMs / 10])
  const least = Math.ceil(regions * (1 + (limit * leaseMs) / windowMs))
  return {
    limit,
    windowMs,
    burst: regions * random.integer(Math.ceil(least / regions), Math.ceil(least / regions) + random.pick([0, 10])),
    regions,
    floor: random.integer(1, Math.floor(limit / regions)),
    termMs: random.pick([1, 10, 50, 500]) * windowMs,
    leaseMs,
  }
}

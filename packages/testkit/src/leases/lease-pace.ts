import type { Grant } from '../../../sluicegate/dist/lease/grant.js'
import { CLOCK_DRIFT } from '../../../sluicegate/dist/lease/leasing.js'
import type { Random } from '../random.js'
import type { LeasedPolicy } from './lease-draws.js'

/** When things happen in a simulated fleet, at random: often at the very moment that hurts. */
export class LeasePace {
  private readonly random: Random
  private readonly leased: LeasedPolicy
  /** Most messages take no time, or some do. */
  private readonly isTight: boolean

  constructor(random: Random, leased: LeasedPolicy) {
    this.random = random
    this.leased = leased
    this.isTight = random.chance(0.6)
  }

  /** How long a message takes. */
  delayUs(): number {
    const { random, leased } = this
    if (random.chance(this.isTight ? 0.8 : 0.2)) return 0
    return random.magnitude(1, random.pick([leased.leaseUs, leased.leaseUs, 3_000_000]))
  }

  /** From one thing that a process does by itself to the next. */
  gapUs(): number {
    const { random, leased } = this
    return random.magnitude(1, random.pick([leased.leaseUs, 4 * leased.leaseUs, leased.policy.windowMs * 2000]))
  }

  /** A moment at which tokens of a grant may end, by one rule or another, or just before or after it. */
  lastUs(sentUs: number, arrivedUs: number, grant: Grant): number {
    const { random, leased } = this
    const token = random.pick([0, grant.availableNow + grant.availableLater - 1])
    const endUs = Math.min(grant.endUs(token), 4 * leased.leaseUs + leased.policy.windowMs * 1000)
    const fromUs = random.pick([sentUs, arrivedUs])
    const forDriftUs = random.pick([0, Math.ceil(endUs / CLOCK_DRIFT)])
    return fromUs + Math.floor(endUs) - forDriftUs - random.pick([-1, 0, 1, 1, 2])
  }
}

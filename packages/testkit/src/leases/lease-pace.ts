import type { Grant } from '../../../sluicegate/dist/lease/grant.js'
import { CLOCK_DRIFT } from '../../../sluicegate/dist/lease/leasing.js'
import type { Random } from '../random.js'
import type { LeasedPolicy } from './lease-draws.js'

export interface LeasePace {
  /** How long a message takes. */
  delayUs(): number
  /** From one thing that a process does by itself to the next. */
  gapUs(): number
  /** A moment at which tokens of a grant may end, by one rule or another, or just before or after it. */
  lastUs(sentUs: number, arrivedUs: number, grant: Grant): number
}

/** When things happen in a simulated fleet, at random: often at the very moment that hurts. */
export function leasePace(random: Random, { leaseUs, policy: { windowMs } }: LeasedPolicy): LeasePace {
  const noDelay = random.chance(0.6) ? 0.8 : 0.2
  return {
    delayUs: () => (random.chance(noDelay) ? 0 : random.magnitude(1, random.pick([leaseUs, leaseUs, 3_000_000]))),
    gapUs: () => random.magnitude(1, random.pick([leaseUs, 4 * leaseUs, windowMs * 2000])),
    lastUs(sentUs, arrivedUs, grant) {
      const token = random.pick([0, grant.availableNow + grant.availableLater - 1])
      const endUs = Math.min(grant.endUs(token), 4 * leaseUs + windowMs * 1000)
      const fromUs = random.pick([sentUs, arrivedUs])
      const forDriftUs = random.pick([0, Math.ceil(endUs / CLOCK_DRIFT)])
      return fromUs + Math.floor(endUs) - forDriftUs - random.pick([-1, 0, 1, 1, 2])
    },
  }
}

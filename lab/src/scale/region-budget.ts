import { type Policy, tokenBucket } from 'sluicegate'

/** A budget that regions share: each has a part of the burst for ever, and a part of the rate that an authority changes by demand. */
export interface RegionBudget {
  /** Tokens in a window, of all regions together. */
  readonly limit: number
  readonly windowMs: number
  readonly burst: number
  readonly regions: number
  /** Tokens in a window that each region has without a grant. */
  readonly floor: number
  /** How long a granted rate holds, from the sending of the renewal. */
  readonly termMs: number
  /** How long nodes of a region may spend tokens after its store charged them. */
  readonly leaseMs: number
}

/** A rate of one region, until its term ends. Later grants to a region have larger ids. */
export interface RegionGrant {
  readonly id: number
  readonly limit: number
}

/** A region asks for a rate. */
export interface Renewal {
  readonly region: number
  /** Tokens in a window that its clients request. */
  readonly demand: number
  /** The grant that its store goes by, or went by last. */
  readonly applied: number | undefined
}

/**
 * The burst of a region. What flows back during a lease at the whole rate is left out: tokens may be spent a lease after they conformed, when
 * the region has another rate.
 */
export function regionBurst({ burst, regions, limit, windowMs, leaseMs }: RegionBudget): number {
  return Math.floor(burst / regions - (limit * leaseMs) / windowMs)
}

/** The policy that the store of a region enforces. */
export function regionPolicy({ windowMs }: RegionBudget, limit: number, burst: number): Policy {
  return tokenBucket({ limit, window: windowMs, burst, name: 'region' })
}

/** The rates that regions should have: each its floor, the rest in proportion to the demand above it, and equally what no demand needs. */
export function sharesByDemand({ limit, regions, floor }: RegionBudget, demand: readonly number[]): number[] {
  const spare = limit - regions * floor
  const above = Array.from({ length: regions }, (_, i) => Math.max(0, (demand[i] ?? 0) - floor))
  const needed = above.reduce((sum, each) => sum + each, 0)
  const part = needed > spare ? spare / needed : 1
  const left = Math.max(0, spare - needed) / regions
  return above.map((each) => floor + Math.floor(each * part + left))
}

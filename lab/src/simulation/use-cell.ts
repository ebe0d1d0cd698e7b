import { allOf, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'
import { Random } from 'sluicegate-testkit'
import { leaseUsOf, whyNotLeased } from '../../../packages/sluicegate/dist/lease/leasing.js'

/** The default horizon, and the lease that it makes. */
export const HORIZON_MS = 50
const LEASE_S = leaseUsOf(HORIZON_MS) / 1e6

export const POLICIES = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log', 'all-of'] as const
export const ARRIVALS = ['random', 'bursts', 'skewed'] as const

/** One key, and the demand for it. Rates have a burst of a second. */
export interface UseCell {
  readonly policy: (typeof POLICIES)[number]
  readonly arrivals: (typeof ARRIVALS)[number]
  readonly nodes: number
  /** Requests of a mean node in the length of a lease. */
  readonly requestsPerLease: number
  /** Requests over what the limit allows. */
  readonly demand: number
}

/** A request: when it comes, and to which node. */
export interface Arrival {
  readonly atUs: number
  readonly node: number
}

/** Of the windows, and of a rate in whole numbers. */
const [WINDOW_S, RATE_WINDOW_S] = [5, 10]
const LEAST_BURST = 3

/** Requests a second of all nodes. */
export function perSecondOf({ nodes, requestsPerLease }: UseCell): number {
  return (nodes * requestsPerLease) / LEASE_S
}

/** The policy of a cell; undefined where it is too small to be leased, so that the library takes from it exactly anyway. */
export function policyOf(cell: UseCell): Policy | undefined {
  const rate = perSecondOf(cell) / cell.demand
  const limit = Math.max(1, Math.round(rate * RATE_WINDOW_S))
  const inRate = {
    limit,
    window: `${RATE_WINDOW_S}s`,
    burst: Math.ceil(Math.max(rate, LEAST_BURST + rate * LEASE_S)),
  } as const
  const inWindow = { limit: Math.max(1, Math.round(rate * WINDOW_S)), window: `${WINDOW_S}s` } as const
  const policy = {
    'token-bucket': () => tokenBucket(inRate),
    gcra: () => gcra(inRate),
    'fixed-window': () => fixedWindow(inWindow),
    'sliding-window': () => slidingWindow(inWindow),
    'sliding-log': () => slidingLog(inWindow),
    'all-of': () => allOf([tokenBucket(inRate), fixedWindow(inWindow)]),
  }[cell.policy]()
  const isSmall = (policy.policies ?? [policy]).some((part) => whyNotLeased(part, HORIZON_MS) !== undefined)
  return isSmall ? undefined : policy
}

/** Bursts of a node: four times the mean pace for a quarter of the time. */
const [ON_S, OFF_S] = [0.25, 0.75]
/** Of all requests, those of the first node where they are skewed. */
const FIRST_SHARE = 0.8

/** In the order of time, from 0 on. */
export function arrivalsOf(cell: UseCell, seconds: number, seed: number): Arrival[] {
  const random = new Random(seed)
  const { nodes } = cell
  const perSecond = perSecondOf(cell)
  const all: Arrival[] = []
  for (let node = 0; node < nodes; node++) {
    const others = (1 - FIRST_SHARE) / (nodes - 1)
    const share = cell.arrivals === 'skewed' ? (node === 0 ? FIRST_SHARE : others) : 1 / nodes
    const spans = cell.arrivals === 'bursts' ? spansOf(random, seconds) : [[0, seconds] as const]
    const rate = perSecond * share * (cell.arrivals === 'bursts' ? (ON_S + OFF_S) / ON_S : 1)
    for (const [fromS, toS] of spans) {
      for (let atS = fromS + random.exponential(1 / rate); atS < toS; atS += random.exponential(1 / rate))
        all.push({ atUs: Math.round(atS * 1e6), node })
    }
  }
  return all.sort((a, b) => a.atUs - b.atUs)
}

function spansOf(random: Random, seconds: number): (readonly [number, number])[] {
  const spans: (readonly [number, number])[] = []
  for (let atS = random.exponential(OFF_S) * random.fraction(); atS < seconds; ) {
    const endS = Math.min(seconds, atS + random.exponential(ON_S))
    spans.push([atS, endS])
    atS = endS + random.exponential(OFF_S)
  }
  return spans
}

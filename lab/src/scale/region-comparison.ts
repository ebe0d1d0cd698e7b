import { tokenBucket } from 'sluicegate'
import { Random } from 'sluicegate-testkit'
import { Timeline } from 'sluicegate-testkit/leases/timeline.js'
import { simulateLimiters } from './limiter-nodes.js'
import { type Decided, KeyExcess } from './node-group.js'
import { RegionAuthority, SOUND_AUTHORITY } from './region-authority.js'
import type { RegionBudget } from './region-budget.js'
import { RegionStore, SOUND_REGION } from './region-store.js'

/** The budget of the comparison. Two regions; the first has the authority, or the store of both. */
const COMPARED_BUDGET: RegionBudget = {
  limit: 1_000,
  windowMs: 1_000,
  burst: 2_000,
  regions: 2,
  floor: 100,
  termMs: 10_000,
  leaseMs: 100,
}

/** Demand of all regions, requests a second. */
const COMPARED_DEMAND = 1_500
const REGION_ROUND_TRIP_MS = 80
const LOCAL_ROUND_TRIP_MS = 1
const RENEWAL_MS = 1_000
const NODES = 8
const SERVICE_US = 20
const BIN_S = 2

/** A part of the run: the share of the demand that the first region has, and whether the second one is cut off from it. */
interface Phase {
  readonly name: string
  readonly fromS: number
  readonly toS: number
  readonly firstShare: number
  readonly isCutOff: boolean
}

export const PHASES: readonly Phase[] = [
  { name: 'demand in A', fromS: 0, toS: 40, firstShare: 0.9, isCutOff: false },
  { name: 'demand in B', fromS: 40, toS: 80, firstShare: 0.1, isCutOff: false },
  { name: 'B cut off', fromS: 80, toS: 120, firstShare: 0.5, isCutOff: true },
]
/** At the start the burst is admitted, which is no rate. */
const COUNTED_FROM_S = 5

/** What one way of sharing the budget did. */
export interface RegionFigures {
  readonly way: string
  /** By phase: admitted tokens over those of the limit. */
  readonly use: readonly number[]
  /** By phase and region: admitted a second. */
  readonly admitted: readonly (readonly [first: number, second: number])[]
  /** By region, over the time in which none is cut off. */
  readonly p50Ms: readonly [number, number]
  readonly p99Ms: readonly [number, number]
  readonly p99CutOffMs: number
  readonly crossCallsPerSecond: number
  /** Tokens of the worst interval over the policy. */
  readonly over: number
  readonly plot: { readonly xs: readonly number[]; readonly admitted: readonly number[] }
}

export async function compareRegions(): Promise<RegionFigures[]> {
  return [
    overRegionStores('static split', { ...COMPARED_BUDGET, floor: COMPARED_BUDGET.limit / 2 }, false),
    overRegionStores('split by demand', COMPARED_BUDGET, true),
    await overOneStore('one store in A, exact', 0),
    await overOneStore('one store in A, leases of 100 ms', 50),
    await overOneStore('one store in A, leases of 1 s', 500),
  ]
}

/** A store in each region, which decides each request of its region. */
function overRegionStores(way: string, budget: RegionBudget, isByDemand: boolean): RegionFigures {
  const random = new Random(1)
  const timeline = new Timeline(0)
  const tally = new RegionTally(way)
  const authority = new RegionAuthority(budget, SOUND_AUTHORITY, 0)
  const stores = [0, 1].map(() => new RegionStore(budget, SOUND_REGION, 0))
  const requests = [0, 0]
  const arrive = (): void => {
    timeline.inUs(gapUs(random.fraction()), arrive)
    const atS = timeline.nowUs / 1e6
    const region = regionAt(random.fraction(), atS)
    requests[region] = (requests[region] as number) + 1
    const allowed = (stores[region] as RegionStore).take(timeline.nowUs)
    tally.decided(region, { askedS: atS, atS: atS + LOCAL_ROUND_TRIP_MS / 1000, allowed })
  }
  const renew = (region: number): void => {
    timeline.inUs(RENEWAL_MS * 1000, () => renew(region))
    const sentUs = timeline.nowUs
    const store = stores[region] as RegionStore
    const demand = ((requests[region] as number) * budget.windowMs) / RENEWAL_MS
    requests[region] = 0
    const oneWayUs = (region === 0 ? LOCAL_ROUND_TRIP_MS : REGION_ROUND_TRIP_MS) * 500
    if (isCutOff(region, sentUs / 1e6)) return
    if (region === 1) tally.crossed()
    timeline.inUs(oneWayUs, () => {
      const grant = authority.renew({ region, demand, applied: store.applied }, timeline.nowUs)
      if (grant === undefined || isCutOff(region, timeline.nowUs / 1e6)) return
      timeline.inUs(oneWayUs, () => store.granted(grant, sentUs, timeline.nowUs))
    })
  }
  arrive()
  if (isByDemand) for (const region of [0, 1]) timeline.inUs(RENEWAL_MS * 1000, () => renew(region))
  while (timeline.nowUs < endS() * 1e6) timeline.run(1)
  for (const store of stores) store.close()
  return tally.figures
}

/** Nodes of both regions over a store in the first. */
async function overOneStore(way: string, horizonMs: number): Promise<RegionFigures> {
  const { limit, windowMs, burst } = COMPARED_BUDGET
  const tally = new RegionTally(way)
  const regionOf = (node: number): number => (node < NODES / 2 ? 0 : 1)
  await simulateLimiters({
    policy: tokenBucket({ limit, window: windowMs, burst }),
    nodes: NODES,
    keys: 1,
    perSecond: COMPARED_DEMAND,
    nodeOf: (fraction, atS) => {
      const share = phaseAt(atS).firstShare
      const within = fraction < share ? fraction / share : (fraction - share) / (1 - share)
      return Math.floor((within * NODES) / 2) + (fraction < share ? 0 : NODES / 2)
    },
    isCutOff: (node, atS) => isCutOff(regionOf(node), atS),
    onDecided: (node, decided) => tally.decided(regionOf(node), decided),
    roundTripUs: (node) => {
      if (regionOf(node) === 0) return LOCAL_ROUND_TRIP_MS * 1000
      tally.crossed()
      return REGION_ROUND_TRIP_MS * 1000
    },
    horizonMs,
    serviceUs: SERVICE_US,
    timeoutMs: 200,
    seconds: endS(),
    warmUpSeconds: 0,
    seed: 1,
  })
  return tally.figures
}

class RegionTally {
  readonly #way: string
  readonly #admitted = PHASES.map(() => [0, 0] as [number, number])
  readonly #waitsMs: [number[], number[]] = [[], []]
  readonly #cutOffWaitsMs: number[] = []
  readonly #bins = Array<number>(Math.ceil(endS() / BIN_S)).fill(0)
  readonly #excess = new KeyExcess(COMPARED_BUDGET)
  #crossed = 0

  constructor(way: string) {
    this.#way = way
  }

  decided(region: number, { askedS, atS, allowed }: Decided): void {
    const phase = PHASES.indexOf(phaseAt(askedS))
    const waits = isCutOff(region, askedS) ? this.#cutOffWaitsMs : (this.#waitsMs[region as 0 | 1] as number[])
    waits.push((atS - askedS) * 1000)
    if (!allowed) return
    this.#excess.admitted(atS * 1e6)
    const bin = Math.floor(atS / BIN_S)
    if (bin < this.#bins.length) this.#bins[bin] = (this.#bins[bin] as number) + 1 / BIN_S
    const counted = this.#admitted[phase] as [number, number]
    if (askedS >= COUNTED_FROM_S) counted[region as 0 | 1]++
  }

  crossed(): void {
    this.#crossed++
  }

  get figures(): RegionFigures {
    const secondsOf = ({ fromS, toS }: Phase): number => toS - Math.max(fromS, COUNTED_FROM_S)
    const admitted = PHASES.map((phase, i) => {
      const [first, second] = this.#admitted[i] as [number, number]
      return [first / secondsOf(phase), second / secondsOf(phase)] as const
    })
    const perSecond = (COMPARED_BUDGET.limit * 1000) / COMPARED_BUDGET.windowMs
    const [first, second] = this.#waitsMs
    return {
      way: this.#way,
      use: admitted.map(([a, b]) => (a + b) / perSecond),
      admitted,
      p50Ms: [percentile(first, 0.5), percentile(second, 0.5)],
      p99Ms: [percentile(first, 0.99), percentile(second, 0.99)],
      p99CutOffMs: percentile(this.#cutOffWaitsMs, 0.99),
      crossCallsPerSecond: this.#crossed / endS(),
      over: this.#excess.over,
      plot: { xs: this.#bins.map((_, i) => i * BIN_S), admitted: this.#bins },
    }
  }
}

function percentile(values: number[], share: number): number {
  const sorted = values.sort((a, b) => a - b)
  return sorted[Math.floor(share * (sorted.length - 1))] ?? 0
}

function endS(): number {
  return PHASES.at(-1)?.toS ?? 0
}

function phaseAt(atS: number): Phase {
  return (PHASES.find(({ toS }) => atS < toS) ?? PHASES.at(-1)) as Phase
}

function isCutOff(region: number, atS: number): boolean {
  return region === 1 && phaseAt(atS).isCutOff
}

function regionAt(fraction: number, atS: number): number {
  return fraction < phaseAt(atS).firstShare ? 0 : 1
}

function gapUs(fraction: number): number {
  return Math.max(1, Math.round((-Math.log(1 - fraction) * 1e6) / COMPARED_DEMAND))
}

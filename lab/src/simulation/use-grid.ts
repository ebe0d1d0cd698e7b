import { type Decided, isOver, type SimulatedUse, simulateExact, simulateLeased } from './simulated-use.js'
import { ARRIVALS, arrivalsOf, POLICIES, perSecondOf, policyOf, type UseCell } from './use-cell.js'

/** Leases in one run beside exact mode, over the same arrivals. */
type UseFigures = ReturnType<typeof figuresOf>

const [WARM_UP_S, FAIR_S, LEAST_S, MOST_S] = [2, 5, 6, 2_000]

/** Of a run that has so many requests, as far as the time allows. */
function secondsOf(cell: UseCell, requests: number): number {
  return Math.round(Math.min(MOST_S, Math.max(LEAST_S, requests / perSecondOf(cell)))) + WARM_UP_S
}

function figuresOf(cell: UseCell, seconds: number, exact: SimulatedUse, leased: SimulatedUse) {
  const [ours, theirs] = [leased, exact].map(({ decided }) => decided.filter(({ askedUs }) => askedUs >= WARM_UP_S * 1e6)) as [
    Decided[],
    Decided[],
  ]
  const admitted = (all: readonly Decided[]): number => all.reduce((sum, { allowed }) => sum + (allowed ? 1 : 0), 0)
  const calls = leased.callsUs.filter((us) => us >= WARM_UP_S * 1e6).length
  return {
    requests: ours.length,
    /** Admitted, of what exact mode admitted, and of the requests in exact mode. */
    share: admitted(ours) / Math.max(1, admitted(theirs)),
    exactShare: admitted(theirs) / Math.max(1, theirs.length),
    callsPerRequest: calls / Math.max(1, ours.length),
    callsPerToken: calls / Math.max(1, admitted(ours)),
    p99Ms: p99(ours.map(({ askedUs, atUs }) => atUs - askedUs)) / 1000,
    /** Jain's index of what equal nodes got in 5 s, the mean. */
    jain: jainOf(cell, ours, seconds),
    jainExact: jainOf(cell, theirs, seconds),
    /** The longest time in which all requests of a node were denied, while another node got something. */
    starvedS: starvedS(cell, ours),
    starvedExactS: starvedS(cell, theirs),
  }
}

function jainOf(cell: UseCell, decided: readonly Decided[], seconds: number): number {
  const first = cell.arrivals === 'skewed' ? 1 : 0
  const count = cell.nodes - first
  if (count < 2) return 1
  const spans = Math.max(1, Math.floor((seconds - WARM_UP_S) / FAIR_S))
  const got = Array.from({ length: spans }, () => new Float64Array(count))
  for (const { node, askedUs, allowed } of decided) {
    const span = Math.floor((askedUs / 1e6 - WARM_UP_S) / FAIR_S)
    const counts = got[span]
    if (allowed && node >= first && counts !== undefined) counts[node - first] = (counts[node - first] as number) + 1
  }
  let sum = 0
  for (const counts of got) {
    const total = counts.reduce((all, each) => all + each, 0)
    const squares = counts.reduce((all, each) => all + each * each, 0)
    sum += squares === 0 ? 1 : (total * total) / (count * squares)
  }
  return sum / spans
}

function starvedS(cell: UseCell, decided: readonly Decided[]): number {
  const inTime = [...decided].sort((a, b) => a.askedUs - b.askedUs)
  const sinceUs = new Float64Array(cell.nodes).fill(-1)
  const others = new Int32Array(cell.nodes)
  let admitted = 0
  let longestUs = 0
  for (const { node, askedUs, allowed } of inTime) {
    if (allowed) {
      admitted++
      sinceUs[node] = -1
    } else if ((sinceUs[node] as number) < 0) {
      sinceUs[node] = askedUs
      others[node] = admitted
    } else if (admitted > (others[node] as number)) longestUs = Math.max(longestUs, askedUs - (sinceUs[node] as number))
  }
  return longestUs / 1e6
}

/** Of values in any order; 0 of none. */
function p99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(0.99 * values.length)] ?? 0
}

/** A cell of the simulated grid and what came of it. */
export interface SimulatedCell extends UseCell, UseFigures {
  readonly isOver: boolean
}

const NETWORK = { roundTripUs: 300 }
const SEED = 1

/** The whole grid for a bucket; of the other policies every second value. */
export function gridCells(isQuick = false): UseCell[] {
  const cells: UseCell[] = []
  for (const policy of POLICIES) {
    const isWhole = policy === 'token-bucket' && !isQuick
    const nodesOf = isWhole ? [2, 4, 16, 64] : [2, 16]
    const requests = isWhole ? [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100] : [0.5, 2, 10, 50]
    const demands = isWhole ? [0.5, 0.9, 1, 1.5, 2, 10] : [0.9, 1, 2, 10]
    for (const arrivals of ARRIVALS) {
      for (const nodes of nodesOf) {
        for (const requestsPerLease of requests) {
          for (const demand of demands) cells.push({ policy, arrivals, nodes, requestsPerLease, demand })
        }
      }
    }
  }
  return cells.filter((cell) => policyOf(cell) !== undefined)
}

/** One cell, leased and exact over the same arrivals. @param requests how many, as far as the time allows. */
export async function simulatedCell(cell: UseCell, requests: number): Promise<SimulatedCell> {
  const policy = policyOf(cell)
  if (policy === undefined) throw new Error('the policy of the cell is too small to be leased')
  const seconds = secondsOf(cell, requests)
  const arrivals = arrivalsOf(cell, seconds, SEED)
  const exact = simulateExact(policy, arrivals, NETWORK)
  const leased = await simulateLeased(cell, policy, arrivals, NETWORK)
  return { ...cell, ...figuresOf(cell, seconds, exact, leased), isOver: isOver(policy, leased.decided) }
}

/** What leases are to reach beside exact mode, and what a cell of the grid must be for it to count. */
export interface Target {
  readonly name: string
  applies(cell: SimulatedCell): boolean
  holds(cell: SimulatedCell): boolean
}

export const TARGETS: readonly Target[] = [
  { name: 'never over the policy', applies: () => true, holds: (cell) => !cell.isOver },
  { name: '99 % of what exact mode admits, demand up to 0.9', applies: ({ demand }) => demand <= 0.9, holds: ({ share }) => share >= 0.99 },
  { name: '97 % of what exact mode admits, any demand', applies: ({ demand }) => demand > 0.9, holds: ({ share }) => share >= 0.97 },
  { name: '1.05 calls a request', applies: () => true, holds: ({ callsPerRequest }) => callsPerRequest <= 1.05 },
  {
    name: '0.3 calls a request, from 10 requests a lease on',
    applies: ({ requestsPerLease }) => requestsPerLease >= 10,
    holds: ({ callsPerRequest }) => callsPerRequest <= 0.3,
  },
  {
    name: '0.05 calls a request, from 50 requests a lease on',
    applies: ({ requestsPerLease }) => requestsPerLease >= 50,
    holds: ({ callsPerRequest }) => callsPerRequest <= 0.05,
  },
  { name: '2 calls an admitted token', applies: ({ demand }) => demand > 1, holds: ({ callsPerToken }) => callsPerToken <= 2 },
  { name: '99 % of the takes as fast as a call', applies: () => true, holds: ({ p99Ms }) => p99Ms * 1000 <= NETWORK.roundTripUs },
  {
    name: "Jain's index of equal nodes 0.95 over 5 s, or as exact mode has it",
    applies: ({ arrivals }) => arrivals !== 'skewed',
    holds: ({ jain, jainExact }) => jain >= Math.min(0.95, jainExact - 0.01),
  },
  {
    name: 'no node without a token for more than 1 s, or than in exact mode',
    applies: () => true,
    holds: ({ starvedS, starvedExactS }) => starvedS <= Math.max(1, starvedExactS),
  },
]

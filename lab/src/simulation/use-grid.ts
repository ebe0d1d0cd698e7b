import { isOver, simulateExact, simulateLeased } from './simulated-use.js'
import { ARRIVALS, arrivalsOf, POLICIES, policyOf, type UseCell } from './use-cell.js'
import { figuresOf, secondsOf, type UseFigures } from './use-figures.js'

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

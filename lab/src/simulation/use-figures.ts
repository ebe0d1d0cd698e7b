import type { Decided, SimulatedUse } from './simulated-use.js'
import { perSecondOf, type UseCell } from './use-cell.js'

/** Leases in one run beside exact mode, over the same arrivals. */
export type UseFigures = ReturnType<typeof figuresOf>

const [WARM_UP_S, FAIR_S, LEAST_S, MOST_S] = [2, 5, 6, 2_000]

/** Of a run that has so many requests, as far as the time allows. */
export function secondsOf(cell: UseCell, requests: number): number {
  return Math.round(Math.min(MOST_S, Math.max(LEAST_S, requests / perSecondOf(cell)))) + WARM_UP_S
}

export function figuresOf(cell: UseCell, seconds: number, exact: SimulatedUse, leased: SimulatedUse) {
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

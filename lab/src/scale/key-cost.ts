import { tokenBucket } from 'sluicegate'
import { leaseUsOf, whyNotLeased } from '../../../packages/sluicegate/dist/lease/leasing.js'
import { simulateLeases } from './lease-nodes.js'

/** Requests of one node for one key in the length of a lease. */
export const REQUESTS_PER_LEASE = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100] as const
/** Demand for the key over its limit. */
export const DEMANDS = [0.5, 1, 2, 10] as const

const NODES = 16
const HORIZON_MS = 50
const LEASE_S = leaseUsOf(HORIZON_MS) / 1e6
const WINDOW_S = 10
/** Requests of a simulation, as far as the time allows. */
const REQUESTS = 20_000
const [LEAST_SECONDS, MOST_SECONDS, WARM_UP_SECONDS] = [4, 1_000, 4]

/** What leases of one key cost in calls, and what they leave unused. */
export interface KeyCost {
  readonly requestsPerLease: number
  readonly demand: number
  /** Undefined where the policy is too small to be leased: then each request is a call. */
  readonly callsPerRequest: number | undefined
  /** Admitted requests over those that the limit allows, or that were sent if these are fewer. */
  readonly served: number
}

/** All combinations, by the coarse simulation of 16 nodes. The time scale does not matter: longer leases at lower rates cost the same. */
export function keyCosts(): KeyCost[] {
  return REQUESTS_PER_LEASE.flatMap((requestsPerLease) => DEMANDS.map((demand) => keyCost(requestsPerLease, demand)))
}

function keyCost(requestsPerLease: number, demand: number): KeyCost {
  const perSecond = (NODES * requestsPerLease) / LEASE_S
  const rate = perSecond / demand
  const limit = Math.max(1, Math.round(rate * WINDOW_S))
  const policy = tokenBucket({ limit, window: `${WINDOW_S}s`, burst: Math.ceil(Math.max(rate, 3 + rate * LEASE_S)) })
  if (whyNotLeased(policy, HORIZON_MS) !== undefined) return { requestsPerLease, demand, callsPerRequest: undefined, served: 1 }
  const seconds = Math.min(MOST_SECONDS, Math.max(LEAST_SECONDS, REQUESTS / perSecond))
  const { callsPerRequest, allowed, sent } = simulateLeases({
    policy,
    nodes: NODES,
    keys: 1,
    perSecond,
    horizonMs: HORIZON_MS,
    roundTripUs: () => 1_000,
    serviceUs: 0,
    seconds,
    warmUpSeconds: WARM_UP_SECONDS,
    seed: 1,
  })
  return { requestsPerLease, demand, callsPerRequest, served: allowed / Math.min(sent, (limit * seconds) / WINDOW_S) }
}

/** A key in a system: its demand on the nodes that see it, and its limit. */
export interface KeyLoad {
  readonly perSecond: number
  readonly nodes: number
  readonly limitPerSecond: number
  readonly leaseMs: number
}

/** Calls a second for a key, from the table: of each request a call below it, and above it as many as at its end. */
export function callsPerSecond(costs: readonly KeyCost[], { perSecond, nodes, limitPerSecond, leaseMs }: KeyLoad): number {
  const leaseS = leaseMs / 1000
  if (limitPerSecond * leaseS < 1) return perSecond
  const requests = (perSecond * leaseS) / nodes
  const demand = perSecond / limitPerSecond
  const first = REQUESTS_PER_LEASE[0]
  if (requests <= first) return perSecond
  const last = REQUESTS_PER_LEASE[REQUESTS_PER_LEASE.length - 1] as number
  const share = callShare(costs, Math.min(requests, last), demand)
  return perSecond * share * Math.min(1, last / requests)
}

function callShare(costs: readonly KeyCost[], requests: number, demand: number): number {
  const [lower, upper, part] = between(REQUESTS_PER_LEASE, requests)
  const at = (requestsPerLease: number): number => {
    const own = costs.filter((cost) => cost.requestsPerLease === requestsPerLease && cost.callsPerRequest !== undefined)
    const [less, more, within] = between(
      own.map((cost) => cost.demand),
      demand,
    )
    const callsAt = (value: number): number => own.find((cost) => cost.demand === value)?.callsPerRequest ?? 1
    return callsAt(less) + within * (callsAt(more) - callsAt(less))
  }
  return at(lower) + part * (at(upper) - at(lower))
}

/** The neighbours of a value in a rising list, and how far it is from the first to the second, by their ratio. */
function between(values: readonly number[], value: number): readonly [lower: number, upper: number, part: number] {
  const lower = values.filter((each) => each <= value).at(-1) ?? (values[0] as number)
  const upper = values.find((each) => each > value) ?? lower
  return [lower, upper, upper === lower ? 0 : Math.max(0, Math.log(value / lower) / Math.log(upper / lower))]
}

import { tokenBucket } from 'sluicegate'
import type { KeyCost } from './key-cost.js'
import { simulateLeases } from './lease-nodes.js'
import { simulateLimiters } from './limiter-nodes.js'
import { busiestShard, type SystemLoad, systemCost } from './system-cost.js'

/** One key whose demand is twice its limit, on any number of nodes. */
export const GROWTH = { limit: 10_000, perSecond: 20_000, nodes: [10, 100, 1_000, 10_000, 100_000], leasesMs: [100, 1_000] } as const
/** Requests a second and keys for each node of a system, and the limit of each key. */
const SYSTEM = { nodes: [10, 1_000, 100_000], perSecond: 20, keys: 10, limitPerSecond: 100, clientsPerServiceNode: 100 } as const
const SHARDS = [3, 10, 30, 100]
const SHARDED_KEYS = 100_000
const [WARM_UP_SECONDS, SECONDS] = [5, 3]

/** Calls of one key and the use of its budget. */
export function growthOfNodes() {
  const policy = tokenBucket({ limit: GROWTH.limit, window: '1s', burst: 2 * GROWTH.limit })
  return GROWTH.leasesMs.flatMap((leaseMs) =>
    GROWTH.nodes.map((nodes) => {
      const { calls, budgetUse } = simulateLeases({
        policy,
        nodes,
        keys: 1,
        perSecond: GROWTH.perSecond,
        horizonMs: leaseMs / 2,
        roundTripUs: () => 1_000,
        serviceUs: 0,
        seconds: SECONDS,
        warmUpSeconds: WARM_UP_SECONDS,
        seed: 1,
      })
      return { nodes, leaseMs, callsPerSecond: calls / SECONDS, budgetUse }
    }),
  )
}

/** One key of 1,000 requests a second on 50 nodes, in exact mode, over a store that answers 2,000 calls a second. */
const OVERLOAD = { nodes: 50, limit: 1_000, serviceUs: 500, loads: [0.5, 0.9, 1.1, 2], seconds: 6 } as const

/** What happens when a store gets more calls than it can answer, with the default share of an outage and with one for each node. */
export async function overloadedStore() {
  const { nodes, limit, serviceUs, loads, seconds } = OVERLOAD
  const found = []
  for (const load of loads) {
    for (const localShare of [0.1, 1 / nodes]) {
      const { p99Ms, withoutStore, sent, budgetUse } = await simulateLimiters({
        policy: tokenBucket({ limit, window: '1s' }),
        nodes,
        keys: 1,
        perSecond: (load * 1e6) / serviceUs,
        horizonMs: 0,
        roundTripUs: () => 1_000,
        serviceUs,
        localShare,
        seconds,
        warmUpSeconds: WARM_UP_SECONDS,
        seed: 1,
      })
      found.push({ load, localShare, p99Ms, withoutStore: withoutStore / sent, budgetUse })
    }
  }
  return found
}

/** Systems of 10, 1,000 and 100,000 nodes, limited in different ways. */
export function systemRows(costs: readonly KeyCost[]) {
  return SYSTEM.nodes.flatMap((nodes) => {
    const load = { nodes, keys: SYSTEM.keys * nodes, perSecond: SYSTEM.perSecond * nodes, limitPerSecond: SYSTEM.limitPerSecond }
    const serviceNodes = Math.ceil(nodes / SYSTEM.clientsPerServiceNode)
    const rowOf = (way: string, own: SystemLoad) => ({
      nodes,
      way,
      callers: own.nodes,
      isLeased: own.leaseMs > 0,
      ...systemCost(costs, own),
    })
    const rows = [
      rowOf('exact', { ...load, leaseMs: 0, nodesPerKey: nodes }),
      rowOf('leases of 100 ms, a key on any node', { ...load, leaseMs: 100, nodesPerKey: nodes }),
      rowOf('leases of 100 ms, a key on one node', { ...load, leaseMs: 100, nodesPerKey: 1 }),
    ]
    if (serviceNodes < SYSTEM.nodes[0]) return rows
    return [
      ...rows,
      rowOf(`leases of 100 ms in ${serviceNodes.toLocaleString('en')} service nodes, a key on one of them`, {
        ...load,
        nodes: serviceNodes,
        leaseMs: 100,
        nodesPerKey: 1,
      }),
    ]
  })
}

/** How even the hash slots of a cluster spread the calls of a system of 1,000 nodes. */
export function busiestShards(costs: readonly KeyCost[]) {
  const load = { nodes: 1_000, keys: SHARDED_KEYS, perSecond: 20_000, limitPerSecond: SYSTEM.limitPerSecond, nodesPerKey: 1 }
  return SHARDS.map((shards) => ({
    shards,
    exact: busiestShard(costs, { ...load, leaseMs: 0 }, shards),
    leased: busiestShard(costs, { ...load, leaseMs: 100 }, shards),
  }))
}

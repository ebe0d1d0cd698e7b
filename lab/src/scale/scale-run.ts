import { measuredWhere } from 'sluicegate-commands/load/machine-text.js'
import { checkedRuns, coarseRuns } from './compared-runs.js'
import { keyCosts } from './key-cost.js'
import type { MeasuredNodes } from './measured-nodes.js'
import { nodeKeyBytes } from './node-memory.js'
import { busiestShards, growthOfNodes, overloadedStore, systemRows } from './scale-sweeps.js'

/** Everything that docs/scale.md shows. */
export type ScaleResults = Awaited<ReturnType<typeof scaleRun>>

/** Small runs measured on a real server, and the same and larger ones simulated. */
export async function scaleRun(nodes: MeasuredNodes, begun: (what: string) => void) {
  begun('measuring the store')
  const { connection, key } = await nodes.memoryBytes()
  const { exactUs, leaseUs } = await nodes.serviceTimes()
  begun('measuring limiters, and simulating the same')
  const measuredRuns = await checkedRuns(nodes, leaseUs)
  begun('comparing the exact simulation with the coarse one')
  const costs = keyCosts()
  const coarse = await coarseRuns(costs)
  begun('simulating more nodes and whole systems')
  return {
    where: measuredWhere(),
    /** Processor time of the store for a call, memory of the store and of a node. */
    measured: { exactUs, leaseUs, connectionBytes: connection, storeKeyBytes: key, nodeKeyBytes: nodeKeyBytes() },
    measuredRuns,
    coarseRuns: coarse,
    keyCosts: costs,
    growth: growthOfNodes(),
    overload: await overloadedStore(),
    systems: systemRows(costs),
    /** By number of shards: calls of the busiest one over those of a mean one. */
    busiest: busiestShards(costs),
  }
}

import { hashSlot } from '../../../packages/sluicegate/dist/redis/redis-keys.js'
import { callsPerSecond, type KeyCost } from './key-cost.js'

const SLOTS = 16_384

/** A whole system: keys with demands of a Zipf distribution, exponent 1. */
export interface SystemLoad {
  /** Processes that call the store. */
  readonly nodes: number
  readonly keys: number
  readonly perSecond: number
  readonly limitPerSecond: number
  /** 0: every request is a call. */
  readonly leaseMs: number
  /** How many nodes see requests for the same key: all of them, unless a key is routed to one. */
  readonly nodesPerKey: number
}

/** Calls of a system: the sum over its keys, whose leases do not depend on each other. */
export function systemCost(costs: readonly KeyCost[], load: SystemLoad) {
  let calls = 0
  let hottest = 0
  for (const share of zipfShares(load.keys)) {
    const own = callsOf(costs, load, share)
    calls += own
    hottest = Math.max(hottest, own)
  }
  // The hottest key is that with most of them.
  return { callsPerSecond: calls, callsPerRequest: calls / load.perSecond, hottestCallsPerSecond: hottest }
}

/** How many times the calls of a mean shard the busiest one has, keys being spread by the hash slots of Redis Cluster. */
export function busiestShard(costs: readonly KeyCost[], load: SystemLoad, shards: number): number {
  const calls = new Float64Array(shards)
  let all = 0
  for (const [rank, share] of zipfShares(load.keys).entries()) {
    const own = callsOf(costs, load, share)
    const shard = Math.floor((hashSlot(`user:${rank}`) * shards) / SLOTS)
    calls[shard] = (calls[shard] as number) + own
    all += own
  }
  return Math.max(...calls) / (all / shards)
}

function callsOf(costs: readonly KeyCost[], load: SystemLoad, share: number): number {
  const perSecond = share * load.perSecond
  if (load.leaseMs === 0) return perSecond
  return callsPerSecond(costs, { ...load, perSecond, nodes: load.nodesPerKey })
}

/** Of each key, the most requested first. */
export function zipfShares(keys: number): Float64Array {
  const shares = Float64Array.from({ length: keys }, (_, rank) => 1 / (rank + 1))
  const sum = shares.reduce((total, each) => total + each, 0)
  return shares.map((each) => each / sum)
}

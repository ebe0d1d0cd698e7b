import type { KeyCost } from './key-cost.js'

/** A run that was made twice: on real limiters and in the simulation, or in the exact simulation and the coarse one. */
export interface ComparedRun {
  readonly what: string
  readonly callsPerRequest: readonly [reference: number, compared: number]
  /** Undefined where only calls are compared. */
  readonly budgetUse?: readonly [reference: number, compared: number]
}

/** One key on a growing number of nodes, leased. */
export interface NodeGrowth {
  readonly nodes: number
  readonly leaseMs: number
  readonly callsPerSecond: number
  readonly budgetUse: number
}

/** Exact mode with more or fewer calls than the store can answer. */
export interface Overload {
  /** Calls over those that the store can answer. */
  readonly load: number
  readonly localShare: number
  readonly p99Ms: number
  /** Of all requests. */
  readonly withoutStore: number
  readonly budgetUse: number
}

/** A whole system under one way of limiting. */
export interface SystemRow {
  readonly nodes: number
  readonly way: string
  readonly callers: number
  readonly callsPerSecond: number
  readonly callsPerRequest: number
  readonly hottestCallsPerSecond: number
  readonly isLeased: boolean
}

/** Everything that docs/scale.md shows. */
export interface ScaleResults {
  readonly where: string
  /** Processor time of the store for a call, memory of the store and of a node. */
  readonly measured: {
    readonly exactUs: number
    readonly leaseUs: number
    readonly connectionBytes: number
    readonly storeKeyBytes: number
    readonly nodeKeyBytes: number
  }
  readonly measuredRuns: readonly ComparedRun[]
  readonly coarseRuns: readonly ComparedRun[]
  readonly keyCosts: readonly KeyCost[]
  readonly growth: readonly NodeGrowth[]
  readonly overload: readonly Overload[]
  readonly systems: readonly SystemRow[]
  /** By number of shards: calls of the busiest one over those of a mean one. */
  readonly busiest: readonly { readonly shards: number; readonly exact: number; readonly leased: number }[]
}

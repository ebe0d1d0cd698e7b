import { readFileSync } from 'node:fs'
import { tokenBucket } from 'sluicegate'
import type { KeyCost } from './key-cost.js'
import { simulateLeases } from './lease-nodes.js'
import { simulateLimiters } from './limiter-nodes.js'
import type { MeasuredGroup, MeasuredNodes } from './measured-nodes.js'
import type { NodeGroup } from './node-group.js'
import { systemCost, zipfShares } from './system-cost.js'

const MANY_SERVERS = new URL('../../results/many-servers.json', import.meta.url)
const HORIZON_MS = 50
const LEASE_MS = 100
/** Where the round trip was not measured. */
const ROUND_TRIP_US = 1_000

/** What is needed of the results of `npm run lab:compare`. */
interface ManyServers {
  readonly found: readonly {
    readonly way: { readonly name: string }
    readonly result: {
      readonly sent: number
      readonly allowed: number
      readonly callsPerToken: number
      readonly seconds: number
      readonly marks: readonly { readonly fromX: number; readonly toX: number }[]
    }
    readonly useWhole: number
    readonly useDead: number
  }[]
}

/** A run that was made twice: on real limiters and in the simulation, or in the exact simulation and the coarse one. */
export interface ComparedRun {
  readonly what: string
  readonly callsPerRequest: readonly [reference: number, compared: number]
  /** Undefined where only calls are compared. */
  readonly budgetUse?: readonly [reference: number, compared: number]
}

/** Real limiters over a real server, and service nodes of the lab, against the exact simulation. */
export async function checkedRuns(nodes: MeasuredNodes, serviceUs: number): Promise<ComparedRun[]> {
  const runs: ComparedRun[] = []
  const { callUs } = await nodes.measure(groupOf(4, 8, 20, 400, 0))
  const roundTripUs = (_node: number, fraction: number): number => callUs[Math.floor(fraction * callUs.length)] ?? ROUND_TRIP_US
  for (const [count, keys, limit, perSecond] of [
    [4, 8, 20, 400],
    [4, 8, 100, 1_600],
    [16, 1, 1_000, 500],
    [16, 1, 1_000, 2_000],
    [100, 1, 1_000, 2_000],
  ] as const) {
    const group = groupOf(count, keys, limit, perSecond, HORIZON_MS)
    const real = await nodes.measure(group)
    const simulated = await simulateLimiters({ ...group, roundTripUs, serviceUs })
    runs.push(compared(textOf(group), real, simulated))
  }
  return [...runs, ...(await manyServers())]
}

/** The service nodes of docs/many-servers.md: 4, and 3 while one is dead. */
async function manyServers(): Promise<ComparedRun[]> {
  const { found } = JSON.parse(readFileSync(MANY_SERVERS, 'utf8')) as ManyServers
  const leases = found.find(({ way }) => way.name === 'leases')
  if (leases === undefined) return []
  const { result, useWhole, useDead } = leases
  const [whole, dead] = await Promise.all(
    [4, 3].map((count) =>
      simulateLimiters({ ...groupOf(count, 8, 20, 400, HORIZON_MS), roundTripUs: () => ROUND_TRIP_US, serviceUs: 100, seconds: 30 }),
    ),
  )
  if (whole === undefined || dead === undefined) return []
  const [mark] = result.marks
  const deadShare = mark === undefined ? 0 : (mark.toX - mark.fromX) / result.seconds
  const calls = whole.callsPerRequest * (1 - deadShare) + dead.callsPerRequest * deadShare
  const measuredCalls = (result.callsPerToken * result.allowed) / result.sent
  return [
    {
      what: 'many servers: 4 service nodes, 8 keys of 20/s, 400 requests/s',
      callsPerRequest: [measuredCalls, calls],
      budgetUse: [useWhole, whole.budgetUse],
    },
    { what: 'many servers, while one node is dead', callsPerRequest: [measuredCalls, calls], budgetUse: [useDead, dead.budgetUse] },
  ]
}

/** The exact simulation against the coarse one, and whole systems against the sum over their keys. */
export async function coarseRuns(costs: readonly KeyCost[]): Promise<ComparedRun[]> {
  const runs: ComparedRun[] = []
  for (const [count, keys, limit, perSecond] of [
    [4, 8, 20, 400],
    [16, 1, 1_000, 2_000],
    [100, 1, 1_000, 2_000],
    [1_000, 1, 1_000, 2_000],
  ] as const) {
    const group = simulatedGroup(groupOf(count, keys, limit, perSecond, HORIZON_MS))
    runs.push(compared(`coarse: ${textOf(group)}`, await simulateLimiters(group), simulateLeases(group)))
  }
  for (const [count, keys, limit, perSecond] of [
    [4, 30, 50, 2_000],
    [8, 100, 100, 4_000],
    [16, 300, 20, 6_000],
  ] as const) {
    const group = { ...simulatedGroup(groupOf(count, keys, limit, perSecond, HORIZON_MS)), keyOf: zipfKeys(keys) }
    const { callsPerRequest } = await simulateLimiters(group)
    const sum = systemCost(costs, { nodes: count, keys, perSecond, limitPerSecond: limit, leaseMs: LEASE_MS, nodesPerKey: count })
    runs.push({ what: `sum over keys: ${textOf(group)}, Zipf`, callsPerRequest: [callsPerRequest, sum.callsPerRequest] })
  }
  return runs
}

function compared(
  what: string,
  reference: { readonly callsPerRequest: number; readonly budgetUse: number },
  other: { readonly callsPerRequest: number; readonly budgetUse: number },
): ComparedRun {
  return { what, callsPerRequest: [reference.callsPerRequest, other.callsPerRequest], budgetUse: [reference.budgetUse, other.budgetUse] }
}

function groupOf(nodes: number, keys: number, limit: number, perSecond: number, horizonMs: number): MeasuredGroup {
  const policy = tokenBucket({ limit, window: '1s', burst: limit })
  return { policy, nodes, keys, perSecond, horizonMs, seconds: 6, warmUpSeconds: 2, seed: 7 }
}

function simulatedGroup(group: MeasuredGroup): NodeGroup {
  return { ...group, roundTripUs: () => ROUND_TRIP_US, serviceUs: 10 }
}

function textOf({ nodes, keys, policy, perSecond }: MeasuredGroup): string {
  const each = keys === 1 ? '1 key' : `${keys} keys`
  return `${nodes} nodes, ${each} of ${policy.limit.toLocaleString('en')}/s, ${perSecond.toLocaleString('en')} requests/s`
}

function zipfKeys(keys: number): (fraction: number) => number {
  let sum = 0
  const upTo = zipfShares(keys).map((share) => {
    sum += share
    return sum
  })
  return (fraction) => {
    const key = upTo.findIndex((each) => each > fraction)
    return key === -1 ? keys - 1 : key
  }
}

import type { ChildProcess } from 'node:child_process'
import { setTimeout as after } from 'node:timers/promises'
import { type Admission, type RateSpec, RedisProcess, until, worstExcess } from 'sluicegate-testkit'
import { Fleet, type NodeReport } from './fleet.js'

/** How long counts go on after the outage, by its length. */
const COUNTING_SHARE = 0.5

/** An outage of the whole store, seen by all processes. */
export type SharedOutageReport = Awaited<ReturnType<typeof sharedOutage>>

/**
 * Kills the store of several processes that ask all the time, for so long. Meanwhile one process is started, and one dies; then the store comes
 * back without its data.
 */
export async function sharedOutage(processes: number, seconds: number, policy: RateSpec) {
  const server = await RedisProcess.start()
  let served = new Set<ChildProcess>()
  const leastNodes = new Map<ChildProcess, number>()
  const onReport = (child: ChildProcess, { nodes, takes: { shared = [] } }: NodeReport): void => {
    leastNodes.set(child, Math.min(nodes, leastNodes.get(child) ?? nodes))
    if (shared.some(({ decision }) => decision.allowed && decision.source !== 'outage')) served.add(child)
  }
  const fleet = new Fleet(processes, () => ({ store: 'redis', url: server.url, policy }), ['shared'], onReport)
  const known = fleet.children.slice(1)
  try {
    await until('each process knows all others', () => {
      const { reports } = fleet
      return reports.size === processes && [...reports.values()].every(({ nodes }) => nodes === processes)
    })
    await server.kill()
    const beginMs = performance.now()
    fleet.join()
    await after((seconds * 1000) / 2)
    fleet.killOne()
    await after((seconds * 1000) / 2)
    leastNodes.clear()
    served = new Set()
    const endMs = performance.now()
    await server.start()
    await until('the store decides again', () => fleet.children.every((child) => served.has(child)))
    // Those who count now find the store empty.
    await after(COUNTING_SHARE * seconds * 1000)
    const { limit, windowMs, burst } = policy
    const alone = fleet.loads.shared.takes.filter(({ decision }) => decision.allowed && decision.source === 'outage')
    const admissions = alone.map(({ answeredMs }): Admission => ({ atUs: Math.round(answeredMs * 1000), cost: 1 }))
    const tokensIn = (ms: number): number => burst + (limit / windowMs) * ms
    // The last goes back to the store a few seconds after that began.
    const wholeMs = Math.max(...alone.map(({ answeredMs }) => answeredMs)) - beginMs
    return {
      processes,
      seconds,
      /** Processes that were started during the outage. */
      started: 1,
      errors: fleet.errors.length,
      /** Tokens admitted until the store was started again, what the policy has for that time, and what the former share of a tenth would have let pass. */
      admitted: alone.filter(({ answeredMs }) => answeredMs < endMs).length,
      budget: Math.round(tokensIn(endMs - beginMs)),
      withTenths: Math.round(tokensIn(endMs - beginMs) * 0.1 * (processes + 1)),
      /** Tokens over the policy in the worst interval of the outage, and what the bound allows beyond it. */
      over: Number(worstExcess(policy, admissions).toFixed(1)),
      // A tenth for the one that never saw the store; a token for each process whose share of the burst is less.
      allowedOver: Math.round(tokensIn(wholeMs) * 0.1 + Math.max(0, processes - burst)),
      /** The least count of nodes in any process from the first answer after the outage on: the store began empty. */
      leastNodes: Math.min(...known.map((child) => leastNodes.get(child) ?? 0)),
    }
  } finally {
    fleet.end()
    await server.stop()
  }
}

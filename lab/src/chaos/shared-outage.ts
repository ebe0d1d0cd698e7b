import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as after } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Admission, type RateSpec, RedisProcess, until, worstExcess } from 'sluicegate-testkit'

/** How long counts go on after the outage, by its length. */
const COUNTING_SHARE = 0.5
const PROGRAM = fileURLToPath(new URL('./shared-outage-process.js', import.meta.url))

/** What a process is started with. */
export interface NodeStart {
  readonly url: string
  readonly policy: RateSpec
}

/** What a process did since its last report; times are microseconds of the machine's monotonic clock. */
export interface NodeReport {
  readonly nodes: number
  readonly localShare: number
  readonly errors: number
  readonly ofOutage: readonly number[]
  readonly ofStore: readonly number[]
}

/** An outage of the whole store, seen by all processes. */
export type SharedOutageReport = ReturnType<typeof reportOf>

class OutageNode {
  readonly outageUs: number[] = []
  last: NodeReport | undefined
  leastNodes = Number.POSITIVE_INFINITY
  storeTokens = 0
  private readonly child: ChildProcess

  constructor(start: NodeStart) {
    this.child = fork(PROGRAM, [JSON.stringify(start)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    this.child.on('message', (report: NodeReport) => {
      this.last = report
      this.outageUs.push(...report.ofOutage)
      this.storeTokens += report.ofStore.length
      this.leastNodes = Math.min(this.leastNodes, report.nodes)
    })
  }

  end(): void {
    this.child.kill('SIGKILL')
  }
}

/** The monotonic clock of the machine, which all processes share, in microseconds. */
export function machineUs(): number {
  return Number(process.hrtime.bigint() / 1000n)
}

/**
 * Kills the store of several processes that ask all the time, for so long. Meanwhile one process is started, and one dies; then the store comes
 * back without its data.
 */
export async function sharedOutage(processes: number, seconds: number, policy: RateSpec) {
  const server = await RedisProcess.start()
  const start: NodeStart = { url: server.url, policy }
  const nodes = Array.from({ length: processes }, () => new OutageNode(start))
  const newcomers: OutageNode[] = []
  try {
    await until('each process knows all others', () => nodes.every(({ last }) => last?.nodes === processes))
    await server.kill()
    const beginUs = machineUs()
    const newcomer = new OutageNode(start)
    newcomers.push(newcomer)
    await after((seconds * 1000) / 2)
    ;(nodes[0] as OutageNode).end()
    await after((seconds * 1000) / 2)
    const living = [...nodes.slice(1), newcomer]
    for (const node of living) {
      node.leastNodes = Number.POSITIVE_INFINITY
      node.storeTokens = 0
    }
    const endUs = machineUs()
    await server.start()
    await until('the store decides again', () => living.every(({ storeTokens }) => storeTokens > 0))
    // Those who count now find the store empty.
    await after(COUNTING_SHARE * seconds * 1000)
    return reportOf([...nodes, newcomer], nodes.slice(1), policy, { processes, seconds, started: newcomers.length }, [beginUs, endUs])
  } finally {
    for (const node of [...nodes, ...newcomers]) node.end()
    await server.stop()
  }
}

function reportOf(
  all: readonly OutageNode[],
  known: readonly OutageNode[],
  { limit, windowMs, burst }: RateSpec,
  { processes, seconds, started }: Readonly<Record<'processes' | 'seconds' | 'started', number>>,
  [beginUs, endUs]: readonly [number, number],
) {
  const admissions: Admission[] = all.flatMap(({ outageUs }) => outageUs.map((atUs) => ({ atUs, cost: 1 })))
  const budget = burst + (limit / windowMs) * ((endUs - beginUs) / 1000)
  // The last goes back to the store a few seconds after that began.
  const wholeMs = (Math.max(...admissions.map(({ atUs }) => atUs)) - beginUs) / 1000
  return {
    processes,
    seconds,
    /** Processes that were started during the outage. */
    started,
    errors: all.reduce((sum, { last }) => sum + (last?.errors ?? 0), 0),
    /** Tokens admitted until the store was started again, what the policy has for that time, and what the former share of a tenth would have let pass. */
    admitted: admissions.filter(({ atUs }) => atUs < endUs).length,
    budget: Math.round(budget),
    withTenths: Math.round(budget * 0.1 * (processes + started)),
    /** Tokens over the policy in the worst interval of the outage, and what the bound allows beyond it. */
    over: Number(worstExcess({ limit, windowMs, burst }, admissions).toFixed(1)),
    // A tenth for each that never saw the store; a token for each process whose share of the burst is less.
    allowedOver: Math.round((burst + (limit / windowMs) * wholeMs) * 0.1 * started + Math.max(0, processes - burst)),
    /** The least count of nodes in any process from the first answer after the outage on: the store began empty. */
    leastNodes: Math.min(...known.map(({ leastNodes }) => leastNodes)),
  }
}

import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { freePorts, RedisCluster, RedisProcess } from 'sluicegate-testkit'

/** What the state is held by. */
export type Topology = 'standalone' | 'cluster'

export const TOPOLOGIES: readonly Topology[] = ['standalone', 'cluster']

/** Where the servers are. */
export interface Place {
  readonly topology: Topology
  /** Of the primaries, on this machine. */
  readonly ports: readonly number[]
}

/** Servers that were started for a measurement, and end with it. */
export interface Servers {
  readonly place: Place
  stop(): Promise<void>
}

/** A node that a full machine kept waiting has not failed: no replica is to take over in the midst of a run. */
const PATIENT = ['--cluster-node-timeout', '30000']

/** One server, or a cluster of three primaries with a replica each, on loopback. */
export async function startServers(topology: Topology): Promise<Servers> {
  if (topology === 'standalone') {
    const [port = 0] = await freePorts(1)
    const server = await RedisProcess.start({ port })
    return { place: { topology, ports: [port] }, stop: () => server.stop() }
  }
  const cluster = await RedisCluster.start({ primaries: 3, replicas: 1, args: PATIENT })
  const primaries = await cluster.primaries()
  return { place: { topology, ports: primaries.map(({ port }) => port) }, stop: () => cluster.stop() }
}

/** Name and version of the program that all servers run. */
export function serverVersion(): string {
  const said = execFileSync(process.env.SLUICEGATE_REDIS_SERVER ?? 'redis-server', ['--version'], { encoding: 'utf8' })
  const [, name, version] = said.match(/^(\S+) server v=(\S+)/) ?? []
  return name === undefined ? 'unknown' : `${name} ${version}`
}

/** Calls of each command, and the microseconds that the servers spent on them. */
type CommandCounts = ReadonlyMap<string, { readonly calls: number; readonly us: number }>

/** What a client sent, and what that cost the servers. */
interface Sent {
  readonly calls: number
  readonly us: number
}

const run = promisify(execFile)
const SCRIPTS: readonly string[] = ['eval', 'evalsha']
/** Of the servers among themselves, of clients that connect, and of the counter itself. */
const HOUSEKEEPING = /^(info|ping|hello|replconf|psync|client|cluster|config|command|script|select|auth|role)(\||$)/

/** What the servers say they did since they started. */
export async function commandCounts(ports: readonly number[]): Promise<CommandCounts> {
  const replies = await Promise.all(ports.map((port) => run('redis-cli', ['-p', String(port), 'INFO', 'commandstats'])))
  return countsIn(replies.map(({ stdout }) => stdout).join('\n'))
}

/** The counts in replies to INFO commandstats, those of several servers together. */
export function countsIn(text: string): CommandCounts {
  const counts = new Map<string, { calls: number; us: number }>()
  for (const [, name = '', calls, us] of text.matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)) {
    const before = counts.get(name) ?? { calls: 0, us: 0 }
    counts.set(name, { calls: before.calls + Number(calls), us: before.us + Number(us) })
  }
  return counts
}

/**
 * What clients sent between two counts. Commands that a script runs are counted by the servers like any other, and their time is within the
 * script's: where there are scripts, the scripts are what was sent.
 */
export function sentBetween(before: CommandCounts, after: CommandCounts): Sent {
  const sent = [...after].map(([name, { calls, us }]) => {
    const earlier = before.get(name) ?? { calls: 0, us: 0 }
    return { name, calls: calls - earlier.calls, us: us - earlier.us }
  })
  const scripts = sent.filter(({ name, calls }) => SCRIPTS.includes(name) && calls > 0)
  const own = scripts.length > 0 ? scripts : sent.filter(({ name }) => !HOUSEKEEPING.test(name))
  // EXEC's time is that of what it runs, which is counted with it.
  return own.reduce((total, { name, calls, us }) => ({ calls: total.calls + calls, us: total.us + (name === 'exec' ? 0 : us) }), {
    calls: 0,
    us: 0,
  })
}

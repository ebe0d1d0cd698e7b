import { execFileSync } from 'node:child_process'
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

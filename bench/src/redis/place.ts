/** What the state is held by. */
export type Topology = 'standalone' | 'cluster'

export const TOPOLOGIES: readonly Topology[] = ['standalone', 'cluster']

/** Where the servers are. */
export interface Place {
  readonly topology: Topology
  /** Of the primaries, on this machine. */
  readonly ports: readonly number[]
}

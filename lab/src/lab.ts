import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts, RedisCluster, type RedisProcess } from 'sluicegate-testkit'
import type { LabProcess } from './lab-process.js'
import { startBalancer, startPrometheus } from './lab-servers.js'
import { type LabPolicy, type NodeSettings, ServiceNode } from './service-node.js'

export const POLICY: LabPolicy = { limit: 20, windowMs: 1_000, burst: 20 }

/** Processor time and calls of one primary. */
export interface ShardUse {
  readonly port: number
  readonly cpuS: number
  readonly calls: number
}

/** Service nodes, a Redis Cluster of three primaries with a replica each, a load balancer and Prometheus, all on loopback. */
export class Lab {
  readonly nodes: readonly ServiceNode[]
  readonly cluster: RedisCluster
  readonly folder: string
  readonly balancerPort: number
  readonly prometheusPort: number
  readonly #servers: readonly LabProcess[]
  settings: NodeSettings

  private constructor(
    made: Pick<Lab, 'nodes' | 'cluster' | 'folder' | 'balancerPort' | 'prometheusPort' | 'settings'>,
    servers: LabProcess[],
  ) {
    this.nodes = made.nodes
    this.cluster = made.cluster
    this.folder = made.folder
    this.balancerPort = made.balancerPort
    this.prometheusPort = made.prometheusPort
    this.settings = made.settings
    this.#servers = servers
  }

  static async start(count: number): Promise<Lab> {
    const folder = mkdtempSync(join(tmpdir(), 'sluicegate-lab-'))
    const cluster = await RedisCluster.start()
    await cluster.behindProxies()
    const settings: NodeSettings = {
      policies: { api: POLICY },
      redis: cluster.roots.map(({ host, port }) => `redis://${host}:${port}`),
      mode: 'leased',
    }
    const [balancerPort = 0, prometheusPort = 0, ...ports] = await freePorts(count + 2)
    const nodes = ports.map((port, i) => new ServiceNode(`node-${i + 1}`, port, folder, settings))
    await Promise.all(nodes.map((node) => node.start()))
    const servers = [await startBalancer(balancerPort, nodes, folder), await startPrometheus(prometheusPort, nodes, folder)]
    return new Lab({ nodes, cluster, folder, balancerPort, prometheusPort, settings }, servers)
  }

  /** Addresses of the cluster. */
  get redis(): string[] {
    return this.cluster.roots.map(({ host, port }) => `redis://${host}:${port}`)
  }

  /** Restarts the nodes with other settings, if they differ. */
  async use(settings: Partial<NodeSettings>): Promise<void> {
    const next = { ...this.settings, ...settings }
    if (JSON.stringify(next) === JSON.stringify(this.settings)) return
    this.settings = next
    for (const node of this.nodes) {
      await node.crash()
      node.change(next)
      await node.start()
    }
  }

  /** The primary that holds a name. */
  async primaryOf(key: string): Promise<RedisProcess> {
    return this.cluster.primaryOf(await this.#slotOf(key))
  }

  /** As any server that answers computes it. */
  async #slotOf(key: string): Promise<number> {
    for (const server of this.cluster.nodes) {
      const slot = await server.ask('CLUSTER', 'KEYSLOT', key).catch(() => undefined)
      if (slot !== undefined) return Number(slot)
    }
    throw new Error('no server of the cluster answers')
  }

  async shardUse(): Promise<ShardUse[]> {
    const servers = this.cluster.nodes
    return Promise.all(
      servers.map(async (server) => {
        const info = await server.ask('INFO').catch(() => '')
        const number = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? 0)
        const calls = ['evalsha', 'eval', 'fcall'].map((name) => server.callsOf(name).catch(() => 0))
        return {
          port: server.port,
          cpuS: number('used_cpu_user') + number('used_cpu_sys'),
          calls: (await Promise.all(calls)).reduce((sum, each) => sum + each, 0),
        }
      }),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#servers.map((server) => server.end()), ...this.nodes.map((node) => node[Symbol.asyncDispose]())])
    await this.cluster.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

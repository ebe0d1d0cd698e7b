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
  readonly folder = mkdtempSync(join(tmpdir(), 'sluicegate-lab-'))
  readonly cluster: RedisCluster
  readonly nodes: readonly ServiceNode[]
  readonly balancerPort: number
  readonly prometheusPort: number
  settings: NodeSettings
  readonly #servers: LabProcess[] = []

  private constructor(cluster: RedisCluster, [balancerPort = 0, prometheusPort = 0, ...ports]: readonly number[]) {
    this.cluster = cluster
    this.balancerPort = balancerPort
    this.prometheusPort = prometheusPort
    this.settings = { policies: { api: POLICY }, redis: this.redis, mode: 'leased' }
    this.nodes = ports.map((port, i) => new ServiceNode(`node-${i + 1}`, port, this.folder, this.settings))
  }

  static async start(count: number): Promise<Lab> {
    const cluster = await RedisCluster.start()
    await cluster.behindProxies()
    const lab = new Lab(cluster, await freePorts(count + 2))
    const { nodes, folder } = lab
    await Promise.all(nodes.map((node) => node.start()))
    lab.#servers.push(await startBalancer(lab.balancerPort, nodes, folder), await startPrometheus(lab.prometheusPort, nodes, folder))
    return lab
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

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { freePorts } from './free-ports.js'
import { RedisProcess } from './redis-process.js'

const run = promisify(execFile)
const READY_MS = 30_000
const ASK_MS = 50
/** Short, so that tests of a failover are: a node that is silent for so long is taken for failed. */
const NODE_TIMEOUT_MS = 1000

export interface RedisClusterOptions {
  readonly primaries?: number
  readonly replicas?: number
  readonly args?: readonly string[]
}

/** A real Redis Cluster on loopback: 3 primaries with a replica each unless told otherwise. */
export class RedisCluster {
  readonly nodes: RedisProcess[]
  private readonly args: readonly string[]

  private constructor(nodes: RedisProcess[], args: readonly string[]) {
    this.nodes = nodes
    this.args = args
  }

  static async start({ primaries = 3, replicas = 1, args = [] }: RedisClusterOptions = {}): Promise<RedisCluster> {
    const ports = await freePorts(primaries * (1 + replicas))
    const nodes = await Promise.all(ports.map((port) => RedisProcess.start({ port, args: [...clusterArgs(), ...args] })))
    const cluster = new RedisCluster(nodes, args)
    await cli('--cluster', 'create', ...nodes.map(addressOf), '--cluster-replicas', String(replicas), '--cluster-yes')
    await cluster.ready()
    return cluster
  }

  /** Where a client may begin. */
  get roots(): { readonly host: string; readonly port: number }[] {
    return this.nodes.map(({ host, port }) => ({ host, port }))
  }

  /** The nodes that hold slots now, as any node that answers knows. */
  async primaries(): Promise<RedisProcess[]> {
    const ports = (await this.view()).filter(({ flags, slots }) => flags.includes('master') && !flags.includes('fail') && slots > 0)
    return this.nodes.filter(({ port }) => ports.some((node) => node.port === port))
  }

  /** The primary of a slot. */
  async primaryOf(slot: number): Promise<RedisProcess> {
    const reply = await this.ask('CLUSTER', 'SLOTS')
    const numbers = reply.split('\n')
    for (let i = 0; i + 3 < numbers.length; i++) {
      const [from, to, host, port] = [Number(numbers[i]), Number(numbers[i + 1]), numbers[i + 2], Number(numbers[i + 3])]
      if (host === '127.0.0.1' && slot >= from && slot <= to) return this.nodes.find((node) => node.port === port) as RedisProcess
    }
    throw new Error(`nobody holds slot ${slot}`)
  }

  /** Another primary joins, without slots. */
  async join(): Promise<RedisProcess> {
    const [port = 0] = await freePorts(1)
    const node = await RedisProcess.start({ port, args: [...clusterArgs(), ...this.args] })
    await cli('--cluster', 'add-node', addressOf(node), addressOf(this.nodes[0] as RedisProcess))
    this.nodes.push(node)
    await this.ready()
    return node
  }

  /** Moves so many slots, with their keys, to a node from all others, or from it to the others. */
  async reshard(to: RedisProcess, slots: number, from: readonly RedisProcess[] | 'all' = 'all'): Promise<void> {
    const ids = from === 'all' ? 'all' : (await Promise.all(from.map((node) => this.idOf(node)))).join(',')
    const moved = ['--cluster-from', ids, '--cluster-to', await this.idOf(to), '--cluster-slots', String(slots)]
    await cli('--cluster', 'reshard', addressOf(to), ...moved, '--cluster-yes')
  }

  /** A node that holds no slots leaves, and ends. */
  async leave(node: RedisProcess): Promise<void> {
    const others = this.nodes.filter((other) => other !== node)
    await cli('--cluster', 'del-node', addressOf(others[0] as RedisProcess), await this.idOf(node))
    this.nodes.splice(this.nodes.indexOf(node), 1)
    await node.stop()
  }

  /** Until all slots are held and every node knows all others. */
  async ready(): Promise<void> {
    const untilMs = performance.now() + READY_MS
    for (;;) {
      const states = await Promise.all(this.nodes.map((node) => stateOf(node)))
      if (states.every((state) => /cluster_state:ok/.test(state) && state.includes(`cluster_known_nodes:${this.nodes.length}`))) return
      if (performance.now() > untilMs) throw new Error(`the cluster is not ready after ${READY_MS} ms: ${states.join('\n')}`)
      await new Promise((resolve) => setTimeout(resolve, ASK_MS))
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  private async idOf({ port }: RedisProcess): Promise<string> {
    return (await cli('-p', String(port), 'CLUSTER', 'MYID')).trim()
  }

  private async view(): Promise<{ readonly port: number; readonly flags: string; readonly slots: number }[]> {
    const lines = (await this.ask('CLUSTER', 'NODES')).trim().split('\n')
    return lines.map((line) => {
      const [, address = '', flags = '', , , , , , ...slots] = line.split(' ')
      return { port: Number(/:(\d+)@/.exec(address)?.[1]), flags, slots: slots.length }
    })
  }

  /** Of the first node that answers. */
  private async ask(...command: readonly string[]): Promise<string> {
    for (const { port } of this.nodes) {
      const reply = await cli('-p', String(port), ...command).catch(() => undefined)
      if (reply !== undefined) return reply
    }
    throw new Error('no node of the cluster answers')
  }
}

function clusterArgs(): string[] {
  return ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(NODE_TIMEOUT_MS), '--cluster-replica-validity-factor', '0']
}

function addressOf({ host, port }: RedisProcess): string {
  return `${host}:${port}`
}

function stateOf({ port }: RedisProcess): Promise<string> {
  return cli('-p', String(port), 'CLUSTER', 'INFO').catch((error) => String(error))
}

async function cli(...args: readonly string[]): Promise<string> {
  const { stdout } = await run('redis-cli', [...args], { timeout: READY_MS })
  return stdout
}

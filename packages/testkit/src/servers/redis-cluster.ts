import { FaultProxy } from './fault-proxy.js'
import { freePorts } from './free-ports.js'
import { RedisProcess, redisCli } from './redis-process.js'
import { until } from './until.js'

/** Short, so that tests of a failover are: a node that is silent for so long is taken for failed. */
const NODE_TIMEOUT_MS = 1000
/** As in {@link freePorts}. */
const BUS = 10_000
/** A manual failover that takes longer was given up. */
const FAILOVER_MS = 6000

interface NodeView {
  readonly node: RedisProcess
  readonly flags: string
  readonly primaryId: string | undefined
  readonly slots: (readonly [from: number, to: number])[]
}

export interface RedisClusterOptions {
  readonly primaries?: number
  readonly replicas?: number
  readonly args?: readonly string[]
}

/** A real Redis Cluster on loopback: 3 primaries with a replica each by default. */
export class RedisCluster {
  readonly nodes: RedisProcess[]
  /** Of each node, once {@link RedisCluster.behindProxies} was called. */
  readonly proxies = new Map<RedisProcess, FaultProxy>()
  private readonly args: readonly string[]

  private constructor(nodes: RedisProcess[], args: readonly string[]) {
    this.nodes = nodes
    this.args = args
  }

  static async start({ primaries = 3, replicas = 1, args = [] }: RedisClusterOptions = {}): Promise<RedisCluster> {
    const ports = await freePorts(primaries * (1 + replicas))
    const nodes = await Promise.all(ports.map((port) => RedisProcess.start({ port, args: [...clusterArgs(), ...args] })))
    const cluster = new RedisCluster(nodes, args)
    await redisCli('--cluster', 'create', ...nodes.map(addressOf), '--cluster-replicas', String(replicas), '--cluster-yes')
    await cluster.ready()
    return cluster
  }

  /** Where a client may begin. */
  get roots(): { readonly host: string; readonly port: number }[] {
    return this.nodes.map((node) => {
      const { host, port } = this.proxies.get(node) ?? node
      return { host, port }
    })
  }

  /** From now on the nodes tell everybody to come through a proxy each. */
  async behindProxies(): Promise<void> {
    for (const node of this.nodes) await this.announce(node, await FaultProxy.before(node))
    await this.proxiesKnown()
  }

  /** Starts a node again that was killed. The proxies that the nodes announce are not in its configuration. */
  async restart(node: RedisProcess): Promise<void> {
    await node.start()
    const proxy = this.proxies.get(node)
    if (proxy === undefined) return
    await this.announce(node, proxy)
    await this.proxiesKnown()
  }

  /** The nodes that hold slots now, as any node that answers knows. */
  async primaries(): Promise<RedisProcess[]> {
    const view = await this.view()
    return view
      .filter(({ flags, slots }) => flags.includes('master') && !flags.includes('fail') && slots.length > 0)
      .map(({ node }) => node)
  }

  /** The primary of a slot. */
  async primaryOf(slot: number): Promise<RedisProcess> {
    const view = await this.view()
    const holder = view.find(({ flags, slots }) => flags.includes('master') && slots.some(([from, to]) => slot >= from && slot <= to))
    if (holder === undefined) throw new Error(`no node holds slot ${slot}`)
    return holder.node
  }

  /** The replica of a primary takes its place in an orderly way, so that nothing is lost; the old one follows it. */
  async failOver(primary: RedisProcess): Promise<RedisProcess> {
    const id = await this.idOf(primary)
    const replica = (await this.view()).find(({ primaryId }) => primaryId === id)?.node
    if (replica === undefined) throw new Error(`the node on port ${primary.port} has no replica`)
    const ports = [replica.port, this.proxies.get(replica)?.port]
    let askedMs = Number.NEGATIVE_INFINITY
    await until(`the node on port ${replica.port} has taken over`, async () => {
      // On a busy machine the others may not agree in time.
      if (performance.now() - askedMs > FAILOVER_MS) {
        askedMs = performance.now()
        await replica.ask('CLUSTER', 'FAILOVER').catch(() => undefined)
      }
      const follows = await primary.ask('INFO', 'replication')
      const isFollowing = ports.some((port) => follows.includes(`master_port:${port}\r`))
      return isFollowing && follows.includes('master_link_status:up')
    })
    await this.agreed(primary, await this.idOf(replica))
    return replica
  }

  /** Another primary joins, without slots. */
  async join(): Promise<RedisProcess> {
    const node = await RedisProcess.start({ args: [...clusterArgs(), ...this.args] })
    await redisCli('--cluster', 'add-node', addressOf(node), addressOf(this.nodes[0] as RedisProcess))
    this.nodes.push(node)
    await this.ready()
    if (this.proxies.size === 0) return node
    await this.announce(node, await FaultProxy.before(node))
    await this.proxiesKnown()
    return node
  }

  /** Moves `count` slots, with their keys, to a node from all others, or from some. */
  async reshard(to: RedisProcess, slots: number, from: readonly RedisProcess[] | 'all' = 'all'): Promise<void> {
    const ids = from === 'all' ? 'all' : (await Promise.all(from.map((node) => this.idOf(node)))).join(',')
    // Gossip spreads slots that have just moved: until all nodes say the same, none is moved.
    const agree = (): Promise<boolean> => redisCli('--cluster', 'check', addressOf(to)).then(Boolean, () => false)
    await until('all nodes agree on who holds which slot', agree)
    const moved = ['--cluster-from', ids, '--cluster-to', await this.idOf(to), '--cluster-slots', String(slots)]
    await redisCli('--cluster', 'reshard', addressOf(to), ...moved, '--cluster-yes')
  }

  /** A node that holds no slots leaves, and ends. */
  async leave(node: RedisProcess): Promise<void> {
    const others = this.nodes.filter((other) => other !== node)
    await redisCli('--cluster', 'del-node', addressOf(others[0] as RedisProcess), await this.idOf(node))
    this.nodes.splice(this.nodes.indexOf(node), 1)
    await node.stop()
    await this.proxies.get(node)?.stop()
    this.proxies.delete(node)
  }

  /** The name by which a node is known to the others. */
  idOf(node: RedisProcess): Promise<string> {
    return node.ask('CLUSTER', 'MYID')
  }

  /** Until all slots are held and every node that runs knows all others. */
  async ready(): Promise<void> {
    const isReady = async (node: RedisProcess): Promise<boolean> => {
      const state = await node.ask('CLUSTER', 'INFO').catch(() => '')
      return state.includes('cluster_state:ok') && state.includes(`cluster_known_nodes:${this.nodes.length}\r`)
    }
    await until('the cluster is ready', async () => (await Promise.all(this.nodes.map(isReady))).every(Boolean))
  }

  async stop(): Promise<void> {
    await Promise.all([...this.proxies.values(), ...this.nodes].map((server) => server.stop()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  private async announce(node: RedisProcess, proxy: FaultProxy): Promise<void> {
    this.proxies.set(node, proxy)
    await node.ask('CONFIG', 'SET', 'cluster-announce-bus-port', String(node.port + BUS))
    await node.ask('CONFIG', 'SET', 'cluster-announce-port', String(proxy.port))
  }

  private async proxiesKnown(): Promise<void> {
    const knowsAll = async (node: RedisProcess): Promise<boolean> => {
      const view = await node.ask('CLUSTER', 'NODES').catch(() => '')
      return [...this.proxies.values()].every(({ port }) => view.includes(`:${port}@`))
    }
    await until('every node knows the proxies of all', async () => (await Promise.all(this.nodes.map(knowsAll))).every(Boolean))
  }

  /** Until all nodes know whom a node follows: they hear of it from one another. */
  private async agreed(follower: RedisProcess, primaryId: string): Promise<void> {
    const knows = async (node: RedisProcess): Promise<boolean> => {
      const view = await node.ask('CLUSTER', 'NODES').catch(() => undefined)
      return view === undefined || this.read(view).some((seen) => seen.node === follower && seen.primaryId === primaryId)
    }
    await until('all nodes know who has taken over', async () => (await Promise.all(this.nodes.map(knows))).every(Boolean))
  }

  /** As the first node that answers sees it. */
  private async view(): Promise<NodeView[]> {
    return this.read(await this.ask('CLUSTER', 'NODES'))
  }

  private read(view: string): NodeView[] {
    return view.split('\n').flatMap((line) => {
      const [, address = '', flags = '', primaryId, , , , , ...ranges] = line.trim().split(' ')
      const port = Number(/:(\d+)@/.exec(address)?.[1])
      const node = this.nodes.find((own) => own.port === port || this.proxies.get(own)?.port === port)
      const slots = ranges.filter((range) => !range.startsWith('[')).map((range) => boundsOf(range))
      return node === undefined ? [] : [{ node, flags, primaryId, slots }]
    })
  }

  private async ask(...command: readonly string[]): Promise<string> {
    for (const node of this.nodes) {
      const reply = await node.ask(...command).catch(() => undefined)
      if (reply !== undefined) return reply
    }
    throw new Error('no node of the cluster answers')
  }
}

function boundsOf(range: string): readonly [number, number] {
  const [from, to = from] = range.split('-').map(Number)
  return [from as number, to as number]
}

function clusterArgs(): string[] {
  return ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(NODE_TIMEOUT_MS), '--cluster-replica-validity-factor', '0']
}

function addressOf({ host, port }: RedisProcess): string {
  return `${host}:${port}`
}

const MOST_KEYS = '1000'
const LONGEST_MS = '5000'

/** A slot on its way to another primary, step by step: its keys are here or there until it ends. */
export class SlotMove {
  private readonly slot: string
  private readonly cluster: RedisCluster
  private readonly from: RedisProcess
  private readonly to: RedisProcess

  private constructor(cluster: RedisCluster, slot: number, from: RedisProcess, to: RedisProcess) {
    this.cluster = cluster
    this.slot = String(slot)
    this.from = from
    this.to = to
  }

  /** From now on the old primary sends those who ask for keys that it has not got to the new one, by ASK. */
  static async begin(cluster: RedisCluster, slot: number, to: RedisProcess): Promise<SlotMove> {
    const from = await cluster.primaryOf(slot)
    const move = new SlotMove(cluster, slot, from, to)
    await to.ask('CLUSTER', 'SETSLOT', move.slot, 'IMPORTING', await cluster.idOf(from))
    await from.ask('CLUSTER', 'SETSLOT', move.slot, 'MIGRATING', await cluster.idOf(to))
    return move
  }

  async moveKeys(): Promise<void> {
    const { from, to } = this
    const listed = await from.ask('CLUSTER', 'GETKEYSINSLOT', this.slot, MOST_KEYS)
    const keys = listed.split('\n').filter((key) => key !== '')
    if (keys.length > 0) await from.ask('MIGRATE', to.host, String(to.port), '', '0', LONGEST_MS, 'KEYS', ...keys)
  }

  /** From now on the old primary sends everybody to the new one, by MOVED. */
  async end(): Promise<void> {
    const id = await this.cluster.idOf(this.to)
    for (const node of [this.to, this.from]) await node.ask('CLUSTER', 'SETSLOT', this.slot, 'NODE', id)
  }
}

import type { RedisCluster } from './redis-cluster.js'
import type { RedisProcess } from './redis-process.js'

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

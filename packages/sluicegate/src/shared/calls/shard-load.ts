import { type HotKey, merged, SpaceSaving } from '../../decision/hot-keys.js'

/** Calls to one server. */
export interface ServerLoad {
  /** Undefined when the client names no servers, or there is only one. */
  readonly server: string | undefined
  readonly calls: number
  /** Its share of all calls of this process, 0 to 1. */
  readonly share: number
  /** The keys that cause most of them. */
  readonly keys: readonly HotKey[]
}

/** Calls about the keys of one hash slot of a cluster. */
export interface SlotLoad extends ServerLoad {
  readonly slot: number
}

/** Where the calls of this process go, busiest first. */
export interface ShardLoads {
  readonly calls: number
  readonly servers: readonly ServerLoad[]
  /** The slots of the keys with the most calls; empty unless the backend is a cluster. */
  readonly slots: readonly SlotLoad[]
}

/** Keys that are counted individually, over all servers. */
const COUNTED_KEYS = 256

/** Counts calls by server, hash slot and key, in fixed memory. */
export class ShardLoad {
  private readonly serverOf: (key: string) => string | undefined
  private readonly slotOf: (key: string) => number | undefined
  private readonly calls = new Map<string | undefined, number>()
  private readonly keys = new SpaceSaving(COUNTED_KEYS)
  private slots: Float64Array | undefined
  private total = 0

  constructor(serverOf: (key: string) => string | undefined, slotOf: (key: string) => number | undefined) {
    this.serverOf = serverOf
    this.slotOf = slotOf
  }

  count(key: string): void {
    const server = this.serverOf(key)
    const slot = this.slotOf(key)
    this.total++
    this.calls.set(server, (this.calls.get(server) ?? 0) + 1)
    this.keys.add(key)
    if (slot === undefined) return
    this.slots ??= new Float64Array(SLOTS)
    this.slots[slot] = (this.slots[slot] as number) + 1
  }

  /** The `n` busiest servers and slots, each with the `n` keys that cause it. */
  top(n: number): ShardLoads {
    const keys = this.keys.top(COUNTED_KEYS)
    const servers = [...this.calls].map(([server, calls]) => {
      return { server, calls, share: this.shareOf(calls), keys: keys.filter(({ key }) => this.serverOf(key) === server).slice(0, n) }
    })
    return { calls: this.total, servers: busiest(servers, n), slots: busiest(this.slotLoads(keys, n), n) }
  }

  private slotLoads(keys: readonly HotKey[], n: number): SlotLoad[] {
    const { slots } = this
    if (slots === undefined) return []
    const numbers = new Set(keys.map(({ key }) => this.slotOf(key) as number))
    return [...numbers].map((slot) => {
      const own = keys.filter(({ key }) => this.slotOf(key) === slot)
      const calls = slots[slot] as number
      return { slot, server: this.serverOf(own[0]?.key as string), calls, share: this.shareOf(calls), keys: own.slice(0, n) }
    })
  }

  private shareOf(calls: number): number {
    return this.total === 0 ? 0 : calls / this.total
  }
}

const SLOTS = 16_384

function busiest<Load extends ServerLoad>(loads: readonly Load[], n: number): Load[] {
  return [...loads].sort((a, b) => b.calls - a.calls).slice(0, n)
}

/** The loads of several limiters as one: the `n` busiest servers and slots, each with the `n` keys that cause it. */
export function mergedLoads(all: readonly ShardLoads[], n: number): ShardLoads {
  const calls = all.reduce((sum, one) => sum + one.calls, 0)
  const together = <Load extends ServerLoad>(loads: readonly Load[], placeOf: (load: Load) => unknown): Load[] => {
    const byPlace = new Map<unknown, Load>()
    for (const load of loads) {
      const place = placeOf(load)
      const other = byPlace.get(place)
      const sum = load.calls + (other?.calls ?? 0)
      const keys = merged([...(other?.keys ?? []), ...load.keys])
      byPlace.set(place, { ...load, calls: sum, share: calls === 0 ? 0 : sum / calls, keys })
    }
    return busiest([...byPlace.values()], n).map((load) => ({ ...load, keys: load.keys.slice(0, n) }))
  }
  const servers = all.flatMap((one) => one.servers)
  const slots = all.flatMap((one) => one.slots)
  return { calls, servers: together(servers, ({ server }) => server), slots: together(slots, ({ slot }) => slot) }
}

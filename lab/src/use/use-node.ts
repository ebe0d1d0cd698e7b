import { createClient } from '@redis/client'
import type { Policy } from 'sluicegate'
import { createClusterLimiter } from 'sluicegate/cluster'
import type { FleetLimiter } from 'sluicegate/redis'
import { createRedisLimiter } from 'sluicegate/redis'
import { arrivalsOf, MODES, type Mode, namedPolicy, type UseCell } from './use-cell.js'

/** What a node is to do: its arrivals of a cell, from an instant on, at two limiters. */
export interface UseTask {
  /** Of Redis; undefined where the parent process keeps the budgets. */
  readonly url: string | undefined
  /** Begins the names of the policies. */
  readonly name: string
  readonly cell: UseCell
  readonly node: number
  readonly seconds: number
  readonly seed: number
  readonly startAtMs: number
}

/** What one limiter of a node did. */
export interface UseSide {
  readonly admitted: number
  readonly calls: number
  /** Of all takes. */
  readonly tookMs: readonly number[]
  readonly withoutStore: number
}

export interface UseReport {
  readonly requests: number
  readonly exact: UseSide
  readonly leased: UseSide
}

/** A process of the measured runs: each arrival is a take at an exact limiter and one at a leased one, whose budgets are apart. */
if (process.send !== undefined) {
  // The messages of limiters come by the same channel.
  const begin = (message: object): void => {
    if (!('cell' in message)) return
    process.off('message', begin)
    void play(message as UseTask).then((report) => process.send?.(report, () => process.exit(0)))
  }
  process.on('message', begin)
}

async function play({ url, name, cell, node, seconds, seed, startAtMs }: UseTask): Promise<UseReport> {
  const sides = await Promise.all(MODES.map((mode) => Side.start(url, namedPolicy(cell, name, mode), mode)))
  const own = arrivalsOf(cell, seconds, seed).filter((arrival) => arrival.node === node)
  const pending: Promise<void>[] = []
  for (const { atUs } of own) {
    const dueMs = startAtMs + atUs / 1000
    while (performance.timeOrigin + performance.now() < dueMs) await new Promise((resolve) => setTimeout(resolve, 1))
    for (const side of sides) pending.push(side.take())
  }
  await Promise.all(pending)
  const [exact, leased] = sides.map((side) => side.end()) as [UseSide, UseSide]
  return { requests: own.length, exact, leased }
}

class Side {
  readonly #limiter: FleetLimiter
  readonly #stop: () => void
  readonly #tookMs: number[] = []
  #admitted = 0
  #withoutStore = 0

  private constructor(limiter: FleetLimiter, stop: () => void) {
    this.#limiter = limiter
    this.#stop = stop
  }

  static async start(url: string | undefined, policy: Policy, mode: Mode): Promise<Side> {
    const timeoutMs = 20_000
    if (url === undefined) return new Side(createClusterLimiter(policy, { timeoutMs }), () => undefined)
    const client = createClient({ url })
    client.on('error', () => undefined)
    await client.connect()
    return new Side(createRedisLimiter(policy, { client, mode, timeoutMs }), () => client.destroy())
  }

  async take(): Promise<void> {
    const sentMs = performance.now()
    const { allowed, source } = await this.#limiter.take('k')
    if (allowed) this.#admitted++
    if (source === 'outage') this.#withoutStore++
    this.#tookMs.push(performance.now() - sentMs)
  }

  end(): UseSide {
    const { storeCalls, storeFailures } = this.#limiter.stats()
    this.#limiter.close()
    this.#stop()
    return { admitted: this.#admitted, calls: storeCalls + storeFailures, tookMs: this.#tookMs, withoutStore: this.#withoutStore }
  }
}

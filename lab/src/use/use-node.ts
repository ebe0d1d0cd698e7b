import { createClient } from '@redis/client'
import type { Policy } from 'sluicegate'
import type { FleetLimiter } from 'sluicegate/redis'
import { createRedisLimiter } from 'sluicegate/redis'
import { arrivalsOf, policyOf, type UseCell } from './use-cell.js'

/** What a node is to do: its arrivals of a cell, from an instant on, at two limiters. */
export interface UseTask {
  readonly url: string
  readonly prefix: string
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
  process.once('message', (task: UseTask) => {
    play(task).then((report) => process.send?.(report, () => process.exit(0)))
  })
}

async function play({ url, prefix, cell, node, seconds, seed, startAtMs }: UseTask): Promise<UseReport> {
  const policy = policyOf(cell)
  if (policy === undefined) throw new Error('the policy of the cell is too small')
  const sides = await Promise.all((['exact', 'leased'] as const).map((mode) => Side.start(url, `${prefix}-${mode}`, mode, policy)))
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

  static async start(url: string, prefix: string, mode: 'exact' | 'leased', policy: Policy): Promise<Side> {
    const client = createClient({ url })
    client.on('error', () => undefined)
    await client.connect()
    return new Side(createRedisLimiter(policy, { client, prefix, mode, timeoutMs: 20_000 }), () => client.destroy())
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

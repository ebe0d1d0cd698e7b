import { createClient } from '@redis/client'
import { tokenBucket } from 'sluicegate'
import { createRedisLimiter, type FleetLimiter } from 'sluicegate/redis'
import { Random, RedisProcess } from 'sluicegate-testkit'
import { arrivalUs, keyOf, type NodeGroup } from './node-group.js'

/** The part of a group that a measurement does not bring by itself. */
export type MeasuredGroup = Omit<NodeGroup, 'roundTripUs' | 'serviceUs'>

/** What real limiters did over a real server. */
export type MeasuredFigures = Awaited<ReturnType<typeof sent>>

/** Connections, calls at once on each, and for how long, while the processor time of a call is measured. */
const [BUSY_CONNECTIONS, AT_ONCE, SATURATED_MS] = [64, 4, 2_000]
/** Over these the memory of one is averaged. */
const CONNECTIONS = 500
const PERCENTILES = 100
const ROUNDS = 3

/** Limiters of the library in this process, each with its own connection, on one real server. */
export class MeasuredNodes {
  readonly #server: RedisProcess
  #runs = 0

  private constructor(server: RedisProcess) {
    this.#server = server
  }

  static async start(): Promise<MeasuredNodes> {
    return new MeasuredNodes(await RedisProcess.start())
  }

  /** The run of three whose calls are in the middle: the machine may have been busy with other things during one. */
  async measure(group: MeasuredGroup): Promise<MeasuredFigures> {
    const runs: MeasuredFigures[] = []
    for (let round = 0; round < ROUNDS; round++) runs.push(await this.#measureOnce(group))
    return runs.sort((a, b) => a.callsPerRequest - b.callsPerRequest)[Math.floor(ROUNDS / 2)] as MeasuredFigures
  }

  /** Requests are the same as those of a simulation, at times of this machine. */
  async #measureOnce(group: MeasuredGroup): Promise<MeasuredFigures> {
    const prefix = `run-${this.#runs++}`
    const clients = await this.#clients(group.nodes)
    const limiters = clients.map((client) =>
      createRedisLimiter(group.policy, {
        client,
        prefix,
        ...(group.horizonMs === 0 ? { mode: 'exact' } : { lease: { horizonMs: group.horizonMs } }),
      }),
    )
    const figures = await sent(group, limiters)
    for (const limiter of limiters) limiter.close()
    for (const client of clients) client.destroy()
    return figures
  }

  /** Processor time of the server for a call, with many calls at once: `take` in exact mode, or a lease of a new key. The best of three rounds. */
  async serviceTimes(): Promise<{ readonly exactUs: number; readonly leaseUs: number }> {
    const [exactUs, leaseUs] = [[], []] as [number[], number[]]
    for (let round = 0; round < ROUNDS; round++) {
      exactUs.push(await this.#serviceUs('exact'))
      leaseUs.push(await this.#serviceUs('leased'))
    }
    return { exactUs: Math.min(...exactUs), leaseUs: Math.min(...leaseUs) }
  }

  async #serviceUs(mode: 'exact' | 'leased'): Promise<number> {
    const prefix = `service-${this.#runs++}`
    const clients = await this.#clients(BUSY_CONNECTIONS)
    const policy = tokenBucket({ limit: 1_000, window: '1s' })
    const limiters = clients.map((client) => createRedisLimiter(policy, { client, prefix, timeoutMs: 60_000, mode }))
    for (const limiter of limiters) await limiter.take('first')
    const before = await this.#cpuUs()
    const callsBefore = await this.#server.callsOf('evalsha')
    const endMs = performance.now() + SATURATED_MS
    let keys = 0
    const caller = async (limiter: FleetLimiter): Promise<void> => {
      while (performance.now() < endMs) await limiter.take(String(keys++))
    }
    await Promise.all(limiters.flatMap((limiter) => Array.from({ length: AT_ONCE }, () => caller(limiter))))
    const us = ((await this.#cpuUs()) - before) / ((await this.#server.callsOf('evalsha')) - callsBefore)
    for (const limiter of limiters) limiter.close()
    for (const client of clients) client.destroy()
    return us
  }

  /** Memory of the server for an idle connection, and for a key of a rate. */
  async memoryBytes(): Promise<{ readonly connection: number; readonly key: number }> {
    const idle = await this.#usedBytes()
    const clients = await this.#clients(CONNECTIONS)
    const connected = await this.#usedBytes()
    const [client] = clients
    if (client === undefined) throw new Error('no client')
    const limiter = createRedisLimiter(tokenBucket({ limit: 100, window: '1h' }), {
      client,
      prefix: 'memory',
      mode: 'exact',
      timeoutMs: 60_000,
    })
    await limiter.take('user:1234')
    const [name = ''] = (await this.#server.ask('KEYS', 'memory*')).split('\n')
    const key = Number(await this.#server.ask('MEMORY', 'USAGE', name))
    limiter.close()
    for (const each of clients) each.destroy()
    return { connection: (connected - idle) / CONNECTIONS, key }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop()
  }

  #clients(count: number) {
    const { url } = this.#server
    return Promise.all(
      Array.from({ length: count }, async () => {
        const client = createClient({ url })
        client.on('error', () => undefined)
        await client.connect()
        return client
      }),
    )
  }

  async #cpuUs(): Promise<number> {
    const info = await this.#server.ask('INFO', 'cpu')
    const seconds = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1])
    return (seconds('used_cpu_user') + seconds('used_cpu_sys')) * 1e6
  }

  async #usedBytes(): Promise<number> {
    return Number(/^used_memory:(\d+)/m.exec(await this.#server.ask('INFO', 'memory'))?.[1])
  }
}

async function sent(group: MeasuredGroup, limiters: readonly FleetLimiter[]) {
  const { policy, keys, seconds, warmUpSeconds } = group
  const demand = new Random(group.seed)
  const fromUs = warmUpSeconds * 1e6
  const untilUs = fromUs + seconds * 1e6
  const callsOf = (): number =>
    limiters.map((limiter) => limiter.stats()).reduce((sum, each) => sum + each.storeCalls + each.storeFailures, 0)
  const callsUs: number[] = []
  const decisions: Promise<void>[] = []
  let [requests, allowed, withoutStore, callsBefore] = [0, 0, 0, 0]
  const startMs = performance.now()
  const sinceUs = (): number => (performance.now() - startMs) * 1000
  const take = async (key: number, node: number, isCounted: boolean): Promise<void> => {
    const askedUs = sinceUs()
    const decision = await limiters[node]?.take(String(key))
    if (!isCounted || decision === undefined) return
    requests++
    if (decision.allowed) allowed++
    if (decision.source === 'outage') withoutStore++
    if (decision.source === 'store') callsUs.push(sinceUs() - askedUs)
  }
  let isWarm = false
  for (let dueUs = arrivalUs(group, demand.fraction()); dueUs < untilUs; dueUs += arrivalUs(group, demand.fraction())) {
    while (sinceUs() < dueUs) await new Promise((resolve) => setTimeout(resolve, 1))
    if (!isWarm && dueUs >= fromUs) {
      isWarm = true
      callsBefore = callsOf()
    }
    const key = keyOf(group, demand.fraction())
    decisions.push(take(key, Math.floor(demand.fraction() * group.nodes), isWarm))
  }
  await Promise.all(decisions)
  const calls = callsOf() - callsBefore
  return {
    callsPerRequest: calls / requests,
    callsPerToken: calls / allowed,
    budgetUse: allowed / ((keys * policy.limit * seconds * 1000) / policy.windowMs),
    withoutStore,
    /** Times of calls, as a node sees them: 0th, 1st ... 100th percentile. Empty where most decisions made no call. */
    callUs: percentilesOf(callsUs.sort((a, b) => a - b)),
  }
}

function percentilesOf(sorted: readonly number[]): number[] {
  if (sorted.length < PERCENTILES) return []
  return Array.from({ length: PERCENTILES + 1 }, (_, i) =>
    Math.round(sorted[Math.round((i / PERCENTILES) * (sorted.length - 1))] as number),
  )
}

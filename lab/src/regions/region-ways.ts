import { createClient } from '@redis/client'
import { tokenBucket } from 'sluicegate'
import { createRedisLimiter } from 'sluicegate/redis'

/** The one limit that all regions share. */
export const SHARED = { limit: 100, windowMs: 1_000, burst: 1_000 } as const
export const REGIONS = 3

export const WAYS = {
  far: 'one far store, exact',
  each: 'a store for each region',
  copied: 'counters copied each second',
  split: 'static split',
  home: 'a home and regions',
} as const

export type WayName = keyof typeof WAYS

/** Of one process of a region. */
export interface Taker {
  take(key: string): Promise<boolean>
  /** To the home so far, in the way that has one. */
  calls?(): number
}

/** What a process of a region calls. */
export interface RegionPlace {
  readonly region: string
  readonly store: string
  /** Through the slow link. */
  readonly far: string
}

type Client = Awaited<ReturnType<typeof opened>>

export async function takerOf(way: WayName, { region, store, far }: RegionPlace): Promise<Taker> {
  if (way === 'copied') return new CopiedCounters(await opened(far))
  const policy = tokenBucket({ limit: 100, window: '1s', burst: 1_000, name: 'api' })
  const third = tokenBucket({ limit: 100, window: `${REGIONS}s`, burst: Math.floor(1_000 / REGIONS), name: 'api' })
  const client = await opened(way === 'far' ? far : store)
  const options = way === 'far' ? { client, mode: 'exact' as const, timeoutMs: 1_000 } : { client }
  const home = way === 'home' ? { home: { client: await opened(far), region } } : {}
  const limiter = createRedisLimiter(way === 'split' ? third : policy, { ...options, ...home })
  const calls = (): number => {
    const { homeCalls = 0, homeFailures = 0 } = limiter.stats().region ?? {}
    return homeCalls + homeFailures
  }
  return { take: async (key) => (await limiter.take(key)).allowed, calls }
}

async function opened(url: string) {
  const client = createClient({ url, socket: { reconnectStrategy: 200 } })
  client.on('error', () => undefined)
  return client.connect()
}

/** What was spent elsewhere is read with the count that is added, once a second; a bucket that was overspent owes it. */
const COPY = `
local held = redis.call('HMGET', KEYS[1], 'level', 'at')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local level = tonumber(held[1] or ARGV[2])
level = math.min(tonumber(ARGV[2]), level + (now - (held[2] or now)) * ARGV[3] / 1000) - ARGV[1]
redis.call('HSET', KEYS[1], 'level', level, 'at', now)
return tostring(level)`
const COPY_MS = 1_000

/** As gateways build it: each process decides by its own count and the last sum that it read. */
class CopiedCounters implements Taker {
  readonly #client: Client
  #level = SHARED.burst as number
  #levelMs = performance.now()
  #since = 0
  #key = ''
  #isCopying = false

  constructor(client: Client) {
    this.#client = client
    setInterval(() => void this.#copy(), COPY_MS).unref()
  }

  async take(key: string): Promise<boolean> {
    this.#key = key
    const refilled = this.#level + ((performance.now() - this.#levelMs) * SHARED.limit) / SHARED.windowMs
    if (Math.min(SHARED.burst, refilled) - this.#since < 1) return false
    this.#since++
    return true
  }

  async #copy(): Promise<void> {
    if (this.#isCopying || this.#key === '') return
    this.#isCopying = true
    const sent = this.#since
    try {
      const args = [sent, SHARED.burst, SHARED.limit].map(String)
      this.#level = Number(await this.#client.eval(COPY, { keys: [`copied:${this.#key}`], arguments: args }))
      this.#levelMs = performance.now()
      this.#since -= sent
    } catch {
      // Sent again: it is not known whether it was counted.
    } finally {
      this.#isCopying = false
    }
  }
}

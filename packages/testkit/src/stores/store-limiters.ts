import type pg from 'pg'
import { primary } from '../../../sluicegate/dist/cluster/primary.js'
import { serveLimiter } from '../../../sluicegate/dist/cluster/serve-limiter.js'
import { createLimiter, type LimiterOptions } from '../../../sluicegate/dist/index.js'
import { postgresTable } from '../../../sluicegate/dist/postgres/table-name.js'
import { scriptedStore } from '../../../sluicegate/dist/redis/redis.js'
import { RedisKeys } from '../../../sluicegate/dist/redis/redis-keys.js'
import { RedisScripts } from '../../../sluicegate/dist/redis/redis-scripts.js'
import { nodeRedisRunner } from '../../../sluicegate/dist/redis/runners/node-redis.js'
import { casStoreOf } from '../../../sluicegate/dist/store/cas.js'
import type { CasStore } from '../../../sluicegate/dist/store/cas-store.js'
import { memoryStore } from '../../../sluicegate/dist/store-testing/memory-store.js'
import { channelPair } from '../cluster/channel-pair.js'
import type { MakeLimiter } from '../conformance/fixture.js'
import { limiterAtGivenTimes } from '../postgres/given-time.js'
import { GivenTime } from '../redis/given-time.js'

/** Whether tokens may be leased. */
export type Mode = 'exact' | 'leased'

/** Makes limiters over one store for the suite, each with keys of its own and at the time of the suite's clock. */
export type MakeOver = (mode: Mode) => MakeLimiter

type RedisConnection = Parameters<typeof nodeRedisRunner>[0] & { sendCommand(command: string[]): Promise<unknown> }

let made = 0

/** The options of a limiter over a store. */
function shared(mode: Mode, { hotKeys = 0, maxWaiters }: LimiterOptions) {
  return { mode, hotKeys, outage: 'closed', timeout: 60_000, ...(maxWaiters !== undefined && { maxWaiters }) } as const
}

export function overRedis(client: RedisConnection): MakeOver {
  return (mode) => (policy, options) => {
    const prefix = `limiter ${++made}`
    const time = new GivenTime(nodeRedisRunner(client), options.clock)
    const limiter = createLimiter(policy, {
      store: scriptedStore(new RedisScripts(time, new RedisKeys(prefix))),
      ...shared(mode, options),
      clock: options.clock,
    })
    const keys = async (): Promise<number> => ((await client.sendCommand(['KEYS', `${prefix}:*`])) as readonly string[]).length
    return { limiter, keys }
  }
}

/** Over tables of PostgreSQL, one a limiter. */
export function overPostgres(pool: pg.Pool): MakeOver {
  return (mode) => async (policy, options) => {
    const table = `limiter_${++made}`
    await pool.query(postgresTable({ table }))
    const { limiter } = limiterAtGivenTimes(pool, policy, { ...shared(mode, options), prefix: table }, table, options.clock)
    const keys = async (): Promise<number> => (await pool.query(`SELECT count(*)::int AS keys FROM ${table}`)).rows[0].keys
    return { limiter, keys }
  }
}

/** Over a store that compares and swaps, in this process. Its clock and the limiter's are one, so they do not drift apart. */
export const overMemoryStore: MakeOver = (mode) => (policy, options) => {
  const store = memoryStore({ clock: options.clock })
  const written = new Set<string>()
  const noting: CasStore = {
    name: store.name,
    read: (key) => store.read(key),
    readAll: (keys) => store.readAll(keys),
    swap: (swap) => {
      written.add(swap.key)
      return store.swap(swap)
    },
    swapAll: (swaps) => {
      for (const { key } of swaps) written.add(key)
      return store.swapAll(swaps)
    },
  }
  const own = casStoreOf(noting, { prefix: `limiter ${++made}` }, Number.POSITIVE_INFINITY)
  const limiter = createLimiter(policy, { ...shared(mode, options), store: own, clock: options.clock })
  return { limiter, keys: () => written.size }
}

/** Over the memory of a primary process, by messages. */
export const overCluster: MakeOver = (mode) => (policy, options) => {
  const { clock, maxKeys } = options
  const pair = channelPair()
  const served = serveLimiter(policy, { clock, mode, ...(maxKeys !== undefined && { maxKeys }) })
  served.serve(pair.worker)
  const { mode: _, ...own } = shared(mode, options)
  const limiter = createLimiter(policy, { store: primary({ process: pair.parent }), clock, ...own })
  return { limiter, keys: () => served.limiter.stats().keys }
}

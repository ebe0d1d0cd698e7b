import type pg from 'pg'
import { primary } from '../../../sluicegate/dist/cluster/primary.js'
import { serveLimiter } from '../../../sluicegate/dist/cluster/serve-limiter.js'
import { durableObjects } from '../../../sluicegate/dist/durable-objects/durable-objects.js'
import { limiterObject } from '../../../sluicegate/dist/durable-objects/limiter-object.js'
import { createLimiter, type LimiterOptions } from '../../../sluicegate/dist/index.js'
import { postgresTable } from '../../../sluicegate/dist/postgres/table-name.js'
import { redisOver } from '../../../sluicegate/dist/redis/redis.js'
import { region } from '../../../sluicegate/dist/regions/region.js'
import type { Store } from '../../../sluicegate/dist/shared/store.js'
import { casStoreOf } from '../../../sluicegate/dist/store/cas.js'
import type { CasStore } from '../../../sluicegate/dist/store/cas-store.js'
import { memoryStore } from '../../../sluicegate/dist/store-testing/memory-store.js'
import { channelPair } from '../cluster/channel-pair.js'
import type { MakeLimiter } from '../conformance/fixture.js'
import { limiterAtGivenTimes } from '../postgres/given-time.js'
import { GivenTime } from '../redis/given-time.js'
import type { OwnRedis } from '../redis/own-redis.js'
import { KeptObjects } from '../workers/kept-storage.js'

/** Whether tokens may be leased. */
export type Mode = 'exact' | 'leased'

/** Makes limiters over one store for the suite, each with keys of its own and at the time of the suite's clock. */
export type MakeOver = (mode: Mode) => MakeLimiter

type RedisConnection = Pick<OwnRedis, 'runner' | 'send'>

let made = 0

/** The options of a limiter over a store. */
function shared(mode: Mode, { hotKeys = 0, maxWaiting }: LimiterOptions) {
  return { mode, hotKeys, outage: 'closed', timeout: 60_000, ...(maxWaiting !== undefined && { maxWaiting }) } as const
}

export const overRedis = (redis: RedisConnection): MakeOver => overServer(redis, (time, prefix) => redisOver(time, { prefix }))

/** Over a region of its own, whose home is the same server. */
export const overRegion = (redis: RedisConnection): MakeOver =>
  overServer(redis, (time, prefix) =>
    region({ name: 'west', share: 1, local: redisOver(time, { prefix: `local to ${prefix}` }), home: redisOver(time, { prefix }) }),
  )

function overServer({ runner, send }: RedisConnection, storeOf: (time: GivenTime, prefix: string) => Store): MakeOver {
  return (mode) => (policy, options) => {
    const prefix = `limiter ${++made}`
    const time = new GivenTime(runner, options.clock)
    const limiter = createLimiter(policy, { store: storeOf(time, prefix), ...shared(mode, options), clock: options.clock })
    const keys = async (): Promise<number> => {
      const all = (await send('KEYS', `${prefix}:*`)) as readonly string[]
      return all.filter((key) => !key.startsWith(`${prefix}:nodes`)).length
    }
    return { limiter, keys, isBusy: () => time.underway > 0 }
  }
}

/** Over tables of PostgreSQL, one a limiter. */
export function overPostgres(pool: pg.Pool): MakeOver {
  return (mode) => async (policy, options) => {
    const table = `limiter_${++made}`
    await pool.query(postgresTable({ table }))
    const { limiter, isBusy } = limiterAtGivenTimes(pool, policy, { ...shared(mode, options), prefix: table }, table, options.clock)
    const keys = async (): Promise<number> => (await pool.query(`SELECT count(*)::int AS keys FROM ${table}`)).rows[0].keys
    return { limiter, keys, isBusy }
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
  return { limiter, keys: () => written.size, isBusy: () => false }
}

/** Over the memory of a primary process, by messages. */
export const overPrimary: MakeOver = (mode) => (policy, options) => {
  const { clock, maxKeys, onFull } = options
  const pair = channelPair()
  const served = serveLimiter(policy, { clock, mode, ...(maxKeys !== undefined && { maxKeys }), ...(onFull !== undefined && { onFull }) })
  served.serve(pair.worker)
  const { mode: _, ...own } = shared(mode, options)
  const limiter = createLimiter(policy, { store: primary({ process: pair.parent }), clock, ...own })
  const table = () => served.limiter.stats()
  return { limiter, keys: () => table().keys, table, isBusy: () => false }
}

/** Over an object for each key, whose storage is in this process. */
export const overObjects: MakeOver = (mode) => (policy, options) => {
  const { clock } = options
  const objects = new KeptObjects(limiterObject([policy], { clock, mode, maxKeys: 1 }))
  let underway = 0
  const waitUntil = (promise: Promise<unknown>): void => {
    underway++
    void promise.finally(() => underway--)
  }
  const store = durableObjects(objects, { waitUntil })
  const limiter = createLimiter(policy, { store, ...shared(mode, options), clock })
  const parts = policy.policies?.length ?? 1
  const keys = (): number => parts * [...objects.kept.values()].filter(({ storage }) => storage.entries.size > 0).length
  return { limiter, keys, isBusy: () => underway > 0 }
}

import { subscribe } from 'node:diagnostics_channel'
import { isDeepStrictEqual } from 'node:util'
import { workerData } from 'node:worker_threads'
import { createClient, type RedisClientType } from '@redis/client'
import pg from 'pg'
import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import type { DenialEvent } from '../../../sluicegate/dist/decision/diagnostics.js'
import { PolicyError, StoreError } from '../../../sluicegate/dist/errors.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { postgresTable } from '../../../sluicegate/dist/postgres/table-name.js'
import { limiterOver, type RedisLimiterOptions } from '../../../sluicegate/dist/redis/create-redis-limiter.js'
import { RedisKeys } from '../../../sluicegate/dist/redis/redis-keys.js'
import { RedisScripts } from '../../../sluicegate/dist/redis/redis-scripts.js'
import { nodeRedisRunner } from '../../../sluicegate/dist/redis/runners/node-redis.js'
import type { FleetLimiter } from '../../../sluicegate/dist/shared/fleet-limiter.js'
import type { CasStore } from '../../../sluicegate/dist/store/cas-store.js'
import { storeLimiter } from '../../../sluicegate/dist/store/create-store-limiter.js'
import { memoryStore } from '../../../sluicegate/dist/store-testing/memory-store.js'
import { type ManualClock, manualClock } from '../../../sluicegate/dist/time/clock.js'
import { limiterAtGivenTimes } from '../postgres/given-time.js'
import { GivenTime } from '../redis/given-time.js'
import { type HostStart, type LimiterAnswer, type LimiterCall, type LimiterMessage, SYMBOL } from './limiter-calls.js'

// A thread that hosts limiters over a store for another that waits for each answer: see synchronous-limiter.ts.

interface Hosted {
  readonly limiter: FleetLimiter
  readonly clock: ManualClock
  readonly time: { nowUs: number }
  /** The keys of the limiter that the store has. */
  readonly keys: () => Promise<number> | number
}

type Callable = Record<string, (...args: readonly unknown[]) => unknown>

const { url, calls, answered } = workerData as HostStart
const cell = new Int32Array(answered)
const client = url.startsWith('redis:') ? await connected() : undefined
const pool = url.startsWith('postgres:') ? new pg.Pool({ connectionString: url, max: 4 }) : undefined
const hosted = new Map<string, Hosted>()
const denials: DenialEvent[] = []
subscribe('sluicegate:denial', (event) => {
  const { policy, key, cost, decision } = event as DenialEvent
  denials.push({ policy, key, cost, decision: plain(decision) })
})
const held: { readonly thing: object; readonly by: Hosted }[] = []

calls.on('message', async (call: LimiterCall) => {
  const answer = await answerTo(call).catch((error) => failure(error, 'args' in call ? call.args : []))
  calls.postMessage({ answer, denials: denials.splice(0) } satisfies LimiterMessage)
  Atomics.store(cell, 0, 1)
  Atomics.notify(cell, 0)
})
Atomics.store(cell, 0, 1)
Atomics.notify(cell, 0)

async function answerTo(call: LimiterCall): Promise<LimiterAnswer> {
  if ('make' in call) {
    hosted.set(call.make, await made(call.make, call))
    return { value: undefined }
  }
  const by = 'of' in call ? held[call.of]?.by : hosted.get(call.limiter)
  if (by === undefined) throw new Error('no limiter has this name')
  by.time.nowUs = Math.round(call.nowMs * 1000)
  by.clock.set(call.nowMs)
  if ('count' in call) return { value: await by.keys() }
  const thing = 'of' in call ? held[call.of]?.thing : by.limiter
  const args = call.args.map((arg) => (arg === SYMBOL ? Symbol(SYMBOL) : arg))
  // A bound key is its own call: `key.take`.
  const [verb = '', boundVerb] = call.verb.split('.')
  if (boundVerb !== undefined) {
    const bound = by.limiter.key(args[0] as string) as unknown as Callable
    return answerOf(await bound[boundVerb]?.(...args.slice(1)), by)
  }
  if (verb === 'policy') return { value: by.limiter.policy }
  return answerOf(await (thing as Callable)[verb]?.(...args), by)
}

async function connected(): Promise<RedisClientType> {
  const redis: RedisClientType = createClient({ url })
  redis.on('error', () => undefined)
  await redis.connect()
  return redis
}

function made(prefix: string, { policy, options }: Extract<LimiterCall, { make: string }>): Hosted | Promise<Hosted> {
  if (client !== undefined) return overRedis(client, prefix, policy, options)
  return pool === undefined ? overMemory(prefix, policy, options) : overPostgres(pool, prefix, policy, options)
}

function overRedis(redis: RedisClientType, prefix: string, policy: Policy, options: Omit<RedisLimiterOptions, 'client'>): Hosted {
  const time = new GivenTime(nodeRedisRunner(redis))
  const clock = manualClock(0)
  const limiter = limiterOver(new RedisScripts(time, new RedisKeys(prefix)), policy, options, clock)
  const keys = async (): Promise<number> => ((await redis.sendCommand(['KEYS', `${prefix}:*`])) as unknown as readonly string[]).length
  return { limiter, clock, time, keys }
}

/** Over a table of PostgreSQL for this limiter alone, whose statements run at the time of the clock. */
async function overPostgres(
  connections: pg.Pool,
  prefix: string,
  policy: Policy,
  options: Omit<RedisLimiterOptions, 'client'>,
): Promise<Hosted> {
  const { overrides: _, ...shared } = options
  const table = prefix.replaceAll(/\W/g, '_')
  await connections.query(postgresTable({ table }))
  const { limiter, clock, time } = limiterAtGivenTimes(connections, policy, { ...shared, prefix }, table)
  const keys = async (): Promise<number> => (await connections.query(`SELECT count(*)::int AS keys FROM ${table}`)).rows[0].keys
  return { limiter, clock, time, keys }
}

/** Over a store that compares and swaps, in this thread's memory. Its clock and the process's are one, so they do not drift apart. */
function overMemory(prefix: string, policy: Policy, options: Omit<RedisLimiterOptions, 'client'>): Hosted {
  const clock = manualClock(0)
  const store = memoryStore({ clock })
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
  const { overrides: _, ...shared } = options
  const limiter = storeLimiter(policy, { ...shared, store: noting, prefix, clock }, Number.POSITIVE_INFINITY)
  return { limiter, clock, time: { nowUs: 0 }, keys: () => written.size }
}

function answerOf(value: unknown, by: Hosted): LimiterAnswer {
  if (typeof value !== 'object' || value === null) return { value }
  if ('release' in value) return { permit: held.push({ thing: value, by }) - 1, decision: plain(value as unknown as Decision) }
  if ('settle' in value) {
    const { allowed, waitMs, decision } = value as unknown as { allowed: boolean; waitMs: number; decision: Decision }
    return { booking: held.push({ thing: value, by }) - 1, allowed, waitMs, decision: plain(decision) }
  }
  return { value: 'key' in value ? undefined : value }
}

function plain({ allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source, parts }: Decision): Decision {
  return { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source, ...(parts && { parts }) }
}

function failure(error: unknown, args: readonly unknown[]): LimiterAnswer {
  if (error instanceof PolicyError) {
    const { name, code, option, message, value } = error
    const argument = args.findIndex((arg) => isDeepStrictEqual(arg, value) || (arg === SYMBOL && typeof value === 'symbol'))
    return { name, code, option, message, argument, ...(typeof value === 'string' && { value }) }
  }
  if (error instanceof StoreError) return { name: error.name, code: error.code, message: error.message }
  return { name: 'Error', message: error instanceof Error ? `${error.message}\n${error.stack}` : String(error) }
}

import { createLimiter, tokenBucket } from 'sluicegate'
import { type RedisClient, redis } from 'sluicegate/redis'
import { hashSlot } from '../../../packages/sluicegate/dist/redis/redis-keys.js'
import type { Contender } from '../job.js'
import { requireRival } from '../rivals.js'
import {
  ALLOWED,
  type Answer,
  afterTake,
  BURST,
  bucketScript,
  CAPACITY_US,
  deniedFor,
  lifeMs,
  passed,
  RATE_PER_S,
  SERVER_NOW,
  TOKEN_US,
  untilFreeUs,
  wallUs,
} from './bucket.js'
import type { Place } from './servers.js'

/** A stall of the machine is no outage of the store. */
const TIMEOUT_MS = 10_000

/** The length of a lease, as it is by default. */
export const LEASE_MS = 100

/** `limiter.take(key)`, on a client of whichever kind. */
function sluicegate(client: object, mode: 'exact' | 'leased'): FleetContender {
  const policy = tokenBucket({ limit: RATE_PER_S, window: '1s', burst: BURST, name: 'bench' })
  const limiter = createLimiter(policy, { store: redis(client as RedisClient), mode, timeout: TIMEOUT_MS })
  return {
    take: (key) => limiter.take(key),
    passed,
    awaited: mode === 'exact',
    withoutStore: () => limiter.stats().outageDecisions,
  }
}

/** What is used of node-redis, one server or a cluster. */
interface NodeRedis {
  get(key: string): Promise<string | null>
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  multi(): NodeRedisMulti
  /** Of a cluster: who holds which slot. */
  readonly slots?: readonly { readonly master: { readonly port: number } }[]
}

interface NodeRedisMulti {
  set(key: string, value: string, options?: { PX: number }): NodeRedisMulti
  pExpire(key: string, ms: number): NodeRedisMulti
  exec(): Promise<unknown[]>
}

/** A connection with no other user meanwhile. */
interface NodeRedisConnection extends NodeRedis {
  watch(key: string): Promise<unknown>
  unwatch(): Promise<unknown>
}

interface NodeRedisPool {
  execute<Value>(use: (connection: NodeRedisConnection) => Promise<Value>): Promise<Value>
}

interface NodeRedisModule {
  createClient(options: object): { connect(): Promise<NodeRedis & { scriptLoad(source: string): Promise<string>; close(): Promise<void> }> }
  createCluster(options: object): { connect(): Promise<NodeRedis> }
  createClientPool(client: object, pool: object): { connect(): Promise<NodeRedisPool> }
}

/** No caller waits in vain for a connection of the pool. */
const ACQUIRE_MS = 60_000

/** One connection to each primary, shared by all callers: the client puts commands of one turn into one write. */
async function nodeRedis({ topology, ports }: Place): Promise<NodeRedis> {
  const { createClient, createCluster } = module()
  if (topology === 'standalone') return createClient(at(ports[0] as number)).connect()
  return createCluster({ rootNodes: ports.map(at) }).connect()
}

/** Connections of their own, `most` to one server. */
async function nodeRedisPool(port: number, most: number): Promise<NodeRedisPool> {
  return module().createClientPool(at(port), { minimum: 1, maximum: most, acquireTimeout: ACQUIRE_MS }).connect()
}

/** Makes a script known to all primaries; answers its SHA-1. */
async function loadScript({ ports }: Place, source: string): Promise<string> {
  let sha1 = ''
  for (const port of ports) {
    const client = await module().createClient(at(port)).connect()
    sha1 = await client.scriptLoad(source)
    await client.close()
  }
  return sha1
}

function module(): NodeRedisModule {
  return requireRival('@redis/client') as NodeRedisModule
}

function at(port: number): object {
  return { socket: { host: '127.0.0.1', port } }
}

/** Decides by one call of a script, known to the servers beforehand. */
async function scripted(place: Place, source: string, numbers: () => string[]): Promise<FleetContender> {
  const sha1 = await loadScript(place, source)
  const client = await nodeRedis(place)
  const take = async (key: string): Promise<Answer> => {
    const [isAllowed, untilFreeUs] = (await client.evalSha(sha1, { keys: [key], arguments: numbers() })) as [number, number]
    return isAllowed === 1 ? ALLOWED : deniedFor(untilFreeUs)
  }
  return { take, passed, awaited: true }
}

/** WATCH belongs to the connection, so callers do not share one. */
const MOST_CONNECTIONS = 64

/** WATCH and GET, then SET in MULTI/EXEC, again and again until no other write came between. */
async function watchMultiExec(place: Place): Promise<FleetContender> {
  const pools = new Map<number, NodeRedisPool>()
  for (const port of place.ports) pools.set(port, await nodeRedisPool(port, MOST_CONNECTIONS))
  const { slots } = await nodeRedis(place)
  const portOf = (key: string): number | undefined => (place.topology === 'cluster' ? slots?.[hashSlot(key)]?.master.port : place.ports[0])
  const take = (key: string): Promise<Answer> => {
    const pool = pools.get(portOf(key) as number) as NodeRedisPool
    return pool.execute((connection) => takeAlone(connection, key))
  }
  return { take, passed, awaited: true }
}

async function takeAlone(connection: NodeRedisConnection, key: string): Promise<Answer> {
  for (;;) {
    const [, state] = await Promise.all([connection.watch(key), connection.get(key)])
    const arrivalUs = Number(state)
    const nowUs = wallUs()
    const nextUs = afterTake(arrivalUs, nowUs)
    if (nextUs === undefined) {
      await connection.unwatch()
      return deniedFor(untilFreeUs(arrivalUs, nowUs))
    }
    const swap = connection.multi().set(key, String(nextUs), { PX: lifeMs(nextUs, nowUs) })
    const isSwapped = await swap.exec().then(() => true, isOvertaken)
    if (isSwapped) return ALLOWED
  }
}

/** Another client wrote the key after it was watched: nothing was done. */
function isOvertaken(error: unknown): false {
  if (error instanceof Error && error.constructor.name === 'WatchError') return false
  throw error
}

async function leased(place: Place): Promise<FleetContender> {
  return sluicegate(await nodeRedis(place), 'leased')
}

async function exactOnNodeRedis(place: Place): Promise<FleetContender> {
  return sluicegate(await nodeRedis(place), 'exact')
}

async function exactOnIoredis(place: Place): Promise<FleetContender> {
  return sluicegate(await ioredis(place), 'exact')
}

interface Module {
  readonly RateLimiterRedis: new (options: object) => { consume(key: string): Promise<unknown> }
}

/** It runs its script by SHA on ioredis, and sends it in full each time on node-redis. */
async function flexibleOnIoredis(place: Place): Promise<FleetContender> {
  return flexible({ storeClient: await ioredis(place) })
}

async function flexibleOnNodeRedis(place: Place): Promise<FleetContender> {
  return flexible({ storeClient: await nodeRedis(place), useRedisPackage: true })
}

/** `await limiter.consume(key)`, which rejects when denied. It counts in windows: this one holds the burst, and the same rate in the long run. */
function flexible(client: object): FleetContender {
  const { RateLimiterRedis } = requireRival('rate-limiter-flexible') as Module
  const limiter = new RateLimiterRedis({ ...client, points: BURST, duration: BURST / RATE_PER_S })
  return { take: (key) => limiter.consume(key), passed: () => true, awaited: true }
}

/** GET, then SET and PEXPIRE in MULTI/EXEC: between the two round trips everybody else decides by the same old state. */
async function multiExec(place: Place): Promise<FleetContender> {
  const client = await nodeRedis(place)
  const take = async (key: string): Promise<Answer> => {
    const arrivalUs = Number(await client.get(key))
    const nowUs = wallUs()
    const nextUs = afterTake(arrivalUs, nowUs)
    if (nextUs === undefined) return deniedFor(untilFreeUs(arrivalUs, nowUs))
    await client.multi().set(key, String(nextUs)).pExpire(key, lifeMs(nextUs, nowUs)).exec()
    return ALLOWED
  }
  return { take, passed, awaited: true }
}

/** One script a decision, on the server's clock. */
function luaServerClock(place: Place): Promise<FleetContender> {
  const numbers = [String(TOKEN_US), String(CAPACITY_US)]
  return scripted(place, bucketScript(SERVER_NOW), () => numbers)
}

/** One script a decision, with the time of the caller: clocks of several processes that disagree grant or withhold tokens. */
function luaClientClock(place: Place): Promise<FleetContender> {
  return scripted(place, bucketScript('tonumber(ARGV[3])'), () => [String(TOKEN_US), String(CAPACITY_US), String(wallUs())])
}

const TOKENS_A_BORROW = 100

/** KEYS 1: the key; ARGV: microseconds a token, microseconds of the burst, tokens wanted. Answers how many are granted, and after how many microseconds there is one more. */
const BORROW = `
local token, capacity, want = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = ${SERVER_NOW}
local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
local granted = math.min(math.floor((capacity - (arrival - now)) / token), want)
if granted > 0 then
  arrival = arrival + granted * token
  redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000) + 1)
end
return { granted, math.max(0, arrival + token - capacity - now) }
`

/** What a process holds of a key. */
interface Purse {
  tokens: number
  retryMs: number
  asking: Promise<void> | undefined
}

/**
 * Two tiers: tokens are borrowed from the server by the hundred and spent here, and while there are none to borrow that is remembered.
 * What is borrowed is good for ever, so that processes together may spend more at once than the burst.
 */
async function batchBorrow(place: Place): Promise<FleetContender> {
  const sha1 = await loadScript(place, BORROW)
  const client = await nodeRedis(place)
  const purses = new Map<string, Purse>()
  const numbers = [TOKEN_US, CAPACITY_US, TOKENS_A_BORROW].map(String)

  const borrow = async (key: string, purse: Purse): Promise<void> => {
    const [granted, untilFreeUs] = (await client.evalSha(sha1, { keys: [key], arguments: numbers })) as [number, number]
    purse.asking = undefined
    purse.tokens += granted
    if (granted === 0) purse.retryMs = performance.now() + untilFreeUs / 1000
  }
  const held = (purse: Purse): Answer | undefined => {
    if (purse.tokens > 0) {
      purse.tokens--
      return ALLOWED
    }
    const leftMs = purse.retryMs - performance.now()
    return leftMs > 0 ? deniedFor(leftMs * 1000) : undefined
  }
  const afterBorrowing = async (key: string, purse: Purse): Promise<Answer> => {
    for (;;) {
      purse.asking ??= borrow(key, purse)
      await purse.asking
      const answer = held(purse)
      if (answer !== undefined) return answer
    }
  }
  const take = (key: string): Answer | Promise<Answer> => {
    let purse = purses.get(key)
    if (purse === undefined) {
      purse = { tokens: 0, retryMs: 0, asking: undefined }
      purses.set(key, purse)
    }
    return held(purse) ?? afterBorrowing(key, purse)
  }
  return { take, passed, awaited: false }
}

/** Everybody who decides for a fleet, by the name in the report; on node-redis where nothing else is said. */
export const FLEET_CONTENDERS = {
  'MULTI/EXEC, racy': multiExec,
  'WATCH/MULTI/EXEC': watchMultiExec,
  "Lua, client's clock": luaClientClock,
  "Lua, server's clock": luaServerClock,
  'batch borrow': batchBorrow,
  'rate-limiter-flexible': flexibleOnNodeRedis,
  'rate-limiter-flexible, ioredis': flexibleOnIoredis,
  'sluicegate exact': exactOnNodeRedis,
  'sluicegate exact, ioredis': exactOnIoredis,
  'sluicegate leased': leased,
} as const satisfies Record<string, FleetContenderFactory>

export type FleetContenderName = keyof typeof FLEET_CONTENDERS

export const FLEET_CONTENDER_NAMES = Object.keys(FLEET_CONTENDERS) as readonly FleetContenderName[]

interface IoredisModule {
  readonly Redis: new (options: object) => object
  readonly Cluster: new (nodes: readonly object[], options: object) => object
}

/** One connection to each primary, shared by all callers; with its option for writing commands of one turn together. */
async function ioredis({ topology, ports }: Place): Promise<object> {
  const { Redis, Cluster } = requireRival('ioredis') as IoredisModule
  const [first, ...others] = ports.map((port) => ({ host: '127.0.0.1', port }))
  const options = { enableAutoPipelining: true }
  return topology === 'standalone' ? new Redis({ ...first, ...options }) : new Cluster([first as object, ...others], options)
}

/** A limiter of a fleet. Without `awaited` it answers itself whenever it can, and else with a promise. */
export interface FleetContender extends Contender {
  /** Decisions that it made by itself because no answer came in time, since it was made. */
  withoutStore?(): number
}

/** Connects to the servers and is ready to decide. */
type FleetContenderFactory = (place: Place) => Promise<FleetContender>

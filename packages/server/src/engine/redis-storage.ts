import { setImmediate as nextTurn } from 'node:timers/promises'
import { createClient, createCluster } from '@redis/client'
import { createRedisLimiter, createRedisRateTable, type FleetLimiter, type RedisClient } from 'sluicegate/redis'
import type { RedisStorageConfig } from 'sluicegate-config/config.js'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Log } from '../log.js'
import { type ClusterClient, ClusterKeeper } from './cluster-keeper.js'
import { fleetOptions, NO_TABLE, storedFleet } from './fleet-limiter.js'
import type { CallRateRoom, LimiterMaking, Storage, StoredLimiter, StoredRateTable } from './stored-limiter.js'

/** How long the start waits for the store. Afterwards policies decide as `outage` says until it can be reached. */
const CONNECT_MS = 2_000
/** Between attempts to reconnect. */
const RECONNECT_MS = { first: 50, most: 2_000 } as const
/** Commands that wait for an answer; more are refused at once, as in an outage. */
const MAX_QUEUED_COMMANDS = 100_000

/** The part of a client that the service uses beside limiters. */
interface StoreClient {
  connect(): Promise<unknown>
  destroy(): void
  on(event: 'error' | 'ready' | 'node-ready', listener: (error: Error) => void): unknown
  readonly isReady?: boolean
  /** Of a client of one server. */
  ping?(): Promise<unknown>
}

/** Keys in Redis or Valkey: other processes with the same prefix and policy names share them. Tokens are leased, so that most decisions stay in this process. */
export class RedisStorage implements Storage {
  readonly name = 'redis'
  readonly #config: RedisStorageConfig
  readonly #client: StoreClient & RedisClient
  readonly #keeper: ClusterKeeper | undefined
  readonly #home: { readonly client: StoreClient & RedisClient; readonly keeper: ClusterKeeper | undefined } | undefined
  readonly #limiters = new Set<FleetLimiter>()
  #wasReachable = true

  constructor(config: RedisStorageConfig, log: Log) {
    this.#config = config
    this.#client = clientOf(config)
    this.#keeper = keeperOf(this.#client, config)
    followReach(this.#client, config, (isReachable, error) => {
      this.#wasReachable = isReachable
      if (isReachable) log.info('the store can be reached again')
      else log.warn({ err: { message: error?.message }, ...this.#shares() }, 'the store cannot be reached')
    })
    const { home } = config
    if (home === undefined) return
    const client = clientOf(home)
    this.#home = { client, keeper: keeperOf(client, home) }
    followReach(client, home, (isReachable, error) => {
      const of = { region: home.region }
      if (isReachable) log.info(of, 'the home of the budgets can be reached again')
      else
        log.warn(
          { err: { message: error?.message }, ...of },
          'the home of the budgets cannot be reached: the region decides with its share',
        )
    })
  }

  get isReachable(): boolean {
    return this.#keeper?.isUsable ?? this.#client.isReady ?? this.#wasReachable
  }

  get isHomeReachable(): boolean | undefined {
    return this.#home && (this.#home.keeper?.isUsable ?? this.#home.client.isReady)
  }

  /** Resolves when the store can be reached, or after a moment: the service starts without it too. */
  async connect(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CONNECT_MS)
    })
    // The error event reports it; the client goes on trying.
    const connected = [this.#client, this.#home?.client].map((client) => client?.connect().catch(() => undefined))
    await Promise.race([Promise.all(connected), late])
    clearTimeout(timer)
  }

  /** The most nodes that share a policy, and the least share of one, while the store cannot be reached. */
  #shares(): { nodes?: number; localShare?: number } {
    const stats = [...this.#limiters].map((limiter) => limiter.stats())
    if (stats.length === 0) return {}
    return { nodes: Math.max(...stats.map(({ nodes }) => nodes)), localShare: Math.min(...stats.map(({ localShare }) => localShare)) }
  }

  limiter(config: PolicyConfig, making: LimiterMaking): StoredLimiter {
    const options = { client: this.#client, ...fleetOptions(this.#config, config, making), ...this.#homeOptions() }
    return storedFleet(createRedisLimiter(config.policy, options), this.#limiters)
  }

  #homeOptions() {
    const { home } = this.#config
    if (home === undefined || this.#home === undefined) return {}
    const { region, prefix, share, tooSmall, cold, timeoutMs } = home
    const more = { ...(prefix !== undefined && { prefix }), ...(share !== undefined && { share }) }
    return { home: { client: this.#home.client, region, tooSmall, cold, timeoutMs, ...more } }
  }

  restored(): undefined {
    return undefined
  }

  rateTable(_room: CallRateRoom, { hotKeys }: LimiterMaking): StoredRateTable {
    const { prefix, outage, timeoutMs } = this.#config
    const table = createRedisRateTable({ client: this.#client, outage, timeoutMs, hotKeys, ...(prefix !== undefined && { prefix }) })
    return {
      throttle: (key, rate, quantity) => table.throttle(key, rate, quantity),
      stats: () => NO_TABLE,
      snapshot: () => undefined,
      get outageDecisions() {
        return table.outageDecisions
      },
      hotKeys: (n) => table.hotKeys(n),
      close: () => table.close(),
    }
  }

  async close(): Promise<void> {
    for (const limiter of this.#limiters) limiter.close()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#config.timeoutMs)
    })
    if (this.isReachable) await Promise.race([this.#leasesReturned(late), late])
    clearTimeout(timer)
    this.#keeper?.stop()
    this.#client.destroy()
    this.#home?.keeper?.stop()
    this.#home?.client.destroy()
  }

  /** Limiters return their leases, and then those whose refill was under way: an answer of the store follows the answers before it. */
  async #leasesReturned(late: Promise<void>): Promise<void> {
    // One connection keeps the order; the nodes of a cluster have one each.
    const { ping } = this.#client
    if (ping === undefined || this.#config.isCluster) return late
    for (let round = 0; round < 2; round++) {
      await nextTurn()
      await ping.call(this.#client).catch(() => undefined)
    }
  }
}

type Place = Pick<RedisStorageConfig, 'urls' | 'isCluster'>

function keeperOf(client: StoreClient & RedisClient, { isCluster }: Place): ClusterKeeper | undefined {
  return isCluster ? new ClusterKeeper(client as unknown as ClusterClient) : undefined
}

/** Reports once for each outage: a client repeats its error with every attempt. */
function followReach(client: StoreClient, { isCluster }: Place, changed: (isReachable: boolean, error?: Error) => void): void {
  let wasReachable = true
  client.on('error', (error) => {
    if (wasReachable) changed(false, error)
    wasReachable = false
  })
  client.on(isCluster ? 'node-ready' : 'ready', () => {
    if (!wasReachable) changed(true)
    wasReachable = true
  })
}

function clientOf({ urls, isCluster }: Place): StoreClient & RedisClient {
  const socket = {
    connectTimeout: CONNECT_MS,
    reconnectStrategy: (attempts: number) => Math.min(RECONNECT_MS.most, RECONNECT_MS.first * 2 ** Math.min(attempts, 10)),
  }
  // A command that waits for a connection is answered too late: without a queue it fails at once, and the outage is handled.
  const options = { socket, disableOfflineQueue: true, commandsQueueMaxLength: MAX_QUEUED_COMMANDS }
  if (!isCluster) return createClient({ ...options, url: urls[0] ?? '' }) as unknown as StoreClient & RedisClient
  const { username, password, protocol } = new URL(urls[0] ?? '')
  const defaults = {
    ...options,
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
    socket: protocol === 'rediss:' ? { ...socket, tls: true as const } : socket,
  }
  // Connections are opened when they are needed: otherwise one server that does not answer holds up the calls to all.
  const cluster = createCluster({ rootNodes: urls.map((url) => ({ url })), defaults, minimizeConnections: true })
  return cluster as unknown as StoreClient & RedisClient
}

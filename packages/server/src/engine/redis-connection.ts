import { createClient, createCluster } from '@redis/client'
import type { RedisClient } from 'sluicegate/redis'
import type { RedisPlace } from 'sluicegate-config/config.js'
import { type ClusterClient, ClusterKeeper } from './cluster-keeper.js'

/** How long a connection may take to open. */
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

/** The client of a Redis or Valkey, one server or a cluster. */
export class RedisConnection {
  readonly client: StoreClient & RedisClient
  readonly #keeper: ClusterKeeper | undefined
  #wasReachable = true

  /** @param changed hears once of each outage, and of its end: a client repeats its error with every attempt. */
  constructor(place: RedisPlace, changed: (isReachable: boolean, error?: Error) => void) {
    this.client = clientOf(place)
    this.#keeper = place.isCluster ? new ClusterKeeper(this.client as unknown as ClusterClient) : undefined
    this.client.on('error', (error) => {
      const wasReachable = this.#wasReachable
      this.#wasReachable = false
      if (wasReachable) changed(false, error)
    })
    this.client.on(place.isCluster ? 'node-ready' : 'ready', () => {
      const wasReachable = this.#wasReachable
      this.#wasReachable = true
      if (!wasReachable) changed(true)
    })
  }

  get isReachable(): boolean {
    return this.#keeper?.isUsable ?? this.client.isReady ?? this.#wasReachable
  }

  /** Resolves when it is made, or has failed: the error event reports that, and the client goes on trying. */
  async connect(): Promise<void> {
    await this.client.connect().catch(() => undefined)
  }

  async close(): Promise<void> {
    this.#keeper?.stop()
    this.client.destroy()
  }
}

function clientOf({ urls, isCluster }: RedisPlace): StoreClient & RedisClient {
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

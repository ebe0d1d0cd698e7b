import { createHash } from 'node:crypto'
import { createClient, createCluster, ErrorReply, RootNodesUnavailableError } from '@redis/client'
import type { RedisClient } from 'sluicegate/redis'
import type { RedisPlace } from 'sluicegate-config/config.js'
import { CONNECT } from './store-reports.js'
import { type StoreNews, StoreRefusal, StoreWatch, type WatchedStore } from './store-watch.js'

/** What to do about an answer of a server that begins so. */
const MENDS: readonly (readonly [answer: RegExp, mend: string])[] = [
  [
    /^READONLY /,
    'its address leads to a replica: give that of the primary; where it is a name, it is looked up again until it leads there',
  ],
  [/^OOM /, 'its memory is full: raise maxmemory, or remove keys of others'],
  [/^MISCONF /, 'it cannot save to its disk: see its log'],
  [/^NOREPLICAS /, 'it has fewer replicas than min-replicas-to-write asks for'],
  [/^MASTERDOWN /, 'it is a replica without its primary: give the address of the primary'],
  [/^CLUSTERDOWN /, 'its cluster does not serve all slots: see CLUSTER INFO'],
  [/cluster support disabled/, 'it is a single server: give url instead of nodes'],
  [/^MOVED /, 'it is part of a cluster: give nodes instead of url'],
  [/^(?:WRONGPASS|NOAUTH) |invalid password|AUTH failed/, 'give its user and password in the address'],
  [
    /^NOPERM .*(?:key|access)|can't access at least one of the keys/i,
    "allow this user the keys that begin with the prefix: ACL SETUSER NAME '~PREFIX:*', in a region '~PREFIX@*' too",
  ],
  [/^NOPERM |can't run this command|unknown command/, 'allow this user the commands that docs/redis.md lists under "Access control"'],
]
/** What passes by itself. */
const PASSING = /^(?:LOADING|BUSY|TRYAGAIN) |max number of clients/
const LONGEST = 300

/** The answer of a server as a refusal, with what to do; other errors, such as a lost connection, as they are. */
function redisRefusal(error: unknown): Error {
  if (!(error instanceof ErrorReply)) return error instanceof Error ? error : new Error(String(error))
  const { message } = error
  const [, mend] = MENDS.find(([answer]) => answer.test(withoutPlace(message))) ?? []
  return new StoreRefusal(message.slice(0, LONGEST), { mend, isPassing: PASSING.test(message), cause: error })
}

/** Redis before 7 says within its own words what a command of a script was answered. */
function withoutPlace(message: string): string {
  return /: -([A-Z]{3,} .*)/.exec(message)?.[1] ?? message
}

/** How long a connection may take to open. */
const CONNECT_MS = 2_000
/** Between attempts to reconnect. */
const RECONNECT_MS = { first: 50, most: 2_000 } as const
/** A client that is not connected, and has said nothing for so long, hangs: the server has taken the connection and answers nothing. */
const HUNG_MS = 2_500
/** Commands that wait for an answer; more are refused at once, as in an outage. */
const MAX_QUEUED_COMMANDS = 100_000

/** What scripts of limiters call, but for those of overrides. Memory is looked at before the first write alone. */
const LOOK = `
local now = redis.call('TIME')
for _, key in ipairs(KEYS) do
  local function on(command, ...)
    redis.call(command, key, ...)
  end
  on('SET', '1')
  on('GET')
  on('DEL')
  on('XADD', '*', 'a', '1')
  on('XRANGE', '-', '+')
  on('XREVRANGE', '+', '-')
  on('XDEL', '0-1')
  on('XTRIM', 'MAXLEN', '0')
  on('DEL')
  on('ZADD', '1', 'a')
  on('ZSCORE', 'a')
  on('ZCOUNT', '1', '1')
  on('ZRANGEBYSCORE', '1', '1')
  on('ZREVRANGE', '0', '0')
  on('ZREVRANGEBYSCORE', '1', '1')
  on('ZREMRANGEBYSCORE', '2', '2')
  on('ZREM', 'a')
  on('SET', '1')
  on('PEXPIREAT', string.format('%.0f', now[1] * 1000 + ARGV[1]))
end`
const LOOK_SHA1 = createHash('sha1').update(LOOK).digest('hex')
const LOOK_KEPT_MS = '60000'
/** Keys that are written at a look, so that most of the servers of a cluster are asked. */
const CLUSTER_KEYS = 32
/** Of a part of a cluster. */
const PART_ANSWER_MS = 800
const IN_NAMES = /[%:{}]/g

/** The part of a client of one server that is used. */
interface ServerClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  connect(): Promise<unknown>
  destroy(): void
  on(event: 'error' | 'ready' | 'connect' | 'reconnecting', listener: (error: Error) => void): unknown
  sendCommand(command: string[], options?: object): Promise<unknown>
  ping(): Promise<unknown>
}

/** The part of a cluster's client that is used. */
interface ClusterClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  readonly masters: readonly object[]
  readonly slots: readonly ({ readonly master?: { readonly address?: string } } | undefined)[]
  connect(): Promise<unknown>
  destroy(): void
  on(event: 'error' | 'node-ready', listener: (error: Error) => void): unknown
  nodeClient(node: never): never
  sendCommand(firstKey: string | undefined, isReadonly: boolean, command: string[], options?: object): Promise<unknown>
}

/**
 * A Redis or Valkey, one server or a cluster. Limiters get a client of which the one behind it is replaced: a client of node-redis keeps an
 * open connection to a server that refuses everything, waits without end for a server that takes its connection and says nothing, and a
 * cluster's stays stuck when no node answers at first.
 */
export class RedisConnection implements WatchedStore {
  /** For limiters. */
  readonly client: RedisClient
  readonly watch: StoreWatch
  readonly #place: RedisPlace
  /** What begins the names that limiters use. */
  readonly #prefixes: readonly string[]
  #server: ServerClient | undefined
  #cluster: ClusterClient | undefined
  /** Between the beginning of a connection and its end, good or bad. */
  readonly #opening = new Set<object>()
  /** Since when nothing was heard of a client that is not connected. */
  #quietSinceMs = 0
  #fault: Error | undefined

  /** @param prefixes of the names that limiters use. */
  constructor(place: RedisPlace, prefixes: readonly string[], say: (news: StoreNews) => void) {
    this.#place = place
    this.#prefixes = prefixes.map((prefix) => prefix.replace(IN_NAMES, (character) => `%${character.charCodeAt(0).toString(16)}.`))
    this.watch = new StoreWatch(this, say)
    this.#make()
    this.client = place.isCluster ? clusterOver(() => this.#cluster as ClusterClient) : serverOver(() => this.#server as ServerClient)
  }

  get isReachable(): boolean {
    return this.watch.isSound && this.#isUsable
  }

  /** Opens it, and resolves when it can be written, or after `withinMs`. */
  async connect(withinMs: number): Promise<void> {
    this.#open()
    await this.watch.start(withinMs)
  }

  close(): void {
    this.watch.end()
    this.#destroy()
  }

  /** Resolves when the server has answered what was sent before; undefined for a cluster, whose servers have a connection each. */
  ping(): Promise<unknown> | undefined {
    return this.#server?.ping()
  }

  async look(): Promise<void> {
    if (!this.#isUsable) throw this.#fault ?? new Error(this.#quiet)
    if (this.#cluster === undefined) return this.#written('0')
    const late = new Promise<Error>((resolve) => {
      setTimeout(resolve, PART_ANSWER_MS, new Error(`no answer within ${PART_ANSWER_MS} ms`)).unref()
    })
    const faults = await Promise.all(
      Array.from({ length: CLUSTER_KEYS }, (_, i) =>
        Promise.race([
          this.#written(String(i)).then(
            () => undefined,
            (error: Error) => error,
          ),
          late,
        ]),
      ),
    )
    const failed = faults.filter((fault) => fault !== undefined)
    const [first] = failed
    if (first === undefined) return
    if (failed.length === CLUSTER_KEYS) throw first
    const share = Math.max(1, Math.round((100 * failed.length) / CLUSTER_KEYS))
    const mend = first instanceof StoreRefusal ? first.mend : CONNECT
    throw new StoreRefusal(`about ${share} % of the cluster: ${first.message}`, { mend, isPassing: true, isPartial: true, cause: first })
  }

  renew(): boolean {
    // It is being opened anyway.
    if (this.#server?.isReady === false && performance.now() - this.#quietSinceMs < HUNG_MS) return false
    this.#destroy()
    this.#make()
    this.#open()
    return true
  }

  get #isUsable(): boolean {
    const { isOpen, isReady } = this.#cluster ?? (this.#server as ServerClient)
    return isOpen && isReady && this.#cluster?.masters.length !== 0
  }

  /** What is known while the driver has said nothing. */
  get #quiet(): string {
    if (this.#cluster?.isReady) return 'no node of the cluster serves slots: see CLUSTER INFO'
    return 'no connection is open yet: the server does not answer'
  }

  async #written(part: string): Promise<void> {
    const names = this.#prefixes.map((prefix) => `${prefix}:look:{${part}}`)
    const send = (command: string[]): Promise<unknown> =>
      this.#cluster?.sendCommand(names[0], false, command) ?? (this.#server as ServerClient).sendCommand(command)
    const more = [String(names.length), ...names, LOOK_KEPT_MS]
    try {
      await send(['EVALSHA', LOOK_SHA1, ...more]).catch((error: Error) => {
        if (!error.message.startsWith('NOSCRIPT')) throw error
        return send(['EVAL', LOOK, ...more])
      })
    } catch (error) {
      throw redisRefusal(error)
    }
  }

  #make(): void {
    const client = this.#place.isCluster ? clusterOf(this.#place) : serverOf(this.#place)
    const isCurrent = (): boolean => client === this.#cluster || client === this.#server
    const heard = (): void => {
      if (isCurrent()) this.#quietSinceMs = performance.now()
    }
    if ('masters' in client) {
      this.#cluster = client
      client.on('node-ready', () => isCurrent() && this.#opened())
    } else {
      this.#server = client
      client.on('connect', () => {
        heard()
        this.#opening.delete(client)
        if (!isCurrent()) client.destroy()
      })
      client.on('reconnecting', () => {
        heard()
        this.#opening.add(client)
      })
      client.on('ready', () => isCurrent() && this.#opened())
    }
    client.on('error', (error) => {
      heard()
      if (isCurrent()) this.#lost(error)
      else if (this.#opening.has(client) && client.isOpen) client.destroy()
      this.#opening.delete(client)
    })
  }

  #open(): void {
    const client = this.#cluster ?? (this.#server as ServerClient)
    this.#quietSinceMs = performance.now()
    if (this.#server !== undefined) this.#opening.add(client)
    client.connect().catch((error: Error) => {
      if (client === this.#cluster) this.#lost(error)
    })
  }

  #opened(): void {
    this.#fault = undefined
    this.watch.opened()
  }

  #lost(error: Error): void {
    // The driver says first what each node answered, and then only that all have failed.
    if (!(error instanceof RootNodesUnavailableError && this.#fault !== undefined)) this.#fault = redisRefusal(error)
    // Other servers of a cluster may be well, which the next look tells.
    if (this.#cluster === undefined || !this.#isUsable) this.watch.lost(this.#fault ?? error)
  }

  /** A client of node-redis that is destroyed while it connects keeps the connection that it gets: that one is destroyed when it has it. */
  #destroy(): void {
    const client = this.#cluster ?? (this.#server as ServerClient)
    const isOpening = this.#opening.has(client)
    if (isOpening) this.#server = NO_SERVER
    else if (client.isOpen) client.destroy()
  }
}

/** In the place of a client that is going. */
const NO_SERVER: ServerClient = {
  isOpen: false,
  isReady: false,
  connect: () => Promise.reject(new Error('closed')),
  destroy: () => undefined,
  on: () => undefined,
  sendCommand: () => Promise.reject(new Error('closed')),
  ping: () => Promise.reject(new Error('closed')),
}

const SOCKET = {
  connectTimeout: CONNECT_MS,
  reconnectStrategy: (attempts: number): number => {
    const ms = Math.min(RECONNECT_MS.most, RECONNECT_MS.first * 2 ** Math.min(attempts, 10))
    return Math.ceil(ms * (1 - Math.random() / 2))
  },
} as const
// A command that waits for a connection is answered too late: without a queue it fails at once, and the outage is handled.
const CLIENT = { disableOfflineQueue: true, commandsQueueMaxLength: MAX_QUEUED_COMMANDS } as const

function serverOf({ urls }: RedisPlace): ServerClient {
  return createClient({ ...CLIENT, socket: SOCKET, url: urls[0] ?? '' }) as unknown as ServerClient
}

function clusterOf({ urls }: RedisPlace): ClusterClient {
  const { username, password, protocol } = new URL(urls[0] ?? '')
  const defaults = {
    ...CLIENT,
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
    socket: protocol === 'rediss:' ? { ...SOCKET, tls: true as const } : SOCKET,
  }
  // Connections are opened when they are needed: otherwise one server that does not answer holds up the calls to all.
  const cluster = createCluster({ rootNodes: urls.map((url) => ({ url })), defaults, minimizeConnections: true })
  return cluster as unknown as ClusterClient
}

/** What the library uses of a client of node-redis, at the client of the moment. */
function serverOver(client: () => ServerClient): RedisClient {
  return {
    get isOpen() {
      return client().isOpen
    },
    destroy: () => undefined,
    sendCommand: (command: string[], options?: object) => client().sendCommand(command, options),
  } as RedisClient
}

function clusterOver(client: () => ClusterClient): RedisClient {
  return {
    get isOpen() {
      return client().isOpen
    },
    destroy: () => undefined,
    get masters() {
      return client().masters
    },
    get slots() {
      return client().slots
    },
    nodeClient: (node: never) => client().nodeClient(node),
    sendCommand: (key: string | undefined, isReadonly: boolean, command: string[], options?: object) =>
      client().sendCommand(key, isReadonly, command, options),
  } as RedisClient
}

import type { Socket } from 'node:net'
import type { ClientBounds } from 'sluicegate-config/config.js'
import { clientKey } from '../../access.js'
import type { Guard } from '../guard.js'
import type { SessionContext } from './command.js'
import { Connection, type ConnectionOwner } from './connection.js'

/** Unanswered input of all connections together. A connection that adds more is cut off. */
const MAX_HELD_BYTES = 67_108_864
/** A peer that has died without a word is noticed after this time without input. */
const KEEP_ALIVE_MS = 300_000
/** A stopping server closes a connection that has sent nothing for this long. */
const QUIET_MS = 50

/** Why connections were closed before their clients did. */
export type CutReason = 'refused' | 'evicted' | 'unread' | 'held' | 'slow'

/** The connections of one host, the longest idle first. */
interface Host {
  count: number
  readonly idle: Set<Connection>
}

/** All connections of a server: which have a place, which make room for others, and which are cut off. */
export class Connections implements ConnectionOwner {
  readonly cuts: Record<CutReason, number> = { refused: 0, evicted: 0, unread: 0, held: 0, slow: 0 }
  readonly guard: Guard
  readonly #bounds: ClientBounds
  readonly #context: SessionContext
  readonly #all = new Set<Connection>()
  readonly #hosts = new Map<string, Host>()
  /** Between two commands, the longest idle first. */
  readonly #idle = new Set<Connection>()
  readonly #sweeping: NodeJS.Timeout
  #heldBytes = 0
  #nextId = 1
  #isStopping = false
  /** Whether each connection is closed after its next replies. */
  #isClosing = false

  constructor(bounds: ClientBounds, guard: Guard, context: SessionContext) {
    this.guard = guard
    this.#bounds = bounds
    this.#context = context
    this.#sweeping = guard.every(Math.min(1_000, bounds.readMs / 2), () => this.#sweep(performance.now()))
  }

  get open(): number {
    return this.#all.size
  }

  /** Commands that wait for a store. */
  get inFlight(): number {
    let commands = 0
    for (const { session } of this.#all) commands += session.inFlight
    return commands
  }

  /** Bytes of memory that unanswered input takes. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Admits a new connection: to a free place, to that of the longest idle one, or to be refused. */
  add(socket: Socket): void {
    // Clients of a Unix socket have no address: only the bound of all connections holds for them.
    const host = clientKey(socket.remoteAddress ?? '')
    const places = this.#hosts.get(host) ?? { count: 0, idle: new Set() }
    const isRefused =
      (host !== '' && !this.#hasRoom(places.count, this.#bounds.maxConnectionsPerAddress, places.idle)) ||
      !this.#hasRoom(this.#all.size, this.#bounds.maxConnections, this.#idle)
    if (isRefused) {
      this.cuts.refused++
      this.guard.on(socket, 'error', () => undefined)
      socket.end(
        '-ERR max number of clients reached\r\n',
        this.guard.callback(socket, () => socket.destroy()),
      )
      return
    }
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    const connection = new Connection(socket, host, this.#nextId++, this.#context, this)
    places.count++
    this.#hosts.set(host, places)
    this.#all.add(connection)
    this.guard.once(socket, 'close', () => this.#forget(connection))
    this.changed(connection)
  }

  changed(connection: Connection): void {
    const held = connection.socket.destroyed ? 0 : connection.session.heldBytes
    const delta = held - connection.heldBytes
    if (delta !== 0) {
      connection.heldBytes = held
      this.#heldBytes += delta
      if (delta > 0 && this.#heldBytes > MAX_HELD_BYTES) this.#cut(connection, 'held')
    }
    const { idle } = this.#hosts.get(connection.host) ?? {}
    this.#idle.delete(connection)
    idle?.delete(connection)
    if (!connection.isIdle || !this.#all.has(connection)) return
    this.#idle.add(connection)
    idle?.add(connection)
    if (this.#isClosing) connection.end()
  }

  /**
   * From now on connections are closed when they have been quiet for a moment; after half of `finishMs` also those that never are, between two commands:
   * what was decided is answered, and what comes behind it is not decided.
   */
  stop(finishMs: number): void {
    this.#isStopping = true
    const busyUntilMs = performance.now() + finishMs / 2
    const closing = this.guard.every(QUIET_MS / 2, () => {
      const nowMs = performance.now()
      if (this.#all.size === 0) clearInterval(closing)
      this.#closeQuiet(nowMs)
      if (nowMs < busyUntilMs || this.#isClosing) return
      this.#isClosing = true
      for (const connection of this.#idle) connection.end()
    })
  }

  /** Closes all connections at once. */
  destroy(): void {
    clearInterval(this.#sweeping)
    for (const connection of this.#all) {
      this.#forget(connection)
      connection.socket.destroy()
    }
  }

  #closeQuiet(nowMs: number): void {
    for (const connection of this.#all) if (connection.isIdle && nowMs - connection.activeMs >= QUIET_MS) connection.end()
  }

  #hasRoom(taken: number, places: number, idle: ReadonlySet<Connection>): boolean {
    if (taken < places) return true
    const [longest] = idle
    if (longest === undefined) return false
    this.#cut(longest, 'evicted')
    return true
  }

  #cut(connection: Connection, reason: CutReason): void {
    this.cuts[reason]++
    this.#forget(connection)
    connection.socket.destroy()
  }

  #forget(connection: Connection): void {
    if (!this.#all.delete(connection)) return
    this.#heldBytes -= connection.heldBytes
    connection.heldBytes = 0
    this.#idle.delete(connection)
    const host = this.#hosts.get(connection.host)
    if (host === undefined) return
    host.idle.delete(connection)
    if (--host.count === 0) this.#hosts.delete(connection.host)
  }

  #sweep(nowMs: number): void {
    const { readMs, requestMs, headersMs } = this.#bounds
    for (const connection of this.#all) {
      if (connection.unreadMs(nowMs) >= readMs || connection.endedMs(nowMs) >= readMs) this.#cut(connection, 'unread')
      else if (connection.partialMs(nowMs) >= requestMs) this.#cut(connection, 'slow')
      else if (connection.session.user === undefined && nowMs - connection.openedMs >= headersMs) this.#cut(connection, 'slow')
    }
    if (this.#isStopping) this.#closeQuiet(nowMs)
  }
}

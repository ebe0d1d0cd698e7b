import type { RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ClientBounds } from 'sluicegate-config/config.js'
import { clientKey } from '../../access.js'
import { after } from '../../after.js'
import type { Guard } from '../guard.js'
import { Connection, type ConnectionOwner } from './connection.js'
import type { FastPathOptions, PlainRequest, PlainResponse } from './fast/fast-path.js'
import { Problem } from './problem.js'
import type { Router } from './router.js'

/** Unparsed input of all connections together. Real traffic stays below it; a connection that adds more is cut off. */
const MAX_HELD_BYTES = 67_108_864
/** The time in which a connection without a place may send the request that is refused. */
const REFUSAL_MS = 1_000

/** The port is closed after this number of turns without a new connection, each of this many milliseconds; */
const QUIET_TURNS = 4
const TURN_MS = 5
/** after this number of turns at the latest: not a time, of which a process that waits for a processor has not had much; */
const MOST_TURNS = 80
/** then after a last look for connections that took less than this and found none, or after this number of looks. */
const QUICK_LOOK_MS = 0.25
const MOST_LOOKS = 1_000
/** The last new connections then have this time to send a request. */
const FIRST_REQUEST_MS = 500

/** Why connections were closed before their clients did. */
export type CutReason = 'refused' | 'evicted' | 'unread' | 'held'

/** The connections of one host, the longest idle first. */
interface Host {
  count: number
  readonly resting: Set<Connection>
}

/** All connections of a server: which have a place, which make room, and which are cut off. */
export class Connections implements ConnectionOwner {
  readonly cuts: Record<CutReason, number> = { refused: 0, evicted: 0, unread: 0, held: 0 }
  readonly #bounds: ClientBounds
  readonly guard: Guard
  readonly fastPath: FastPathOptions
  readonly #router: Router
  readonly #bySocket = new Map<Socket, Connection>()
  readonly #hosts = new Map<string, Host>()
  /** Idle connections with a place, between two requests or before the first; the longest idle first. */
  readonly #resting = new Set<Connection>()
  readonly #answering = new Set<Connection>()
  readonly #refused = new Map<Connection, number>()
  readonly #sweeping: NodeJS.Timeout
  #heldBytes = 0
  /** Requests begun and answered, by which connections are compared. */
  #turns = 0
  #isLeaving = false
  /** Requests that wait for their answer while answers are held; undefined when none are. */
  #heldAnswers: ServerResponse[] | undefined
  /** All connections since the start. */
  #added = 0

  /** @param keepsAllFields see {@link FastPathOptions}. */
  constructor(bounds: ClientBounds, guard: Guard, router: Router, keepsAllFields: boolean) {
    this.#bounds = bounds
    this.guard = guard
    this.#router = router
    const keepAliveFields = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(bounds.idleMs / 1_000)}\r\n`
    this.fastPath = { keepAliveFields, keepsAllFields }
    this.#sweeping = guard.every(Math.min(1_000, bounds.readMs / 2), () => this.#sweep(performance.now()))
  }

  /** Connections that are open. */
  get open(): number {
    return this.#bySocket.size
  }

  /** Requests that are being answered: never more than one of a connection. */
  get inFlight(): number {
    return this.#answering.size
  }

  /** Bytes read from sockets that wait to be parsed. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  of(socket: Socket): Connection | undefined {
    return this.#bySocket.get(socket)
  }

  /** Admits a new connection: to a free place, to that of another, or to be refused. */
  add(socket: Socket): void {
    this.#added++
    const host = clientKey(socket.remoteAddress ?? '')
    const connection = new Connection(socket, host, this)
    const places = this.#hosts.get(host) ?? { count: 0, resting: new Set() }
    this.#bySocket.set(socket, connection)
    this.guard.once(socket, 'close', () => this.#forget(connection))
    const isRefused =
      // Over a Unix socket there is no address: all connections are those of this machine.
      (host !== '' && !this.#hasRoom(places.count, this.#bounds.maxConnectionsPerAddress, places.resting, host)) ||
      !this.#hasRoom(this.#bySocket.size - this.#refused.size - 1, this.#bounds.maxConnections, this.#resting)
    if (isRefused) {
      this.#refuse(connection)
      return
    }
    places.count++
    this.#hosts.set(host, places)
    this.rest(connection)
  }

  /** A listener for `request`. */
  readonly take: RequestListener = (request, response) => {
    this.#bySocket.get(request.socket)?.add(response)
  }

  answerPlain(connection: Connection, request: PlainRequest, response: PlainResponse): boolean {
    // Last answers, and those that wait, are Node's.
    if (this.#isLeaving || this.#heldAnswers !== undefined) return false
    const call = this.#router.wholeCall(request.method, request.target)
    if (call === undefined) return false
    this.#begin(connection)
    this.#router.handleWhole(call, request, response)
    return true
  }

  answer(connection: Connection, response: ServerResponse): void {
    this.#begin(connection)
    if (this.#isLeaving) connection.closeAfterAnswer()
    if (this.#heldAnswers === undefined) this.#router.handle(response.req, response)
    else this.#heldAnswers.push(response)
  }

  #begin(connection: Connection): void {
    this.#resting.delete(connection)
    this.#hosts.get(connection.host)?.resting.delete(connection)
    this.#answering.add(connection)
    connection.sinceTurn = ++this.#turns
  }

  rest(connection: Connection): void {
    this.#answering.delete(connection)
    if (connection.refusal !== undefined) return
    connection.sinceTurn = ++this.#turns
    this.#resting.add(connection)
    this.#hosts.get(connection.host)?.resting.add(connection)
  }

  holds({ socket }: Connection, deltaBytes: number): void {
    this.#heldBytes += deltaBytes
    if (deltaBytes > 0 && this.#heldBytes > MAX_HELD_BYTES) this.#cut(socket, 'held')
  }

  /** From now on each answer is the last of its connection. */
  leave(): void {
    this.#isLeaving = true
    for (const connection of this.#answering) connection.closeAfterAnswer()
  }

  /**
   * Calls `close` when no new connection has come for a moment. A port that is closed resets connections that the system has taken and the process
   * has not, and a client that sends requests all the time opens one after each answer: answers are held until the port is closed.
   */
  async closeInQuiet(close: () => void): Promise<void> {
    this.#heldAnswers = []
    for (let turns = 0, quietTurns = 0; quietTurns < QUIET_TURNS && turns < MOST_TURNS; turns++) {
      const before = this.#added
      await after(TURN_MS)
      quietTurns = this.#added === before ? quietTurns + 1 : 0
    }
    await this.#untilNoneIsNew()
    close()
    const held = this.#heldAnswers
    this.#heldAnswers = undefined
    for (const response of held) {
      const answer = this.guard.callback(response, () => this.#router.handle(response.req, response))
      if (!response.destroyed) answer()
    }
  }

  /**
   * Resolves right after the event loop has looked for new connections and found none. Timers do not show that: the process may have been busy, or
   * without a processor, since the last look. For the same reason a look that took long does not count. A look finds one connection at most.
   */
  async #untilNoneIsNew(): Promise<void> {
    for (let isSure = false, looks = 0; !isSure && looks < MOST_LOOKS; looks++) {
      const before = this.#added
      const beganMs = performance.now()
      await nextTurn()
      isSure = this.#added === before && performance.now() - beganMs < QUICK_LOOK_MS
    }
  }

  /** Closes connections without a request in progress or waiting. New ones have a moment for their first request. */
  closeResting(): void {
    const close = (isToClose: (connection: Connection) => boolean): void => {
      for (const connection of this.#bySocket.values()) if (!connection.isBusy && isToClose(connection)) connection.socket.destroy()
    }
    close(({ isNew }) => !isNew)
    this.guard.after(FIRST_REQUEST_MS, () => close(() => true))
  }

  close(): void {
    clearInterval(this.#sweeping)
  }

  /** Whether there is a place, or one can be freed: that of the connection that has been idle, or has not sent the rest of its request, for the longest. */
  #hasRoom(taken: number, places: number, resting: ReadonlySet<Connection>, host?: string): boolean {
    if (taken < places) return true
    const [rested] = resting
    const slow = this.#slowest(host)
    const oldest = rested === undefined || (slow !== undefined && slow.sinceTurn < rested.sinceTurn) ? slow : rested
    if (oldest === undefined) return false
    this.#forget(oldest)
    this.#cut(oldest.socket, 'evicted')
    return true
  }

  #slowest(host: string | undefined): Connection | undefined {
    for (const connection of this.#answering) if (connection.owesBody && (host ?? connection.host) === connection.host) return connection
    return undefined
  }

  #refuse(connection: Connection): void {
    const detail = 'there are too many connections, all of them busy: come back later, or use one connection for several requests'
    connection.refusal = new Problem(503, 'BUSY', detail, [['Retry-After', '1']])
    this.#refused.set(connection, performance.now())
    this.cuts.refused++
  }

  #forget(connection: Connection): void {
    if (!this.#bySocket.delete(connection.socket)) return
    connection.drop()
    this.#resting.delete(connection)
    this.#answering.delete(connection)
    if (this.#refused.delete(connection)) return
    const host = this.#hosts.get(connection.host)
    if (host === undefined) return
    host.resting.delete(connection)
    if (--host.count === 0) this.#hosts.delete(connection.host)
  }

  #sweep(nowMs: number): void {
    for (const [connection, sinceMs] of this.#refused) if (nowMs - sinceMs >= REFUSAL_MS) connection.socket.destroy()
    for (const connection of this.#bySocket.values()) {
      if (connection.leftUnread(nowMs, this.#bounds.readMs)) this.#cut(connection.socket, 'unread')
    }
  }

  #cut(socket: Socket, reason: CutReason): void {
    this.cuts[reason]++
    socket.destroy()
  }
}

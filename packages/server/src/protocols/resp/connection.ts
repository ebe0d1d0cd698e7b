import type { Socket } from 'node:net'
import { inLaterTurn, isInputTimeOver } from '../../later-turns.js'
import type { Guard } from '../guard.js'
import type { SessionContext } from './command.js'
import { Session } from './session.js'

/** Events that a connection reports to the set of all connections. */
export interface ConnectionOwner {
  readonly guard: Guard
  /** After every change: the bytes that its unanswered input takes, and whether it is between two commands. */
  changed(connection: Connection): void
}

/**
 * One client's socket. Commands that have arrived are answered in one turn with one write, and the next ones are read when the client's
 * system has taken the replies: so no client has more than one turn's replies in memory.
 */
export class Connection {
  readonly socket: Socket
  /** The host at the other end, by which places are counted; empty for a Unix socket. */
  readonly host: string
  readonly session: Session
  readonly #owner: ConnectionOwner
  readonly #onWritten: () => void
  /** In a later turn. */
  readonly #goOn: () => void
  /** Whether the system has not taken all replies. */
  #isUnread = false
  #isDeferred = false
  #isEnding = false
  /** When the client began to leave replies unread, or to send a command that is still incomplete. */
  #unreadSinceMs: number | undefined
  #partialSinceMs: number | undefined
  /** When this side was closed. */
  #endedMs: number | undefined
  /** Bytes that were reported as held. */
  heldBytes = 0
  readonly openedMs = performance.now()
  /** The time of the last input. */
  activeMs: number = this.openedMs

  constructor(socket: Socket, host: string, id: number, context: SessionContext, owner: ConnectionOwner) {
    this.socket = socket
    this.host = host
    this.#owner = owner
    const { guard } = owner
    this.session = new Session(
      id,
      context,
      guard.callback(socket, () => this.#go()),
    )
    this.#onWritten = guard.callback(socket, () => this.#written())
    this.#goOn = guard.callback(socket, () => {
      this.#isDeferred = false
      this.#go()
    })
    guard.on(socket, 'data', (chunk: Buffer) => this.#take(chunk))
    guard.on(socket, 'end', () => this.#endInput())
    // The socket is closed after an error, which says nothing about the others.
    guard.on(socket, 'error', () => undefined)
  }

  /** Whether no command is incomplete, waiting or in flight. */
  get isIdle(): boolean {
    return !this.session.hasInput && this.session.inFlight === 0 && !this.#isUnread
  }

  /** For how long, at `nowMs`, the client has left replies unread. */
  unreadMs(nowMs: number): number {
    return this.#unreadSinceMs === undefined ? 0 : nowMs - this.#unreadSinceMs
  }

  /** For how long the same command has been incomplete. */
  partialMs(nowMs: number): number {
    return this.#partialSinceMs === undefined ? 0 : nowMs - this.#partialSinceMs
  }

  /** For how long the client has kept its side open after this one was closed. */
  endedMs(nowMs: number): number {
    return this.#endedMs === undefined ? 0 : nowMs - this.#endedMs
  }

  /** Closes the connection after the replies that were written. */
  end(): void {
    this.#isEnding = true
    this.#endedMs ??= performance.now()
    this.socket.end()
    // The rest of the input is thrown away: the client's end is seen only behind it.
    this.socket.resume()
  }

  #take(chunk: Buffer): void {
    if (this.#isEnding) return
    this.activeMs = performance.now()
    this.session.push(chunk)
    if (this.#isDeferred || !isInputTimeOver()) {
      this.#go()
      return
    }
    this.socket.pause()
    this.#defer()
    this.#owner.changed(this)
  }

  /** The client sends no more: its commands are still answered. */
  #endInput(): void {
    this.session.endInput()
    this.#go()
  }

  /** Answers what may be answered now. */
  #go(): void {
    if (this.#isDeferred || this.#isEnding || this.socket.destroyed) return
    const waiting = this.#isUnread ? 'room' : this.session.run()
    this.#write()
    if (waiting === 'end') {
      this.end()
    } else if (this.#isUnread || waiting === 'store') {
      this.socket.pause()
    } else if (waiting === 'input') {
      this.socket.resume()
    } else {
      this.socket.pause()
      this.#defer()
    }
    this.#partialSinceMs = waiting === 'input' && this.session.hasInput ? (this.#partialSinceMs ?? this.activeMs) : undefined
    this.#owner.changed(this)
  }

  #write(): void {
    if (this.session.readyBytes === 0) return
    this.socket.write(this.session.takeReplies(), this.#onWritten)
    // Mostly the system has taken them at once, although Node calls back only later.
    if (this.socket.writableLength === 0) return
    this.#isUnread = true
    this.#unreadSinceMs ??= performance.now()
  }

  #written(): void {
    if (!this.#isUnread || this.socket.writableLength > 0) return
    this.#isUnread = false
    this.#unreadSinceMs = undefined
    this.#go()
  }

  #defer(): void {
    this.#isDeferred = true
    inLaterTurn(this.#goOn)
  }
}

import type { Socket } from 'node:net'
import { inLaterTurn, isInputTimeOver } from '../../later-turns.js'
import type { Guard } from '../guard.js'

/** A piece of the work of a connection. Returns whether it is to be called again, for the next piece. */
export type Piece = () => boolean

/** When the work of a call is done. */
export interface Turns {
  /** Input has arrived that costs time in any case: where others had the time of this turn, the connection reads on in a later one. */
  arrived(): void
  /** Does `piece` now, or in its turn. */
  do(piece: Piece): void
}

/** How long one connection goes on while no other waits. */
const ALONE_MS = 0.2

/** Connections that may send much at once: new ones, and those that had more input than a turn has time for; the newest last. */
const eager = new Set<SessionTurns>()
const MOST_EAGER = 256

/** The handle of a socket, which HTTP/2 reads from in native code. */
interface Handle {
  readStop?(): void
  readStart?(): void
}

/**
 * What one connection has to do, in the order of its arrival: at once while the turn has time for input, else one piece at a time in turn with other
 * connections. Until all is done nothing more is read from its socket, so that TCP's flow control stops the client.
 */
export class SessionTurns implements Turns {
  readonly #socket: Socket & { readonly _handle?: Handle | null }
  readonly #goOn: (isAlone: boolean) => void
  #waiting: Piece[] = []
  #next = 0
  #isDeferred = false

  constructor(socket: Socket, guard: Guard) {
    this.#socket = socket
    this.#goOn = guard.callback(socket, (isAlone: boolean) => this.#go(isAlone))
    this.#beEager()
  }

  /** The connection is gone. */
  leave(): void {
    eager.delete(this)
  }

  /** Pieces that wait. */
  get length(): number {
    return this.#waiting.length - this.#next
  }

  arrived(): void {
    if (this.#isDeferred || !isInputTimeOver()) return
    this.#beEager()
    // What has come over the others is read in turns of their own: Node.js would read a part of each in this one, with all the calls in it.
    for (const each of eager) each.#defer()
  }

  #beEager(): void {
    eager.delete(this)
    eager.add(this)
    if (eager.size <= MOST_EAGER) return
    for (const oldest of eager) {
      eager.delete(oldest)
      return
    }
  }

  do(piece: Piece): void {
    if (!this.#isDeferred && !isInputTimeOver() && !piece()) return
    this.#waiting.push(piece)
    this.#defer()
  }

  #defer(): void {
    if (this.#isDeferred) return
    this.#isDeferred = true
    // Node.js has no call for it: it reads all that is there, up to 2 MiB of one socket in one turn.
    this.#socket._handle?.readStop?.()
    inLaterTurn(this.#goOn)
  }

  #go(isAlone: boolean): void {
    try {
      if (isAlone) for (const untilMs = performance.now() + ALONE_MS; this.length > 0 && performance.now() < untilMs; ) this.#doNext()
      else this.#doNext()
    } finally {
      this.#goOnOrRead()
    }
  }

  #doNext(): void {
    const piece = this.#waiting[this.#next]
    // Before the call: one that throws is not called again.
    this.#next++
    if (piece?.()) this.#next--
  }

  #goOnOrRead(): void {
    if (this.length > 0) {
      inLaterTurn(this.#goOn)
      return
    }
    this.#waiting = []
    this.#next = 0
    this.#isDeferred = false
    if (!this.#socket.destroyed) this.#socket._handle?.readStart?.()
  }
}

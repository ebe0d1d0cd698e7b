import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import type { Guard } from '../guard.js'
import { ping } from './live-session.js'

/**
 * Finds out when a client's connection has received what was written to a stream: it answers the frames of a connection in their order, and a PING that
 * is sent after the message comes after it. One PING of a stream is under way at a time, for all messages before it.
 */
export class Receipts {
  readonly #session: ServerHttp2Session | undefined
  readonly #guard: Guard
  #waiting: (() => void)[] = []
  #isAsking = false

  constructor(stream: ServerHttp2Stream, guard: Guard) {
    // A stream that is over has none any more.
    this.#session = stream.session as ServerHttp2Session | undefined
    this.#guard = guard
  }

  /** Calls `onReceived` once all that is written until now has arrived; never where the connection ends before. */
  ask(onReceived: () => void): void {
    this.#waiting.push(onReceived)
    this.#ping()
  }

  #ping(): void {
    const session = this.#session
    if (this.#isAsking || this.#waiting.length === 0 || session === undefined) return
    const asked = this.#waiting
    this.#waiting = []
    this.#isAsking = ping(session, this.#guard, (error) => {
      this.#isAsking = false
      if (error === null) for (const onReceived of asked) onReceived()
      this.#ping()
    })
  }
}

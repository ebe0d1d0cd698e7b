import type { ServerResponse } from 'node:http'
import type { Guard } from '../protocols/guard.js'
import { Problem } from '../protocols/http/problem.js'

/** A page is for a few people; each costs a connection and a message a second. */
const MAX_READERS = 32
/** Unsent bytes at which a slow reader misses the next message; the message after it brings the totals up to date. */
const MAX_BACKLOG_BYTES = 262_144
/** Consecutive messages a reader may be behind at. A reader that never reads must not keep its place for ever. */
const MAX_BEHIND = 30

/**
 * The pages that are open, as server-sent events.
 *
 * Source: WHATWG HTML, section 9.2, "Server-sent events".
 */
export class Stream {
  /** The number of consecutive messages at which each reader was behind. */
  readonly #readers = new Map<ServerResponse, number>()
  readonly #guard: Guard
  #hasEnded = false

  constructor(guard: Guard) {
    this.#guard = guard
  }

  /** Whether any page is open. */
  get isRead(): boolean {
    return this.#readers.size > 0
  }

  /** Adds a page; `first`, JSON in one line, is sent to it alone, as the event `history`. */
  add(response: ServerResponse, headers: Readonly<Record<string, string>>, first: string): void {
    if (this.#hasEnded) throw new Problem(503, 'BUSY', 'the service is stopping', [['Retry-After', '1']])
    if (this.#readers.size >= MAX_READERS) throw new Problem(503, 'BUSY', `${MAX_READERS} pages are open already: close one`)
    // The client has gone, and `close` with it.
    if (response.destroyed) return
    this.#guard.once(response, 'close', () => this.#readers.delete(response))
    this.#guard.on(response, 'error', () => undefined)
    response.writeHead(200, headers)
    response.write(`retry: 2000\nevent: history\ndata: ${first}\n\n`)
    this.#readers.set(response, 0)
  }

  /** Sends `message`, JSON in one line, to every page. */
  send(message: string): void {
    const event = Buffer.from(`data: ${message}\n\n`)
    for (const reader of this.#readers.keys()) this.#guard.callback(reader, () => this.#sendTo(reader, event))()
  }

  #sendTo(reader: ServerResponse, event: Buffer): void {
    if (reader.destroyed || reader.writableEnded) return void this.#readers.delete(reader)
    const behind = this.#readers.get(reader) ?? 0
    const unreadBytes = reader.writableLength
    if (unreadBytes < MAX_BACKLOG_BYTES) reader.write(event)
    this.#readers.set(reader, unreadBytes > 0 ? behind + 1 : 0)
    if (unreadBytes > 0 && behind >= MAX_BEHIND) reader.destroy()
  }

  /** Ends all streams; the pages will try to reconnect. */
  end(): void {
    this.#hasEnded = true
    for (const reader of this.#readers.keys()) reader.end()
    this.#readers.clear()
  }
}

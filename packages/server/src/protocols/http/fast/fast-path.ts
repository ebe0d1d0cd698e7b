import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Guard } from '../../guard.js'
import { InputValve, type ValveOwner } from './input-valve.js'
import { type PlainRequest, readPlainRequest } from './plain-request.js'
import { PlainResponse, type ResponseSender } from './plain-response.js'

export type { PlainRequest, PlainResponse }

/** What a {@link FastPath} needs to know of its connection, and tells it. */
export interface FastPathOwner {
  /** Whether the next request may be read. */
  mayRead(): boolean
  /** Answers `request` if it may be answered now and here; false leaves it to Node's parser. */
  answerPlain(request: PlainRequest, response: PlainResponse): boolean
  /** The client's system has taken the last answer to a plain request. */
  answered(): void
  /** Bytes more (or fewer) that have been read from the socket and wait. */
  holds(deltaBytes: number): void
}

/** What is the same for all connections of a server. */
export interface FastPathOptions {
  /** The fields with which Node keeps a connection open. */
  readonly keepAliveFields: string
  /** Whether handlers need all fields of a request, for example to follow it; otherwise those that the service reads. */
  readonly keepsAllFields: boolean
}

/**
 * The input of a connection. One request at a time is passed on, when the owner may read. A plain request is answered here with one write; all others go to Node's
 * parser, whose bytes are counted: a request is read here only where it is certain that its first byte begins one. The first request of a
 * connection goes to the parser in any case, since Node's time limits begin with it.
 */
export class FastPath implements ValveOwner, ResponseSender {
  readonly #socket: Socket
  readonly #owner: FastPathOwner
  readonly #options: FastPathOptions
  readonly #valve: InputValve
  readonly #onTaken: () => void
  /** To the plain request that is being answered. An idle connection keeps neither request nor response. */
  #response: PlainResponse | undefined
  #isAnswering = false
  /** Whether the next byte begins a request. */
  #isBetween = true
  /** Of the request that goes to the parser; NaN where only the parser knows its end. */
  bytesLeft = Number.NaN
  /** Heads that the parser has read in this slice. */
  #heads = 0
  /** To the request that goes to the parser, from when it has read the head. */
  #parsing: ServerResponse | undefined
  #hasParsed = false
  /** Texts given to the socket, and those of which it has reported that the system has them. */
  #sent = 0
  #taken = 0
  /** The time limit of an idle connection, while it waits for a plain answer and has none; 0 otherwise. */
  #idleMs = 0

  constructor(socket: Socket, guard: Guard, owner: FastPathOwner, options: FastPathOptions) {
    this.#socket = socket
    this.#owner = owner
    this.#options = options
    this.#valve = new InputValve(socket, guard, this)
    this.#onTaken = guard.callback(socket, () => this.#take())
  }

  /** Whether requests, or parts of one, wait. */
  get isHolding(): boolean {
    return this.#valve.isHolding
  }

  /** Passes on the input that the owner admits now. */
  open(): void {
    // While a plain request is being answered the valve is open.
    if (!this.#isAnswering) this.#valve.open()
  }

  /** Drops the input of a closed socket. */
  drop(): void {
    this.#valve.drop()
  }

  /** The parser has read a head, which `response` is for. */
  parsedHead(response: ServerResponse): void {
    this.#heads++
    this.#parsing = response
    this.#hasParsed = true
  }

  mayRead(): boolean {
    return this.#owner.mayRead()
  }

  holds(deltaBytes: number): void {
    this.#owner.holds(deltaBytes)
  }

  /** Answers the request at the begin of `input`, and returns its length; 0 leaves it to the parser. */
  answer(input: Buffer): number {
    if (!this.#isBetween) return 0
    const request = readPlainRequest(input, this.#options.keepsAllFields)
    this.bytesLeft = request?.byteLength ?? Number.NaN
    this.#parsing = undefined
    if (request === undefined || request.byteLength > input.length || !this.#hasParsed) return 0
    const response = new PlainResponse(request, this, this.#options.keepAliveFields)
    this.#response = response
    this.#isAnswering = true
    const isAnswered = this.#owner.answerPlain(request, response)
    this.#isAnswering = false
    if (!isAnswered) {
      this.#response = undefined
      return 0
    }
    if (!response.writableEnded) this.#pauseIdleLimit()
    return request.byteLength
  }

  parsed(bytes: number, isHead: boolean): void {
    this.bytesLeft -= bytes
    // Of a request that is not plain: one head without a body, which ends where the slice does.
    const isEnd = this.bytesLeft === 0 || (isHead && this.#heads === 1)
    this.#heads = 0
    const request = this.#parsing?.req
    // After an upgrade that did not happen the parser treats errors in another way, until the next request.
    this.#isBetween = isEnd && request?.complete === true && request.headers.upgrade === undefined && this.#socket.readableLength === 0
    if (this.#isBetween) this.#parsing = undefined
  }

  send(text: string, encoding: 'latin1' | 'utf8', isLast: boolean): void {
    const socket = this.#socket
    if (socket.destroyed) return
    if (isLast) {
      socket.end(text, encoding, () => socket.destroySoon())
      return
    }
    this.#sent++
    socket.write(text, encoding, this.#onTaken)
    if (socket.writableLength === 0) this.#finish()
  }

  #take(): void {
    this.#taken++
    if (this.#taken === this.#sent) this.#finish()
  }

  #finish(): void {
    const response = this.#response
    if (response === undefined || !response.writableEnded) return
    response.writableFinished = true
    this.#response = undefined
    if (this.#idleMs > 0) this.#socket.setTimeout(this.#idleMs)
    this.#idleMs = 0
    this.#owner.answered()
  }

  /** As Node does for requests that it parses. */
  #pauseIdleLimit(): void {
    this.#idleMs = this.#socket.timeout ?? 0
    this.#socket.setTimeout(0)
  }
}
